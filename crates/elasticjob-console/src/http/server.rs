//! Settings, startup and the complete router of the console.

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, DefaultBodyLimit},
    http::Uri,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    serve::Listener,
};
use elasticjob::runtime::{Clock, SystemClock};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};

use super::{
    detached_changes::DetachedChanges,
    guard::{AllowedHosts, guard},
    health,
    lifecycle::run_request,
    openapi,
    pages::{no_such_path, pages},
    problem::{Code as ProblemCode, Problem},
    state::AppState,
    tls::{TlsIdentity, TlsListener},
};
use crate::error::{ConsoleError, ConsoleErrorKind};
use crate::{
    audit::trail::AuditTrail,
    auth::{
        accounts::Accounts,
        oidc::{self, Oidc},
        proxies::TrustedProxies,
        random_secret,
    },
    history::stores::HistoryConnections,
    legacy,
    registries::{catalog::AdditionPolicy, connections::Registries},
};

/// Limit of a request body; a configuration is far smaller.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Limit for sending the head of a request, also of the next one on the same connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Further connections wait to be accepted.
const MAX_CONNECTIONS: usize = 4_096;

/// Name and password of the first account of `elasticjob dev`.
const DEV_ACCOUNT: &str = "root";

/// Settings of a console, from flags and its configuration file.
pub struct Console {
    /// Names and URLs of the registries.
    pub registries: Vec<(String, String)>,
    /// Registry names and the URLs of their history stores.
    pub histories: Vec<(String, String)>,
    pub listen: SocketAddr,
    /// Folder of accounts, added registries and the audit; if unset, they are kept in memory.
    pub data_dir: Option<PathBuf>,
    /// Additional host names under which the console is reachable.
    pub hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub proxies: TrustedProxies,
    /// Browsers reach the console by HTTPS, through a proxy.
    pub is_https: bool,
    /// Certificate and key, if the console terminates TLS itself.
    pub tls: Option<TlsIdentity>,
    /// Sessions expire after being unused for this long.
    pub session_idle: Duration,
    pub registry_additions: AdditionPolicy,
    pub history_additions: AdditionPolicy,
    /// OpenID Connect provider, if any.
    pub oidc: Option<oidc::Settings>,
    pub first_account: FirstAccount,
}

/// The account that is created if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstAccount {
    /// `admin` with a generated password that is printed once.
    Generated,
    /// `root` with the password `root`: for local development.
    Root,
}

enum Transport {
    Plain(TcpListener),
    Tls(Box<TlsListener>),
}

/// Address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A console that is bound to its address, ready to serve.
pub struct ConsoleServer {
    transport: Transport,
    router: Router,
    pub address: SocketAddr,
    /// The generated password of the first account, to be printed once.
    pub password: Option<String>,
    /// Running changes; a shutdown should wait for them.
    pub detached_changes: DetachedChanges,
}

