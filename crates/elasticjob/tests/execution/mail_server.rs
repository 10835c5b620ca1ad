//! A mail server that accepts every mail and records what clients send.

use std::net::SocketAddr;

use elasticjob::runtime::Tasks;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedSender},
};
use tokio_rustls::TlsAcceptor;

use crate::certificate;

/// Which kind of TLS the server offers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Implicit,
    StartTls,
    None,
}

/// A line from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientLine {
    pub(crate) text: String,
    pub(crate) is_encrypted: bool,
}

pub(crate) struct MailServer {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: String,
    conversation: mpsc::UnboundedReceiver<ClientLine>,
    _tasks: Tasks,
}

impl MailServer {
    pub(crate) async fn start(tls_mode: TlsMode) -> Self {
        let (acceptor, certificate) = certificate::acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, conversation) = mpsc::unbounded_channel();
        let mut tasks = Tasks::new();
        tasks.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // An error only means that the client hung up.
                let _ = serve(socket, tls_mode, &acceptor, &sender).await;
            }
        });
        Self { address, certificate, conversation, _tasks: tasks }
    }

    /// All lines received so far.
    pub(crate) fn received(&mut self) -> Vec<ClientLine> {
        let mut lines = Vec::new();
        while let Ok(line) = self.conversation.try_recv() {
            lines.push(line);
        }
        lines
    }
}

async fn serve(
    socket: TcpStream,
    tls_mode: TlsMode,
    acceptor: &TlsAcceptor,
    sender: &UnboundedSender<ClientLine>,
) -> std::io::Result<()> {
    if tls_mode == TlsMode::Implicit {
        let mut socket = acceptor.accept(socket).await?;
        socket.write_all(b"220 here\r\n").await?;
        converse(&mut socket, true, false, sender).await?;
        return Ok(());
    }
    let mut socket = socket;
    socket.write_all(b"220 here\r\n").await?;
    if converse(&mut socket, false, tls_mode == TlsMode::StartTls, sender).await? {
        let mut socket = acceptor.accept(socket).await?;
        converse(&mut socket, true, false, sender).await?;
    }
    Ok(())
}

/// Responds until the client hangs up or requests TLS; returns whether it requested TLS.
async fn converse(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    is_encrypted: bool,
    offers_tls: bool,
    sender: &UnboundedSender<ClientLine>,
) -> std::io::Result<bool> {
    let mut socket = BufReader::new(socket);
    let mut in_mail = false;
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await? == 0 {
            return Ok(false);
        }
        let line = line.trim_end().to_owned();
        let _ = sender.send(ClientLine { text: line.clone(), is_encrypted });
        let word = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let response = match word.as_str() {
            _ if in_mail && line == "." => {
                in_mail = false;
                "250 taken\r\n"
            }
            _ if in_mail => continue,
            "EHLO" if offers_tls => "250-here\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n",
            "EHLO" => "250-here\r\n250 AUTH PLAIN\r\n",
            "STARTTLS" => "220 go ahead\r\n",
            "AUTH" => "235 welcome\r\n",
            "DATA" => {
                in_mail = true;
                "354 go ahead\r\n"
            }
            "QUIT" => "221 bye\r\n",
            _ => "250 fine\r\n",
        };
        socket.write_all(response.as_bytes()).await?;
        socket.flush().await?;
        if word == "STARTTLS" {
            return Ok(true);
        }
    }
}
