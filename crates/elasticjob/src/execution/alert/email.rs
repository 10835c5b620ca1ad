//! Sends notices by mail.

use std::{io, time::Duration};

use async_trait::async_trait;
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, MultiPart, SinglePart, header::ContentType},
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
    },
};

use tokio::{net::TcpStream, time::timeout};

use super::{dispatcher::AlertChannel, notice::Notice};
use crate::{
    execution::{BoxError, Outbound},
    job::Email,
};

/// Limit for each step of the SMTP conversation.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// The mail submission port: the connection starts in plain text and switches to TLS with STARTTLS.
const SUBMISSION_PORT: u16 = 587;

pub(super) struct EmailChannel {
    email: Email,
    roots: Vec<u8>,
    outbound: Outbound,
}

/// When the SMTP connection is encrypted.
#[derive(Debug, PartialEq, Eq)]
enum Encryption {
    Implicit,
    /// After STARTTLS; if the server does not offer it, nothing is sent.
    StartTlsRequired,
    /// After STARTTLS if the server offers it, otherwise not at all.
    StartTlsIfOffered,
}

impl Encryption {
    /// Java ElasticJob has implicit TLS or none. This improves on it where that breaks nothing: TLS on the submission port can only mean STARTTLS,
    /// and without TLS, STARTTLS is used if the server offers it.
    fn of(email: &Email) -> Self {
        match (email.use_ssl, email.port) {
            (true, SUBMISSION_PORT) => Self::StartTlsRequired,
            (true, _) => Self::Implicit,
            (false, _) => Self::StartTlsIfOffered,
        }
    }
}

impl EmailChannel {
    pub(super) fn new(email: Email, roots: Vec<u8>, outbound: Outbound) -> Self {
        Self { email, roots, outbound }
    }

    fn message(&self, notice: &Notice) -> Result<Message, BoxError> {
        let mut message =
            Message::builder().from(mailbox(&self.email.from)?).subject(&self.email.subject);
        for to in self.email.to.iter().filter(|to| !to.is_empty()) {
            message = message.to(mailbox(to)?);
        }
        if let Some(cc) = &self.email.cc {
            message = message.cc(mailbox(cc)?);
        }
        if let Some(bcc) = &self.email.bcc {
            message = message.bcc(mailbox(bcc)?);
        }
        let part = SinglePart::builder().header(ContentType::TEXT_HTML).body(html(&notice.text()));
        Ok(message.multipart(MultiPart::mixed().singlepart(part))?)
    }

    /// The server to connect to: the host, or if only some hosts are allowed the address of it that was checked, so that the name cannot have
    /// another address meanwhile.
    async fn server(&self) -> Result<String, BoxError> {
        let Email { host, port, .. } = &self.email;
        if self.outbound.is_any() {
            return Ok(host.clone());
        }
        self.outbound.check(host, *port)?;
        let addresses = self.outbound.resolve(host, *port).await?;
        let connection = timeout(STEP_TIMEOUT, TcpStream::connect(&addresses[..])).await;
        let connection = connection.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(connection.peer_addr()?.ip().to_string())
    }

    fn channel(&self, server: String) -> Result<AsyncSmtpTransport<Tokio1Executor>, BoxError> {
        let email = &self.email;
        let mut tls = TlsParameters::builder(email.host.clone())
            .dangerous_accept_invalid_certs(self.accepts_any_certificate());
        if !self.roots.is_empty() {
            tls = tls.add_root_certificate(Certificate::from_pem(&self.roots)?);
        }
        let tls = tls.build_rustls()?;
        let tls = match Encryption::of(email) {
            Encryption::Implicit => Tls::Wrapper(tls),
            Encryption::StartTlsRequired => Tls::Required(tls),
            Encryption::StartTlsIfOffered => Tls::Opportunistic(tls),
        };
        let credentials = Credentials::new(email.username.clone(), email.password.clone());
        Ok(AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(server)
            .port(email.port)
            .tls(tls)
            .credentials(credentials)
            .timeout(Some(STEP_TIMEOUT))
            .build())
    }

    /// Whether `email.ssl.trust` names this host: `*`, or a list of hosts separated by spaces, as in Java.
    fn accepts_any_certificate(&self) -> bool {
        let trusted = self.email.ssl_trust.as_deref().unwrap_or_default();
        trusted
            .split_whitespace()
            .any(|host| host == "*" || host.eq_ignore_ascii_case(&self.email.host))
    }
}

#[async_trait]
impl AlertChannel for EmailChannel {
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
        let message = self.message(notice)?;
        let server = self.server().await?;
        self.channel(server)?.send(message).await?;
        Ok(())
    }
}

fn mailbox(address: &str) -> Result<Mailbox, BoxError> {
    address
        .parse()
        .map_err(|error| format!("cannot parse mail address {address:?}: {error}").into())
}

/// Escapes text as HTML, which is the format that Java ElasticJob sends.
fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<pre>{text}</pre>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email(use_ssl: bool, port: u16, ssl_trust: Option<&str>) -> Email {
        Email {
            host: "mail.example.org".into(),
            port,
            username: String::new(),
            password: String::new(),
            use_ssl,
            ssl_trust: ssl_trust.map(ToOwned::to_owned),
            subject: String::new(),
            from: String::new(),
            to: Vec::new(),
            cc: None,
            bcc: None,
            debug: false,
        }
    }

    #[test]
    fn tls_on_submission_port_means_starttls() {
        assert_eq!(Encryption::of(&email(true, 465, None)), Encryption::Implicit);
        assert_eq!(Encryption::of(&email(true, 587, None)), Encryption::StartTlsRequired);
        assert_eq!(Encryption::of(&email(false, 25, None)), Encryption::StartTlsIfOffered);
    }

    #[test]
    fn invalid_certificate_is_accepted_only_for_named_hosts() {
        let trusts = |trust| {
            let channel = EmailChannel::new(email(true, 465, trust), Vec::new(), Outbound::any());
            channel.accepts_any_certificate()
        };

        assert!(trusts(Some("*")) && trusts(Some("other MAIL.example.org")));
        assert!(!trusts(None) && !trusts(Some("other")));
    }

    #[test]
    fn html_in_message_is_escaped() {
        assert_eq!(html("a < b && c > d"), "<pre>a &lt; b &amp;&amp; c &gt; d</pre>");
    }
}
