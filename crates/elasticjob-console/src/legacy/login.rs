//! Login of the legacy API: exchanges name and password for an access token.

use axum::{extract::State, http::request::Parts, response::Response};
use serde::{Deserialize, Serialize};

use super::envelope::ResponseFormat;
use crate::{
    audit::trail::Entry,
    auth::caller::{check_origin, request_source},
    http::{extract::Body, problem::Problem, state::AppState},
};

#[derive(Deserialize)]
pub(super) struct Credentials {
    username: String,
    password: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoginModel {
    username: String,
    access_token: String,
}

pub(super) async fn login(
    State(app): State<AppState>,
    parts: Parts,
    body: Result<Body<Credentials>, Problem>,
) -> Response {
    ResponseFormat::Envelope.render(log_in(&app, &parts, body).await)
}

async fn log_in(
    app: &AppState,
    parts: &Parts,
    body: Result<Body<Credentials>, Problem>,
) -> Result<LoginModel, Problem> {
    check_origin(&parts.headers)?;
    let Body(Credentials { username, password }) = body?;
    let source = request_source(parts, app);
    let credential = app.check_password(&username, &password, source).await?;
    let (_, access_token) = app.open_session(&username, &credential, false)?;
    let address = source.map(|source| source.address.to_string());
    app.audit.add(Entry::login(app.clock.now(), &username, "accessToken", address));
    Ok(LoginModel { username, access_token })
}
