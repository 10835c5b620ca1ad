//! The state of an attempt, as history shows it.

use serde::{Serialize, Serializer};

use crate::job::Outcome;

/// State of an attempt: running, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptState {
    Running,
    Ended(Outcome),
}

impl AttemptState {
    /// Java ElasticJob records no outcome, only success, and a time or a cause once it has ended.
    pub(super) fn derive(outcome: Option<Outcome>, success: bool, has_ended: bool) -> Self {
        match (outcome, success, has_ended) {
            (Some(outcome), ..) => Self::Ended(outcome),
            (None, true, _) => Self::Ended(Outcome::Succeeded),
            (None, false, true) => Self::Ended(Outcome::Failed),
            (None, false, false) => Self::Running,
        }
    }

    /// `running`, or the word of the outcome.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended(outcome) => outcome.as_str(),
        }
    }
}

impl Serialize for AttemptState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for AttemptState {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        let ended = Outcome::ALL.map(Self::Ended);
        let words = [Self::Running].into_iter().chain(ended).map(Self::as_str);
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .enum_values(Some(words))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for AttemptState {}
