//! Settings, listening, all routes put together.

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
    detached_changes::Errands,
    guard::{Hosts, guard},
    health,
    lifecycle::pass,
    openapi,
    pages::{nothing, pages},
    problem::{Code as ProblemCode, Problem},
    state::Shared,
    tls::{Identity, Tls},
};
use crate::error::{ConsoleError, Kind};
use crate::{
    audit::trail::Audit,
    auth::{
        accounts::Accounts,
        oidc::{self, Oidc},
        proxies::Proxies,
        secret,
    },
    history::stores::Books,
    legacy,
    registries::{catalog::Adding, connections::Registries},
};

/// How much a request may carry; a configuration is far smaller.
const LARGEST_BODY: usize = 256 * 1024;

/// How long somebody may take to say what they want: the head of a request, also of the next one on the same connection.
const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// How many may be connected at once; others wait to be let in.
const MOST_CONNECTIONS: usize = 4_096;

/// The account that `dev` begins with, and its password.
const ROOT: &str = "root";

/// A console, as flags and its file describe it.
pub struct Console {
    /// Names and URLs.
    pub registries: Vec<(String, String)>,
    /// Registries and where their history is.
    pub histories: Vec<(String, String)>,
    pub listen: SocketAddr,
    /// Where accounts, added registries and the audit are kept; without, in memory.
    pub data: Option<PathBuf>,
    /// What else it is called.
    pub hosts: Vec<String>,
    /// Who is believed about where a request comes from.
    pub proxies: Proxies,
    /// Whether browsers come by HTTPS, through a proxy.
    pub is_secure: bool,
    /// Speaks HTTPS itself, as this.
    pub identity: Option<Identity>,
    /// After how long a session that is not used is over.
    pub idle: Duration,
    pub adding: Adding,
    /// The same of histories.
    pub adding_histories: Adding,
    /// Where else somebody may log in.
    pub oidc: Option<oidc::Settings>,
    pub first: First,
}

/// Who is there when nobody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// An admin with a password that is made up and told once.
    Generated,
    /// `root` with the password `root`: for a machine of one's own.
    Root,
}

/// Where requests come in.
enum Entrance {
    Plain(TcpListener),
    Secure(Box<Tls>),
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A console that listens.
pub struct Listening {
    door: Entrance,
    router: Router,
    pub address: SocketAddr,
    /// The password that was made up, to be told once.
    pub password: Option<String>,
    /// Changes that are under way: whoever stops the console waits for them.
    pub errands: Errands,
}

impl Console {
    /// Listens, and answers once it is [served](Listening::serve).
    pub async fn listen(self) -> Result<Listening, ConsoleError> {
        if self.first == First::Root && !self.listen.ip().is_loopback() {
            return Err(ConsoleError::new(
                Kind::Refused,
                format!(
                    "{} can be reached from elsewhere, and everybody knows the password of dev; hint: elasticjob console has accounts",
                    self.listen
                ),
            ));
        }
        if let Some(folder) = &self.data {
            fs::create_dir_all(folder).map_err(|error| {
                ConsoleError::setting(format!(
                    "cannot make the folder {}: {error}; hint: --data takes another",
                    folder.display()
                ))
            })?;
        }
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            ConsoleError::setting(format!("cannot listen on {}: {error}; hint: --listen takes another address, or port 0 for a free one", self.listen))
        })?;
        let internal = |error: std::io::Error| {
            ConsoleError::new(Kind::Internal, format!("cannot listen: {error}"))
        };
        let address = listener.local_addr().map_err(internal)?;

