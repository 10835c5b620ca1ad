//! Logging in as the ancestor's clients do: name and password for an access token.

use axum::{extract::State, http::request::Parts, response::Response};
use serde::{Deserialize, Serialize};

use super::envelope::Form;
use crate::{
    audit::trail::Entry,
    auth::who::{address, check_origin},
    http::{extract::Body, problem::Problem, state::Shared},
};

#[derive(Deserialize)]
pub(super) struct Credentials {
    username: String,
    password: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoggedIn {
    username: String,
    access_token: String,
}

pub(super) async fn login(
    State(shared): State<Shared>,
    parts: Parts,
    body: Result<Body<Credentials>, Problem>,
) -> Response {
    Form::Envelope.tell(enter(&shared, &parts, body).await)
}

async fn enter(
    shared: &Shared,
    parts: &Parts,
    body: Result<Body<Credentials>, Problem>,
) -> Result<LoggedIn, Problem> {
    check_origin(&parts.headers)?;
    let Body(Credentials { username, password }) = body?;
    let address = address(parts, shared);
    shared.check_password(&username, &password, address.as_deref()).await?;
    shared.audit.add(Entry::of_login(shared.clock.now(), &username, "accessToken", address));
    let (_, access_token) =
        shared.sessions.begin(&username, false, None, shared.clock.monotonic())?;
    Ok(LoggedIn { username, access_token })
}
