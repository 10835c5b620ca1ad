//! The attribute `#[elasticjob::job(...)]`. Use it through the crate `elasticjob`, where it is described.
//!
//! It leaves the function as it is and puts beside it a declaration that `Node::discover` finds. From the outside in:
//! `attribute` reads what stands in the parentheses, `keys` knows what may stand there, `checks` what its values may be, as far as that can
//! be told without the library; `function` looks at the function, `expand` writes the declaration.
//!
//! A mistake is told where it stands, all of them at once, each with a way out. What only the library can judge (all of a cron
//! expression, a time zone, a duration) is told when a node starts, with file, line and function.

mod attribute;
mod checks;
mod expand;
mod function;
mod keys;

use proc_macro::TokenStream;

/// Makes a job of an async function. Described where it is used: `elasticjob::job`.
#[proc_macro_attribute]
pub fn job(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::job(arguments.into(), &item.into()).into()
}
