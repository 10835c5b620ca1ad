//! Jobs that are declared at their functions, with `#[elasticjob::job(...)]`.
//!
//! The attribute leaves a [`Declared`] beside each function; the linker gathers them (crate `inventory`), and
//! [`Node::discover`](super::Node::discover) asks for them. What is gathered never changes while the program runs, and each node makes its
//! own jobs of it, so that several nodes can live in one program.

use std::fmt;

/// Where in the program a job is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as the compiler was given it.
    pub file: &'static str,
    /// The line of the attribute.
    pub line: u32,
    /// The function.
    pub function: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}, fn {}", self.file, self.line, self.function)
    }
}

#[cfg(feature = "macros")]
pub use self::gathered::Declared;
#[cfg(feature = "macros")]
pub(super) use self::gathered::all;

#[cfg(feature = "macros")]
mod gathered {
    use super::Place;
    use crate::{
        job::Invalid,
        node::{NodeError, NodeJob},
    };

    /// A function with the attribute. Written by the attribute, and by nobody else.
    pub struct Declared {
        place: Place,
        // What the attribute says is read when somebody asks, because it can be wrong.
        job: fn() -> Result<NodeJob, Invalid>,
    }

    impl Declared {
        /// A function at this place.
        pub const fn new(place: Place, job: fn() -> Result<NodeJob, Invalid>) -> Self {
            Self { place, job }
        }

        fn read(&self) -> Result<NodeJob, NodeError> {
            match (self.job)() {
                Ok(job) => Ok(job.declared_at(self.place)),
                Err(invalid) => Err(NodeError::Declaration { place: self.place, invalid }),
            }
        }
    }

    inventory::collect!(Declared);

    /// Every job that is declared in the program, in the order of files and lines: the linker has none.
    pub(crate) fn all() -> Result<Vec<NodeJob>, NodeError> {
        let mut declared: Vec<&Declared> = inventory::iter::<Declared>.into_iter().collect();
        declared.sort_by_key(|declared| declared.place);
        declared.into_iter().map(Declared::read).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::job::{Job, Shard};

        #[test]
        fn a_declaration_that_is_wrong_is_told_with_file_line_and_function() {
            let place = Place { file: "src/orders.rs", line: 12, function: "settle" };
            let declared = Declared::new(place, || {
                let job = Job::named("settle")?.cron("0 0 24 * * ?")?;
                Ok(NodeJob::code(job, |_: Shard| async { Ok::<(), String>(()) }))
            });

            let error = declared.read().unwrap_err();

            assert_eq!(
                error.to_string(),
                r#"src/orders.rs:12, fn settle: cron "0 0 24 * * ?": hours "24" is out of range; hint: hours are 0 to 23"#
            );
            assert_eq!(format!("{error:?}"), error.to_string(), "that is what main prints");
        }
    }
}