        let file = |name: &str| self.data.as_ref().map(|folder| folder.join(name));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let registries = Registries::open(
            &self.registries,
            self.adding,
            file("registries.json"),
            Arc::clone(&clock),
        )
        .map_err(told)?;
        for (name, _) in &self.histories {
            if !self.registries.iter().any(|(known, _)| known == name) {
                return Err(ConsoleError::setting(format!(
                    "there is no registry {name} to have a history; hint: --history NAME=URL, and NAME is one of --registry's"
                )));
            }
        }
        let books = Books::open(
            &self.histories,
            self.adding_histories,
            file("histories.json"),
            Arc::clone(&clock),
        )
        .map_err(told)?;
        let accounts = Accounts::open(file("accounts.json")).map_err(told)?;
        let audit = Audit::open(file("audit.jsonl"))
            .map_err(|error| ConsoleError::setting(format!("cannot read the audit: {error}")))?;
        let mut password = None;
        if accounts.is_empty() {
            let (name, made) = match self.first {
                First::Root => (ROOT, ROOT.to_owned()),
                First::Generated => ("admin", secret(15).map_err(told)?),
            };
            accounts.begin(name, &made).map_err(told)?;
            password = (self.first == First::Generated).then_some(made);
        }
        if !address.ip().is_loopback() && accounts.knows(ROOT, ROOT).await.map_err(told)? {
            return Err(ConsoleError::new(
                Kind::Refused,
                format!(
                    "{address} can be reached from elsewhere, and the account {ROOT} has the password that everybody knows; hint: change it on loopback first"
                ),
            ));
        }
        let is_secure = self.is_secure || self.identity.is_some();
        let scheme = if self.identity.is_some() { "https" } else { "http" };
        let home = format!("{scheme}://{address}");
        let oidc =
            self.oidc.map(|settings| Oidc::new(settings, &home)).transpose().map_err(told)?;
        let shared = Shared::new(
            clock,
            (registries, books),
            (accounts, oidc),
            audit,
            self.proxies,
            self.idle,
            is_secure,
        );
        let errands = shared.errands.clone();
        let router = router(shared, Hosts::new(address, self.hosts, is_secure));
        let door = match &self.identity {
            Some(identity) => Entrance::Secure(Box::new(Tls::new(listener, identity)?)),
            None => Entrance::Plain(listener),
        };
        Ok(Listening { door, router, address, password, errands })
    }
}

impl Listening {
    /// Where a browser finds it.
    pub fn url(&self) -> String {
        let scheme = match self.door {
            Entrance::Plain(_) => "http",
            Entrance::Secure(_) => "https",
        };
        format!("{scheme}://{}/", self.address)
    }

    /// Answers, for ever.
    pub async fn serve(self) {
        match self.door {
            Entrance::Plain(listener) => answer(listener, self.router).await,
            Entrance::Secure(tls) => answer(*tls, self.router).await,
        }
    }
}

/// Answers whoever comes, for ever. Who does not say what they want in time keeps no connection.
async fn answer<L: Listener<Addr = SocketAddr>>(mut listener: L, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (stream, address) = listener.accept(), if connections.len() < MOST_CONNECTIONS => {
                connections.spawn(talk(stream, address, router.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn talk<S>(stream: S, address: SocketAddr, router: Router)
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
        .header_read_timeout(HEADERS_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, %address, "a connection ended");
    }
}

fn router(shared: Shared, hosts: Hosts) -> Router {
    Router::new()
        .merge(openapi::router())
        .merge(legacy::router())
        .merge(health::router())
        .fallback(pages)
        .method_not_allowed_fallback(not_so)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(from_fn_with_state(shared.clone(), pass))
        .layer(from_fn_with_state(hosts, guard))
        .with_state(shared)
}

async fn not_so(uri: Uri) -> Response {
    let text = format!(
        "{} is not done with this method; hint: GET /api/v1/openapi.json says what there is",
        uri.path()
    );
    if uri.path().starts_with("/api") {
        return Problem::new(ProblemCode::MethodNotAllowed, text).into_response();
    }
    nothing(uri.path()).into_response()
}

fn told(problem: Problem) -> ConsoleError {
    let kind = if problem.code == ProblemCode::Internal { Kind::Internal } else { Kind::Setting };
    let Problem { detail: message, hint, .. } = problem;
    ConsoleError { kind, problem: elasticjob::problem::Problem { message, hint } }
}
