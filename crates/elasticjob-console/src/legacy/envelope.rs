//! The caller of a legacy request, and the format of the response.

use std::convert::Infallible;

use axum::{
    Json,
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::registry_center::selected_registry;
use crate::{
    auth::caller::{ACCESS_TOKEN, Authorized, Caller, OwnSite, RequiredRole},
    http::{
        problem::{Code, Problem},
        state::AppState,
    },
    registries::connections::no_such_registry,
};

/// A legacy request. A failed authentication is kept and reported in the format of the response.
pub(super) struct LegacyRequest {
    format: ResponseFormat,
    caller: Result<Caller, Problem>,
    /// Whether another site made the browser send the request; changes by POST are refused with the caller already.
    own_site: Result<OwnSite, Problem>,
    app: AppState,
}

/// Format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseFormat {
    /// 3.x: an envelope with status 200.
    Envelope,
    /// 2.x: the bare value or problem details.
    Bare,
}

impl FromRequestParts<AppState> for LegacyRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Infallible> {
        let format = ResponseFormat::of(parts);
        let caller = Caller::from_request_parts(parts, app).await;
        let own_site = OwnSite::from_request_parts(parts, app).await;
        Ok(Self { format, caller, own_site, app: app.clone() })
    }
}

impl LegacyRequest {
    /// Responds with data from the selected registry.
    pub(super) async fn respond<R: RequiredRole, T: Serialize>(
        self,
        work: impl AsyncFnOnce(Authorized<R>) -> Result<T, Problem>,
    ) -> Response {
        let format = self.format;
        let answer = match self.authorize() {
            Ok(access) => work(access).await,
            Err(problem) => Err(problem),
        };
        format.render(answer)
    }

    /// Performs an action on the selected registry; the response has no data.
    pub(super) async fn perform<R: RequiredRole, T>(
        self,
        work: impl AsyncFnOnce(Authorized<R>) -> Result<T, Problem>,
    ) -> Response {
        let format = self.format;
        let done = self.respond(async |access| work(access).await.map(|_| true)).await;
        if format == ResponseFormat::Bare && done.status() == StatusCode::OK {
            return StatusCode::NO_CONTENT.into_response();
        }
        done
    }

    /// Responds with data that belongs to no registry.
    pub(super) async fn respond_globally<T: Serialize>(
        self,
        work: impl AsyncFnOnce(Caller, AppState) -> Result<T, Problem>,
    ) -> Response {
        let answer = match self.caller {
            Ok(caller) => work(caller, self.app).await,
            Err(problem) => Err(problem),
        };
        self.format.render(answer)
    }

    /// For a GET that changes something: refuses cookies, which a browser sends also for other sites, and every request of another site, because a
    /// browser may have a name and password stored, too.
    pub(super) fn reject_ambient(mut self) -> Self {
        let Ok(caller) = &self.caller else { return self };
        if caller.via.is_ambient() {
            self.caller = Err(Problem::new(
                Code::Csrf,
                "a GET that changes something is not allowed by cookie",
            )
            .with_hint("POST, or send Access-Token or an API token"));
        } else if let Err(problem) = &self.own_site {
            self.caller = Err(problem.clone());
        }
        self
    }

    /// Responds without an envelope on success: counts are bare numbers in both generations.
    pub(super) fn bare(mut self) -> Self {
        if self.caller.is_ok() {
            self.format = ResponseFormat::Bare;
        }
        self
    }

    /// Checks the role in the selected registry, else in the first visible one.
    fn authorize<R: RequiredRole>(self) -> Result<Authorized<R>, Problem> {
        let (caller, app) = (self.caller?, self.app);
        let name = selected_registry(&caller, &app)
            .ok_or_else(|| no_such_registry("that is visible to you"))?;
        let registry = caller.authorize(&app, &name, R::ROLE)?;
        Ok(Authorized::new(caller, app, registry))
    }
}

impl ResponseFormat {
    /// The format that the client of a request expects, whatever its path.
    pub(crate) fn of(parts: &Parts) -> Self {
        let path = parts.uri.path();
        let is_legacy = path.starts_with("/api/") && !path.starts_with("/api/v1/");
        let is_version_3 = parts.headers.contains_key(ACCESS_TOKEN) || path == "/api/login";
        if is_legacy && is_version_3 { Self::Envelope } else { Self::Bare }
    }

    /// Answers a request that did not reach its handler.
    pub(crate) fn refusal(self, problem: Problem) -> Response {
        self.render::<()>(Err(problem))
    }

    pub(super) fn render<T: Serialize>(self, answer: Result<T, Problem>) -> Response {
        match (self, answer) {
            (Self::Bare, Ok(answer)) => Json(answer).into_response(),
            (Self::Bare, Err(problem)) => problem.into_response(),
            (Self::Envelope, answer) => {
                let problem = answer.as_ref().err().cloned();
                let mut response = Json(envelope(answer)).into_response();
                // The status is always 200; the extension tells the middleware about the problem.
                response
                    .extensions_mut()
                    .extend(problem.map(Problem::into_extensions).unwrap_or_default());
                response
            }
        }
    }
}

/// The envelope of ElasticJob 3.x.
fn envelope<T: Serialize>(answer: Result<T, Problem>) -> Value {
    match answer {
        Ok(model) => json!({ "success": true, "errorCode": 0, "errorMsg": null, "model": model }),
        Err(problem) => {
            let code = match problem.code {
                Code::NotAuthenticated
                | Code::Forbidden
                | Code::Csrf
                | Code::RegistryNotAuthorised => 403,
                Code::Internal | Code::Unreachable | Code::TimedOut => 500,
                _ => 400,
            };
            let hint = problem.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
            json!({ "success": false, "errorCode": code, "errorMsg": format!("{}{hint}", problem.detail), "model": null })
        }
    }
}
