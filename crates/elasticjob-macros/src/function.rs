//! Which functions can be jobs.

use quote::{ToTokens, quote_spanned};
use syn::{Error, FnArg, ItemFn, ReturnType, Signature, Type};

/// Every reason why this function cannot be a job, each at its place.
pub(crate) fn mistakes(function: &ItemFn, blocking: bool) -> Vec<Error> {
    let signature = &function.sig;
    let mut mistakes = Vec::new();
    let mut wrong =
        |at: &dyn ToTokens, problem: &str| mistakes.push(Error::new_spanned(at, problem));
    match (&signature.asyncness, blocking) {
        (None, false) => wrong(
            &signature.fn_token,
            "a job does not block its thread; hint: make it an async fn, or say that it blocks: #[elasticjob::job(blocking, …)]",
        ),
        (Some(word), true) => wrong(
            word,
            "an async fn does not block; hint: leave out `blocking`, or make it a plain fn",
        ),
        _ => {}
    }
    if let Some(word) = &signature.constness {
        wrong(word, "a job cannot be const; hint: leave out `const`");
    }
    if !matches!(signature.safety, syn::Safety::Default) {
        wrong(
            &signature.safety,
            "a job cannot be unsafe, nobody could keep its promise; hint: call the unsafe function inside",
        );
    }
    if let Some(abi) = &signature.abi {
        wrong(abi, "a job is a Rust function; hint: leave out `extern`");
    }
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let at: &dyn ToTokens = match &signature.generics.where_clause {
            Some(clause) if signature.generics.params.is_empty() => clause,
            _ => &signature.generics.params,
        };
        wrong(
            at,
            "a job cannot be generic, there is nobody to choose; hint: put #[elasticjob::job(…)] on a function that calls this one",
        );
    }
    argument(function, &mut wrong);
    if matches!(signature.output, ReturnType::Default) {
        wrong(
            &parentheses(signature),
            "a job says whether it worked; hint: return a Result: -> Result<(), MyError>",
        );
    }
    mistakes
}

fn argument(function: &ItemFn, wrong: &mut impl FnMut(&dyn ToTokens, &str)) {
    const ONE: &str = "a job takes its shard and nothing else; hint: write (shard: Shard), and what else it needs in a struct: see elasticjob::execution::SimpleJob";
    let signature = &function.sig;
    let mut inputs = signature.inputs.iter();
    match inputs.next() {
        None => wrong(&parentheses(signature), ONE),
        Some(FnArg::Receiver(receiver)) => wrong(
            receiver,
            "a job has no self; hint: for a struct implement elasticjob::execution::SimpleJob, and give it to Node::job",
        ),
        Some(FnArg::Typed(typed)) => {
            if let Type::Reference(reference) = &*typed.ty {
                wrong(reference, "a shard is taken by value; hint: write shard: Shard");
            }
        }
    }
    if let Some(second) = inputs.next() {
        wrong(second, ONE);
    }
    if let Some(variadic) = &signature.variadic {
        wrong(variadic, ONE);
    }
}

/// Where to point for what is missing inside or behind them.
fn parentheses(signature: &Signature) -> impl ToTokens {
    quote_spanned!(signature.paren_token.span.join()=> ())
}
