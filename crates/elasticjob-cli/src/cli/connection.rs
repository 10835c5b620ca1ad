//! The connection of a command to its registry, and formatting helpers that commands share.

use std::sync::Arc;

use elasticjob::{
    admin::{Admin, AdminError},
    job::JobName,
    registry::{self, Registry, RegistryUrl},
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::Global;
use crate::error::{Code, Error};
use elasticjob_jobfile as jobfile;

/// A connected registry and the admin client on it.
pub(super) struct Connection {
    pub(super) admin: Admin,
    pub(super) registry: Arc<dyn Registry>,
}

impl Connection {
    /// Connects to the registry, runs `work` and closes the connection. `file_url` is used if neither flag nor environment sets a URL.
    pub(super) fn with<T>(
        global: &Global,
        file_url: Option<&str>,
        work: impl AsyncFnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let url: RegistryUrl = global.registry(file_url).parse()?;
        block_on_current_thread(async {
            let registry = registry::connect_read_only(&url).await?;
            let admin = Admin::new(Arc::clone(&registry)).max_shards(global.max_shards);
            let connection = Self { admin, registry };
            let answer = work(&connection).await;
            connection.registry.close().await;
            answer
        })
    }

    /// Passes on a result about a job; if the job does not exist, the error suggests the closest name.
    pub(super) async fn or_suggest<T>(
        &self,
        job: &JobName,
        answer: Result<T, AdminError>,
    ) -> Result<T, Error> {
        match answer {
            Err(AdminError::NotFound { what, hint }) => {
                let known = self.admin.jobs().await.unwrap_or_default().into_iter();
                // The job itself exists but something else of it does not: keep that hint.
                let mut known = known.map(|known| (known.name.clone(), known.name));
                let hint = match jobfile::nearest(job.as_str(), &mut known) {
                    Some(near) if near != job.as_str() => format!("did you mean {near}?"),
                    _ => hint,
                };
                Err(Error::new(Code::NotFound, what).with_hint(hint))
            }
            answer => Ok(answer?),
        }
    }
}

pub(super) fn block_on_current_thread<T>(
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Error::new(Code::Internal, format!("cannot start the runtime: {error}"))
    })?;
    runtime.block_on(work)
}

pub(super) fn to_json(data: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(data)
        .map_err(|error| Error::new(Code::Internal, format!("cannot be written as JSON: {error}")))
}

/// A status as it is spelled in JSON.
pub(super) fn status_text(status: &impl Serialize) -> String {
    let value = serde_json::to_value(status).unwrap_or_default();
    value.as_str().unwrap_or("-").to_owned()
}

/// An instant to the second, or a dash.
pub(super) fn format_instant(at: Option<Timestamp>) -> String {
    at.map_or("-".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

pub(super) fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

/// Names separated by commas, or `none`.
pub(super) fn join_names<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
