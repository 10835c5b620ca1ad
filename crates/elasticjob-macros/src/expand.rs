//! The function as it is, and beside it its declaration.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, FnArg, ItemFn, ext::IdentExt, parse::Parser, spanned::Spanned};

use super::{attribute, function, keys, keys::Settings};

pub(crate) fn job(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        let problem = "a job is a function; hint: put #[elasticjob::job(…)] on an async fn, and give a struct to Node::job";
        let error = Error::new(Span::call_site(), problem).into_compile_error();
        return quote!(#error #item);
    };
    // With a mistake the function stays, so that whoever calls it is not told that it is missing.
    let declared = match read(arguments, &function) {
        Ok(settings) => declaration(&function, &settings),
        Err(error) => error.into_compile_error(),
    };
    quote!(#function #declared)
}

/// What the attribute says, or all mistakes in it and in the function.
fn read(arguments: TokenStream, function: &ItemFn) -> syn::Result<Settings> {
    let arguments = attribute::arguments.parse2(arguments)?;
    let (settings, mut mistakes) = keys::settings(&arguments);
    mistakes.extend(function::mistakes(function, settings.blocking));
    let all = mistakes.into_iter().reduce(|mut all, mistake| {
        all.combine(mistake);
        all
    });
    all.map_or(Ok(settings), Err)
}

fn declaration(function: &ItemFn, settings: &Settings) -> TokenStream {
    let Settings { name, job, node_job, blocking } = settings;
    let ident = &function.sig.ident;
    let written = ident.unraw().to_string();
    let name = name.clone().unwrap_or_else(|| quote!(#written));
    // What the compiler has to say about the argument and the result is said there.
    let argument = function.sig.inputs.first().map(|argument| match argument {
        FnArg::Typed(typed) => typed.ty.span(),
        FnArg::Receiver(receiver) => receiver.span(),
    });
    let shard = quote_spanned!(argument.unwrap_or_else(Span::call_site)=> shard);
    let call =
        quote_spanned!(function.sig.output.span()=> |shard: ::elasticjob::Shard| #ident(#shard));
    let handler = if *blocking {
        quote!(::<::elasticjob::execution::kind::Handler>(job, ::elasticjob::execution::blocking(#call)))
    } else {
        quote!(::<::elasticjob::execution::kind::Function>(job, #call))
    };
    let conditions = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    quote! {
        #(#conditions)*
        const _: () = {
            ::elasticjob::__macros::submit! {
                ::elasticjob::__macros::Declared::new(
                    ::elasticjob::node::Place { function: #written, file: ::core::file!(), line: ::core::line!() },
                    || {
                        let job = ::elasticjob::Job::named(#name)? #job;
                        ::core::result::Result::Ok(::elasticjob::NodeJob::code #handler #node_job)
                    },
                )
            }
        };
    }
}
