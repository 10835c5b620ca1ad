//! The failure of a shard or listener.

use crate::problem::with_causes;
use std::{
    any::Any,
    error::Error,
    fmt::{self, Display},
};

/// Any error that can be sent between threads.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a shard failed, as a message for people.
///
/// Every error converts into it with `?`, its causes included. It is not an error itself; it is only reported.
///
/// ```
/// use elasticjob::execution::Failure;
///
/// fn settle(amount: &str) -> Result<u32, Failure> {
///     Ok(amount.parse()?)
/// }
/// assert_eq!(settle("much").unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    is_permanent: bool,
}

impl Failure {
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), is_permanent: false }
    }

    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        match text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)) {
            Some(text) => Self::new(format_args!("panicked: {text}")),
            None => Self::new("panicked"),
        }
    }

    /// Marks the failure as permanent: the shard is not retried.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.is_permanent = true;
        self
    }

    /// Whether the failure is permanent, so that the shard is not retried.
    pub fn is_permanent(&self) -> bool {
        self.is_permanent
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(with_causes(&*error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot settle {order}")]
    struct Settle {
        order: u32,
        source: std::num::ParseIntError,
    }

    #[test]
    fn message_includes_causes() {
        let source = "x".parse::<u32>().unwrap_err();

        let failure = Failure::from(Settle { order: 7, source });

        assert_eq!(failure.to_string(), "cannot settle 7: invalid digit found in string");
        assert_eq!(Failure::from("no such table").to_string(), "no such table");
    }

    #[test]
    fn panic_payload_becomes_message() {
        let payloads: [Box<dyn Any + Send>; 3] =
            [Box::new("one"), Box::new("two".to_owned()), Box::new(3)];

        let messages = payloads.map(|payload| Failure::panicked(&*payload).to_string());

        assert_eq!(messages, ["panicked: one", "panicked: two", "panicked"]);
    }
}
