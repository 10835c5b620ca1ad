//! Settings and startup of the console.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use elasticjob::job::ShardLimit;
use elasticjob::runtime::{Clock, SystemClock};
use tokio::net::TcpListener;

use super::{
    connections::Connections,
    guard::AllowedHosts,
    limits::Limits,
    router::router,
    server::{ConsoleServer, Transport},
    state::AppState,
    stores::{Stores, create_data_dir},
    tls::TlsIdentity,
};
use crate::{
    auth::{
        accounts::Accounts,
        oidc::{self, Oidc},
        proxies::TrustedProxies,
        random_secret,
    },
    error::{ConsoleError, ConsoleErrorKind},
    registries::catalog::AdditionPolicy,
};

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
    pub limits: Limits,
    pub registry_additions: AdditionPolicy,
    pub history_additions: AdditionPolicy,
    /// OpenID Connect provider, if any.
    pub oidc: Option<oidc::Settings>,
    pub first_account: FirstAccount,
    /// How many shards a job may have: one with more is listed with the reason, and is not stored.
    pub max_shards: ShardLimit,
}

/// The account that is created if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstAccount {
    /// `admin` with a generated password that is printed once.
    Generated,
    /// `root` with the password `root`: for local development.
    Root,
}

impl FirstAccount {
    /// Creates the account if there is none. Returns its password if that is to be printed.
    async fn create_if_none(self, accounts: &Accounts) -> Result<Option<String>, ConsoleError> {
        if !accounts.is_empty() {
            return Ok(None);
        }
        match self {
            Self::Root => {
                accounts.create_first(DEV_ACCOUNT, DEV_ACCOUNT).await?;
                Ok(None)
            }
            Self::Generated => {
                let password = random_secret(15)?;
                accounts.create_first("admin", &password).await?;
                Ok(Some(password))
            }
        }
    }
}

impl Console {
    /// Binds the address and opens all stores; requests are answered once it is [served](ConsoleServer::serve).
    pub async fn listen(self) -> Result<ConsoleServer, ConsoleError> {
        self.refuse_dev_account_on_network()?;
        self.limits.check()?;
        if let Some(folder) = &self.data_dir {
            create_data_dir(folder)?;
        }
        let (listener, address) = self.bind().await?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let stores = Stores::open(&self, &clock)?;
        let password = self.first_account.create_if_none(&stores.accounts).await?;
        refuse_dev_password_on_network(address, &stores.accounts).await?;
        let console_url = self.console_url(address);
        let is_https = self.is_https || self.tls.is_some();
        let oidc = self.oidc.map(|settings| Oidc::new(settings, &console_url)).transpose()?;
        let (proxies, limits) = (self.proxies.clone(), self.limits);
        let app =
            AppState::new(clock, stores, oidc, self.proxies, self.session_idle, limits, is_https);
        let detached_changes = app.detached_changes.clone();
        let router = router(app, AllowedHosts::new(address, self.hosts, is_https));
        let transport = Transport::new(listener, self.tls.as_ref())?;
        let connections = Connections::new(limits);
        Ok(ConsoleServer {
            transport,
            router,
            connections,
            proxies,
            address,
            password,
            detached_changes,
        })
    }

    /// The account of `elasticjob dev` has a known password, so only this machine may reach it.
    fn refuse_dev_account_on_network(&self) -> Result<(), ConsoleError> {
        if self.first_account == FirstAccount::Root && !self.listen.ip().is_loopback() {
            return Err(ConsoleError::new(
                ConsoleErrorKind::Refused,
                format!("{} is reachable from other machines, and the password of dev is publicly known", self.listen),
            ).with_hint("use elasticjob console, which has accounts"));
        }
        Ok(())
    }

    async fn bind(&self) -> Result<(TcpListener, SocketAddr), ConsoleError> {
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            ConsoleError::setting(format!("cannot listen on {}: {error}", self.listen))
                .with_hint("choose another address with --listen, or port 0 for any free port")
        })?;
        let address = listener.local_addr().map_err(|error| {
            ConsoleError::new(ConsoleErrorKind::Internal, format!("cannot listen: {error}"))
        })?;
        Ok((listener, address))
    }

    fn console_url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }
}

/// A data folder of `elasticjob dev` may have an account with a known password: it is not served to other machines.
async fn refuse_dev_password_on_network(
    address: SocketAddr,
    accounts: &Accounts,
) -> Result<(), ConsoleError> {
    let is_public = !address.ip().is_loopback();
    let turn = accounts.hash_queue.turn().await?;
    let has_dev_password = accounts.verify_password(turn, DEV_ACCOUNT, DEV_ACCOUNT).await.is_some();
    if is_public && has_dev_password {
        return Err(ConsoleError::new(
            ConsoleErrorKind::Refused,
            format!("{address} is reachable from other machines, and the account {DEV_ACCOUNT} has a publicly known password"),
        ).with_hint("change it on loopback first"));
    }
    Ok(())
}