impl Console {
    /// Binds the address and opens all stores; requests are answered once it is [served](ConsoleServer::serve).
    pub async fn listen(self) -> Result<ConsoleServer, ConsoleError> {
        if self.first_account == FirstAccount::Root && !self.listen.ip().is_loopback() {
            return Err(ConsoleError::new(
                ConsoleErrorKind::Refused,
                format!("{} is reachable from other machines, and the password of dev is publicly known", self.listen),
            ).with_hint("use elasticjob console, which has accounts"));
        }
        if let Some(folder) = &self.data_dir {
            fs::create_dir_all(folder).map_err(|error| {
                ConsoleError::setting(format!(
                    "cannot create the folder {}: {error}",
                    folder.display()
                ))
                .with_hint("choose another with --data")
            })?;
        }
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            ConsoleError::setting(format!("cannot listen on {}: {error}", self.listen))
                .with_hint("choose another address with --listen, or port 0 for any free port")
        })?;
        let internal = |error: std::io::Error| {
            ConsoleError::new(ConsoleErrorKind::Internal, format!("cannot listen: {error}"))
        };
        let address = listener.local_addr().map_err(internal)?;

        let file = |name: &str| self.data_dir.as_ref().map(|folder| folder.join(name));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let registries = Registries::open(
            &self.registries,
            self.registry_additions,
            file("registries.json"),
            Arc::clone(&clock),
        )
        .map_err(startup_error)?;
        for (name, _) in &self.histories {
            if !self.registries.iter().any(|(known, _)| known == name) {
                return Err(ConsoleError::setting(format!(
                    "cannot add a history: there is no registry {name}"
                ))
                .with_hint("--history NAME=URL, where NAME is one of the registries"));
            }
        }
        let histories = HistoryConnections::open(
            &self.histories,
            self.history_additions,
            file("histories.json"),
            Arc::clone(&clock),
        )
        .map_err(startup_error)?;
        let accounts = Accounts::open(file("accounts.json")).map_err(startup_error)?;
        let audit = AuditTrail::open(file("audit.jsonl")).map_err(|error| {
            ConsoleError::setting(format!("cannot read the audit file: {error}"))
        })?;
        let mut password = None;
        if accounts.is_empty() {
            let (name, new_password) = match self.first_account {
                FirstAccount::Root => (DEV_ACCOUNT, DEV_ACCOUNT.to_owned()),
                FirstAccount::Generated => ("admin", random_secret(15).map_err(startup_error)?),
            };
            accounts.create_first(name, &new_password).map_err(startup_error)?;
            password = (self.first_account == FirstAccount::Generated).then_some(new_password);
        }
        if !address.ip().is_loopback()
            && accounts.verify_password(DEV_ACCOUNT, DEV_ACCOUNT).await.map_err(startup_error)?
        {
            return Err(ConsoleError::new(
                ConsoleErrorKind::Refused,
                format!("{address} is reachable from other machines, and the account {DEV_ACCOUNT} has a publicly known password"),
            ).with_hint("change it on loopback first"));
        }
        let is_https = self.is_https || self.tls.is_some();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let console_url = format!("{scheme}://{address}");
        let oidc = self
            .oidc
            .map(|settings| Oidc::new(settings, &console_url))
            .transpose()
            .map_err(startup_error)?;
        let app = AppState::new(
            clock,
            (registries, histories),
            (accounts, oidc),
            audit,
            self.proxies,
            self.session_idle,
            is_https,
        );
        let detached_changes = app.detached_changes.clone();
        let router = router(app, AllowedHosts::new(address, self.hosts, is_https));
        let transport = match &self.tls {
            Some(tls) => Transport::Tls(Box::new(TlsListener::new(listener, tls)?)),
            None => Transport::Plain(listener),
        };
        Ok(ConsoleServer { transport, router, address, password, detached_changes })
    }
}

impl ConsoleServer {
    pub fn url(&self) -> String {
        let scheme = match self.transport {
            Transport::Plain(_) => "http",
            Transport::Tls(_) => "https",
        };
        format!("{scheme}://{}/", self.address)
    }

    /// Answers requests forever.
    pub async fn serve(self) {
        match self.transport {
            Transport::Plain(listener) => serve_connections(listener, self.router).await,
            Transport::Tls(tls) => serve_connections(*tls, self.router).await,
        }
    }
}

/// Accepts connections forever. A client that does not send the head of a request in time is disconnected.
async fn serve_connections<L: Listener<Addr = SocketAddr>>(mut listener: L, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (stream, address) = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                connections.spawn(serve_connection(stream, address, router.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection<S>(stream: S, address: SocketAddr, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(Peer(address)));
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, %address, "connection failed");
    }
}

fn router(app: AppState, hosts: AllowedHosts) -> Router {
    Router::new()
        .merge(openapi::router())
        .merge(legacy::router())
        .merge(health::router())
        .fallback(pages)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(app.clone(), run_request))
        .layer(from_fn_with_state(hosts, guard))
        .with_state(app)
}

async fn method_not_allowed(uri: Uri) -> Response {
    let text = format!("{} does not support this method", uri.path());
    if uri.path().starts_with("/api") {
        return Problem::new(ProblemCode::MethodNotAllowed, text)
            .with_hint("GET /api/v1/openapi.json lists all paths")
            .into_response();
    }
    no_such_path(uri.path()).into_response()
}

fn startup_error(problem: Problem) -> ConsoleError {
    let kind = if problem.code == ProblemCode::Internal {
        ConsoleErrorKind::Internal
    } else {
        ConsoleErrorKind::InvalidSetting
    };
    let Problem { detail: message, hint, .. } = problem;
    ConsoleError { kind, problem: elasticjob::problem::Problem { message, hint } }
}
