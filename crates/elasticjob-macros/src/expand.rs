//! The function as it is, and beside it its declaration.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, ItemFn, ext::IdentExt, parse::Parser};

use super::{attribute, function, keys, keys::Settings};

pub(crate) fn job(arguments: TokenStream, item: &TokenStream) -> TokenStream {
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
    // How it looks is not its own choice.
    quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps, clippy::unused_async)]
        #function
        #declared
    }
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
    // The function itself and no closure around it: what the compiler says about its types is said at its name.
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
                ::elasticjob::__macros::Declared::new(
                    ::elasticjob::node::Place { function: #written, file: ::core::file!(), line: ::core::line!() },
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
