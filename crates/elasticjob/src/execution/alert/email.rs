//! Notices by mail.

use std::time::Duration;

use async_trait::async_trait;
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, MultiPart, SinglePart, header::ContentType},
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
    },
};

use super::{desk::Messenger, notice::Notice};
use crate::{execution::BoxError, job::Email};

/// How long each step of the conversation may take.
const STEP: Duration = Duration::from_secs(10);

/// The port on which a mail server begins in the clear and is asked for TLS.
const SUBMISSION: u16 = 587;

/// Sends notices by mail.
pub(super) struct Mail {
    email: Email,
    roots: Vec<u8>,
}

/// When the conversation is encrypted.
#[derive(Debug, PartialEq, Eq)]
enum Encryption {
    FromTheStart,
    /// After STARTTLS; without it, nothing is sent.
    OnceAskedFor,
    /// After STARTTLS, if the server can.
    IfPossible,
}

impl Encryption {
    /// The ancestor knows TLS from the start and no TLS at all. We do better where that breaks nothing: TLS on the port for mail
    /// submission can only mean STARTTLS, and without TLS it is used if the server offers it.
    fn of(email: &Email) -> Self {
        match (email.use_ssl, email.port) {
            (true, SUBMISSION) => Self::OnceAskedFor,
            (true, _) => Self::FromTheStart,
            (false, _) => Self::IfPossible,
        }
    }
}

impl Mail {
    pub(super) fn new(email: Email, roots: Vec<u8>) -> Self {
        Self { email, roots }
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

    fn transport(&self) -> Result<AsyncSmtpTransport<Tokio1Executor>, BoxError> {
        let email = &self.email;
        let mut tls = TlsParameters::builder(email.host.clone())
            .dangerous_accept_invalid_certs(self.trusts_unseen());
        if !self.roots.is_empty() {
            tls = tls.add_root_certificate(Certificate::from_pem(&self.roots)?);
        }
        let tls = tls.build_rustls()?;
        let tls = match Encryption::of(email) {
            Encryption::FromTheStart => Tls::Wrapper(tls),
            Encryption::OnceAskedFor => Tls::Required(tls),
            Encryption::IfPossible => Tls::Opportunistic(tls),
        };
        let credentials = Credentials::new(email.username.clone(), email.password.clone());
        Ok(AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&email.host)
            .port(email.port)
            .tls(tls)
            .credentials(credentials)
            .timeout(Some(STEP))
            .build())
    }

    /// `*`, or a list of hosts, as Java takes it.
    fn trusts_unseen(&self) -> bool {
        let trusted = self.email.ssl_trust.as_deref().unwrap_or_default();
        trusted
            .split_whitespace()
            .any(|host| host == "*" || host.eq_ignore_ascii_case(&self.email.host))
    }
}

#[async_trait]
impl Messenger for Mail {
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
        let message = self.message(notice)?;
        self.transport()?.send(message).await?;
        Ok(())
    }
}

fn mailbox(address: &str) -> Result<Mailbox, BoxError> {
    address.parse().map_err(|error| format!("the address {address:?}: {error}").into())
}

/// Text as HTML, which is what the ancestor sends.
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
    fn tls_on_the_submission_port_means_starttls() {
        assert_eq!(Encryption::of(&email(true, 465, None)), Encryption::FromTheStart);
        assert_eq!(Encryption::of(&email(true, 587, None)), Encryption::OnceAskedFor);
        assert_eq!(Encryption::of(&email(false, 25, None)), Encryption::IfPossible);
    }

    #[test]
    fn only_a_server_that_is_named_is_trusted_unseen() {
        let trusts = |trust| Mail::new(email(true, 465, trust), Vec::new()).trusts_unseen();

        assert!(trusts(Some("*")) && trusts(Some("other MAIL.example.org")));
        assert!(!trusts(None) && !trusts(Some("other")));
    }

    #[test]
    fn a_message_cannot_smuggle_html() {
        assert_eq!(html("a < b && c > d"), "<pre>a &lt; b &amp;&amp; c &gt; d</pre>");
    }
}
