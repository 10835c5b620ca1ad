//! A mail server that takes every mail and remembers the conversation.

use std::net::SocketAddr;

use elasticjob::runtime::Tasks;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedSender},
};
use tokio_rustls::TlsAcceptor;

use crate::certificate;

/// When the server speaks TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    TlsFromTheStart,
    StartTls,
    NoTls,
}

/// A line a client said, and whether under TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) line: String,
    pub(crate) secret: bool,
}

pub(crate) struct MailServer {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: String,
    conversation: mpsc::UnboundedReceiver<Said>,
    _tasks: Tasks,
}

impl MailServer {
    pub(crate) async fn start(speaks: Speaks) -> Self {
        let (acceptor, certificate) = certificate::acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (told, conversation) = mpsc::unbounded_channel();
        let mut tasks = Tasks::new();
        tasks.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // A client that hangs up has said what it wanted to say.
                let _ = serve(socket, speaks, &acceptor, &told).await;
            }
        });
        Self { address, certificate, conversation, _tasks: tasks }
    }

    /// Everything clients have said so far.
    pub(crate) fn said(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        while let Ok(line) = self.conversation.try_recv() {
            said.push(line);
        }
        said
    }
}

async fn serve(
    socket: TcpStream,
    speaks: Speaks,
    acceptor: &TlsAcceptor,
    told: &UnboundedSender<Said>,
) -> std::io::Result<()> {
    if speaks == Speaks::TlsFromTheStart {
        let mut socket = acceptor.accept(socket).await?;
        socket.write_all(b"220 here\r\n").await?;
        converse(&mut socket, true, false, told).await?;
        return Ok(());
    }
    let mut socket = socket;
    socket.write_all(b"220 here\r\n").await?;
    if converse(&mut socket, false, speaks == Speaks::StartTls, told).await? {
        let mut socket = acceptor.accept(socket).await?;
        converse(&mut socket, true, false, told).await?;
    }
    Ok(())
}

/// Answers until the client leaves, or asks for TLS; says which.
async fn converse(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    secret: bool,
    offers_tls: bool,
    told: &UnboundedSender<Said>,
) -> std::io::Result<bool> {
    let mut socket = BufReader::new(socket);
    let mut in_mail = false;
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await? == 0 {
            return Ok(false);
        }
        let line = line.trim_end().to_owned();
        let _ = told.send(Said { line: line.clone(), secret });
        let word = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match word.as_str() {
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
        socket.write_all(answer.as_bytes()).await?;
        socket.flush().await?;
        if word == "STARTTLS" {
            return Ok(true);
        }
    }
}
