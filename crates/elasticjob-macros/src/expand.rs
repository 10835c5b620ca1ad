//! Generates the function, unchanged, and its declaration.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, ItemFn, ext::IdentExt, parse::Parser};

use super::{attribute, function, keys, keys::Settings};

pub(crate) fn job(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        let problem = "only a function can be a job; hint: put #[elasticjob::job(…)] on an async fn, or pass a struct to Node::job";
        let error = Error::new(Span::call_site(), problem).into_compile_error();
        return quote!(#error #item);
    };
    // Keep the function even if there are errors, so that its callers do not get errors as well.
    let declaration_or_error = match parse_settings(arguments, &function) {
        Ok(settings) => declaration(&function, &settings),
        Err(error) => error.into_compile_error(),
    };
    // The attribute dictates the signature, so the function must not get lints about it.
    quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps, clippy::unused_async)]
        #function
        #declaration_or_error
    }
}

/// The settings of the attribute, or all errors in it and in the function.
fn parse_settings(arguments: TokenStream, function: &ItemFn) -> syn::Result<Settings> {
    let arguments = attribute::parse_arguments.parse2(arguments)?;
    let (settings, mut errors) = keys::settings(&arguments);
    errors.extend(function::check(function, settings.blocking));
    let all = errors.into_iter().reduce(|mut all, error| {
        all.combine(error);
        all
    });
    all.map_or(Ok(settings), Err)
}

fn declaration(function: &ItemFn, settings: &Settings) -> TokenStream {
    let Settings { name, job, node_job, blocking } = settings;
    let ident = &function.sig.ident;
    let function_name = ident.unraw().to_string();
    let name = name.clone().unwrap_or_else(|| quote!(#function_name));
    // Pass the function itself, not a closure around it, so that the compiler reports type errors at its name.
    let (kind, handler) = if *blocking {
        let blocking = quote_spanned!(ident.span()=> ::elasticjob::execution::blocking(#ident));
        (quote!(Handler), blocking)
    } else {
        (quote!(Function), quote!(#ident))
    };
    let conditions = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    quote! {
        #(#conditions)*
        const _: () = {
            ::elasticjob::__macros::submit! {
                ::elasticjob::__macros::JobDeclaration::new(
                    ::elasticjob::node::SourceLocation { function: #function_name, file: ::core::file!(), line: ::core::line!() },
                    || {
                        let job = ::elasticjob::Job::named(#name)? #job;
                        ::core::result::Result::Ok(
                            ::elasticjob::NodeJob::code::<::elasticjob::execution::kind::#kind>(job, #handler) #node_job
                        )
                    },
                )
            }
        };
    }
}
