//! Checks that a function can be a job.

use quote::{ToTokens, quote_spanned};
use syn::{Error, FnArg, ItemFn, ReturnType, Signature, Type};

/// Returns every reason why the function cannot be a job, each with its location.
pub(crate) fn check(function: &ItemFn, blocking: bool) -> Vec<Error> {
    let signature = &function.sig;
    let mut errors = Vec::new();
    let mut report =
        |at: &dyn ToTokens, problem: &str| errors.push(Error::new_spanned(at, problem));
    match (&signature.asyncness, blocking) {
        (None, false) => report(
            &signature.fn_token,
            "a job must not block its thread; hint: make it an async fn, or declare that it blocks: #[elasticjob::job(blocking, …)]",
        ),
        (Some(word), true) => report(
            word,
            "an async fn cannot be `blocking`; hint: remove `blocking`, or make it a plain fn",
        ),
        _ => {}
    }
    if let Some(word) = &signature.constness {
        report(word, "a job cannot be const; hint: remove `const`");
    }
    if !matches!(signature.safety, syn::Safety::Default) {
        report(
            &signature.safety,
            "a job cannot be unsafe; hint: call the unsafe function inside a safe one",
        );
    }
    if let Some(abi) = &signature.abi {
        report(abi, "a job cannot be extern; hint: remove `extern`");
    }
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let at: &dyn ToTokens = match &signature.generics.where_clause {
            Some(clause) if signature.generics.params.is_empty() => clause,
            _ => &signature.generics.params,
        };
        report(
            at,
            "a job cannot be generic, because nothing chooses its parameters; hint: put #[elasticjob::job(…)] on a function that calls this one",
        );
    }
    check_argument(function, &mut report);
    if matches!(signature.output, ReturnType::Default) {
        report(
            &parentheses(signature),
            "a job must return a Result; hint: write -> Result<(), MyError>",
        );
    }
    errors
}

fn check_argument(function: &ItemFn, report: &mut impl FnMut(&dyn ToTokens, &str)) {
    const ONLY_SHARD: &str = "a job takes its shard as the only argument; hint: write (shard: Shard); for a job with state, see elasticjob::execution::SimpleJob";
    let signature = &function.sig;
    let mut inputs = signature.inputs.iter();
    match inputs.next() {
        None => report(&parentheses(signature), ONLY_SHARD),
        Some(FnArg::Receiver(receiver)) => report(
            receiver,
            "a job cannot be a method; hint: implement elasticjob::execution::SimpleJob for the struct, and pass it to Node::job",
        ),
        Some(FnArg::Typed(typed)) => {
            if let Type::Reference(reference) = &*typed.ty {
                report(reference, "the shard is passed by value; hint: write shard: Shard");
            }
        }
    }
    if let Some(second) = inputs.next() {
        report(second, ONLY_SHARD);
    }
    if let Some(variadic) = &signature.variadic {
        report(variadic, ONLY_SHARD);
    }
}

/// The location for errors about a missing argument or return type.
fn parentheses(signature: &Signature) -> impl ToTokens {
    quote_spanned!(signature.paren_token.span.join()=> ())
}
