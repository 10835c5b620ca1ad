//! Boxes handlers so that axum sees only one handler type.
//!
//! axum instantiates its service layers once for each handler type, and every handler function has its own type: a hundred of them took most of
//! this crate's compile time.
//! Boxing costs one allocation per request.

use std::{future::Future, pin::Pin, sync::Arc};

use axum::{extract::Request, handler::Handler, response::Response};

use super::state::AppState;

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler with its type erased.
#[derive(Clone)]
pub(crate) struct BoxedHandler(Arc<dyn Fn(Request, AppState) -> ResponseFuture + Send + Sync>);

impl Handler<BoxedHandler, AppState> for BoxedHandler {
    type Future = ResponseFuture;

    fn call(self, request: Request, app: AppState) -> ResponseFuture {
        (self.0)(request, app)
    }
}

pub(crate) fn boxed<T, H: Handler<T, AppState>>(handler: H) -> BoxedHandler {
    BoxedHandler(Arc::new(move |request, app| Box::pin(handler.clone().call(request, app))))
}

/// Like `utoipa_axum::routes!`, with the handlers boxed.
macro_rules! routes {
    ($($handler:ident),+) => {{
        use utoipa::{Path as _, __dev::{SchemaReferences as _, Tags as _}};
        use utoipa_axum::PathItemExt as _;

        let mut paths = utoipa::openapi::path::Paths::new();
        let mut schemas = Vec::new();
        let mut router = axum::routing::MethodRouter::new();
        $(
            utoipa_axum::paste! {
                let mut operation = [<__path_ $handler>]::operation();
                let tags = [<__path_ $handler>]::tags();
                let methods = [<__path_ $handler>]::methods();
                let path = [<__path_ $handler>]::path();
                [<__path_ $handler>]::schemas(&mut schemas);
            }
            if !tags.is_empty() {
                operation.tags.get_or_insert_default().extend(tags.iter().map(ToString::to_string));
            }
            let handler = $crate::http::handler::boxed($handler);
            for method in &methods {
                router = router.on(method.to_method_filter(), handler.clone());
            }
            paths.add_path_operation(&path, methods, operation);
        )+
        (schemas, paths, router)
    }};
}
pub(crate) use routes;
