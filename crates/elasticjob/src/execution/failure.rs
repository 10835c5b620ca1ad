//! Why a shard failed.

use std::{
    any::Any,
    error::Error,
    fmt::{self, Display},
};

/// Any error that can cross threads.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a shard failed, in words for whoever has to do something about it.
///
/// Every error becomes one with `?`, with its causes. It is not an error itself; nothing is done with it but told.
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
    lasting: bool,
}

impl Failure {
    /// A failure in these words.
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), lasting: false }
    }

    /// What a panic left behind.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        match text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)) {
            Some(text) => Self::new(format_args!("panicked: {text}")),
            None => Self::new("panicked"),
        }
    }

    /// The same, and trying again would not help: the shard is not retried.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.lasting = true;
        self
    }

    /// Whether trying again would not help.
    pub fn is_lasting(&self) -> bool {
        self.lasting
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

/// An error and its causes, `: ` in between. Some errors repeat their cause in their own words; then it is not said again.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut message = error.to_string();
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    for cause in causes.map(ToString::to_string) {
        if !message.ends_with(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
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
    fn an_error_is_told_with_its_causes() {
        let source = "x".parse::<u32>().unwrap_err();

        let failure = Failure::from(Settle { order: 7, source });

        assert_eq!(failure.to_string(), "cannot settle 7: invalid digit found in string");
        assert_eq!(Failure::from("no such table").to_string(), "no such table");
    }

    #[test]
    fn a_panic_is_told_in_its_own_words() {
        let payloads: [Box<dyn Any + Send>; 3] =
            [Box::new("one"), Box::new("two".to_owned()), Box::new(3)];

        let told = payloads.map(|payload| Failure::panicked(&*payload).to_string());

        assert_eq!(told, ["panicked: one", "panicked: two", "panicked"]);
    }
}
