//! The attribute `#[elasticjob::job(...)]`. Use it through the crate `elasticjob`, which documents it.
//!
//! It leaves the function unchanged and adds a declaration that `Node::discover` finds. `attribute` parses the arguments, `keys` defines
//! the allowed keys, `checks` validates values as far as possible without the library, `function` checks the function's signature, and
//! `expand` generates the declaration.
//!
//! All errors are reported at once, each at its location and with a hint. Errors that only the library can detect (in the details of a
//! cron expression, a time zone, a duration) are reported when a node starts, with file, line and function.

mod attribute;
mod checks;
mod expand;
mod function;
mod keys;

use proc_macro::TokenStream;

/// Declares an async function as a job. See `elasticjob::job`.
#[proc_macro_attribute]
pub fn job(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::job(arguments.into(), &item.into()).into()
}
