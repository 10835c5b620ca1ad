//! Jobs that are declared at their functions with `#[elasticjob::job(...)]`.
//!
//! The attribute places a [`Declared`] next to each function; the linker collects them (crate `inventory`), and
//! [`Node::discover`](super::Node::discover) reads them. The collection never changes while the program runs, and each node builds its own jobs
//! from it, so several nodes can exist in one program.

use std::fmt;

/// Where in the program a job is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// Path as passed to the compiler.
    pub file: &'static str,
    /// Line of the attribute.
    pub line: u32,
    pub function: &'static str,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}, fn {}", self.file, self.line, self.function)
    }
}

#[cfg(feature = "macros")]
pub use self::collected::JobDeclaration;
#[cfg(feature = "macros")]
pub(super) use self::collected::all_jobs;

#[cfg(feature = "macros")]
mod collected {
    use super::SourceLocation;
    use crate::{
        job::InvalidValue,
        node::{NodeError, NodeJob},
    };

    /// A function with the attribute. Only code that the attribute generates creates it.
    pub struct JobDeclaration {
        place: SourceLocation,
        // Evaluated when a node starts, because the values in the attribute can be invalid.
        job: fn() -> Result<NodeJob, InvalidValue>,
    }

    impl JobDeclaration {
        pub const fn new(
            place: SourceLocation,
            job: fn() -> Result<NodeJob, InvalidValue>,
        ) -> Self {
            Self { place, job }
        }

        fn build(&self) -> Result<NodeJob, NodeError> {
            match (self.job)() {
                Ok(job) => Ok(job.declared_at(self.place)),
                Err(invalid) => {
                    Err(NodeError::Declaration { location: self.place, invalid: Box::new(invalid) })
                }
            }
        }
    }

    inventory::collect!(JobDeclaration);

    /// Every job that is declared in the program, sorted by file and line, because the linker guarantees no order.
    pub(crate) fn all_jobs() -> Result<Vec<NodeJob>, NodeError> {
        let mut declarations: Vec<&JobDeclaration> =
            inventory::iter::<JobDeclaration>.into_iter().collect();
        declarations.sort_by_key(|declaration| declaration.place);
        declarations.into_iter().map(JobDeclaration::build).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::job::{Job, Shard};

        #[test]
        fn invalid_declaration_is_reported_with_file_line_and_function() {
            let place = SourceLocation { file: "src/orders.rs", line: 12, function: "settle" };
            let declaration = JobDeclaration::new(place, || {
                let job = Job::named("settle")?.cron("0 0 24 * * ?")?;
                Ok(NodeJob::code(job, |_: Shard| async { Ok::<(), String>(()) }))
            });

            let error = declaration.build().unwrap_err();

            let message =
                r#"src/orders.rs:12, fn settle: cron "0 0 24 * * ?": hours "24" is out of range"#;
            assert_eq!(error.to_string(), message);
            let debug = format!("{message}; hint: hours are 0 to 23");
            assert_eq!(format!("{error:?}"), debug, "main prints the debug form");
        }
    }
}
