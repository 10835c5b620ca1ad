//! Who asks, and in which form they are answered.

use std::convert::Infallible;

use axum::{
    Json,
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::registry_center::chosen;
use crate::{
    auth::{
        accounts::Role,
        who::{ACCESS_TOKEN, Door, Who},
    },
    http::{
        problem::{Code, Problem},
        state::Shared,
    },
    registries::connections::unknown,
};

/// Somebody who uses the ancestor's paths; who that is, or why they are nobody, is found out when they are answered.
pub(super) struct Asker {
    form: Form,
    who: Result<Who, Problem>,
    shared: Shared,
}

/// In which form an answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// 3.x: an envelope, status 200.
    Envelope,
    /// 2.x.
    Bare,
}

impl FromRequestParts<Shared> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Infallible> {
        let form =
            if parts.headers.contains_key(ACCESS_TOKEN) { Form::Envelope } else { Form::Bare };
        let who = Who::from_request_parts(parts, shared).await;
        Ok(Self { form, who, shared: shared.clone() })
    }
}

impl Asker {
    /// Answers with data.
    pub(super) async fn ask<R, T: Serialize>(
        self,
        role: Role,
        work: impl AsyncFnOnce(Door<R>) -> Result<T, Problem>,
    ) -> Response {
        let form = self.form;
        let answer = match self.door(role) {
            Ok(door) => work(door).await,
            Err(problem) => Err(problem),
        };
        form.tell(answer)
    }

    /// Does something; there is nothing to tell but that it was done.
    pub(super) async fn act<R, T>(
        self,
        role: Role,
        work: impl AsyncFnOnce(Door<R>) -> Result<T, Problem>,
    ) -> Response {
        let form = self.form;
        let done = self.ask(role, async |door| work(door).await.map(|_| true)).await;
        if form == Form::Bare && done.status() == StatusCode::OK {
            return StatusCode::NO_CONTENT.into_response();
        }
        done
    }

    /// About the console itself.
    pub(super) async fn about<T: Serialize>(
        self,
        work: impl AsyncFnOnce(Who, Shared) -> Result<T, Problem>,
    ) -> Response {
        let answer = match self.who {
            Ok(who) => work(who, self.shared).await,
            Err(problem) => Err(problem),
        };
        self.form.tell(answer)
    }

    /// The same, for something that a GET does: a browser must not have been led to it.
    pub(super) fn deliberate(mut self) -> Self {
        if self.who.as_ref().is_ok_and(|who| who.via.is_ambient()) {
            self.who = Err(Problem::new(
                Code::Csrf,
                "a GET that changes something is not done for a cookie; hint: POST, or send Access-Token or an API token",
            ));
        }
        self
    }

    /// The same, answered without an envelope if all is well: counts are bare numbers in both generations.
    pub(super) fn bare(mut self) -> Self {
        if self.who.is_ok() {
            self.form = Form::Bare;
        }
        self
    }

    /// The registry they have chosen, else the first they may look at.
    fn door<R>(self, role: Role) -> Result<Door<R>, Problem> {
        let (who, shared) = (self.who?, self.shared);
        let name = chosen(&who, &shared).ok_or_else(|| unknown("that you may look at"))?;
        let place = who.at(&shared, &name, role)?;
        Ok(Door::to(who, shared, place))
    }
}

impl Form {
    pub(super) fn tell<T: Serialize>(self, answer: Result<T, Problem>) -> Response {
        match (self, answer) {
            (Self::Bare, Ok(answer)) => Json(answer).into_response(),
            (Self::Bare, Err(problem)) => problem.into_response(),
            (Self::Envelope, answer) => {
                let problem = answer.as_ref().err().cloned();
                let mut response = Json(envelope(answer)).into_response();
                // The status says nothing of it.
                response.extensions_mut().extend(problem.map(Problem::told).unwrap_or_default());
                response
            }
        }
    }
}

/// The ancestor's envelope.
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
