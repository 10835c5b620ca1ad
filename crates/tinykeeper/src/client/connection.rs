//! One socket, plain or TLS, as two buffers: frames waiting to leave and frames that arrived.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::wire::frame::{self, FrameTooLarge};

/// How much to ask the socket for at once.
const READ_CHUNK: usize = 64 << 10;

/// One connection to one server.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    input: BytesMut,
    output: BytesMut,
    /// How many bytes the socket has taken since it was opened.
    written: u64,
    /// TLS holds bytes back until it is told to let go.
    unflushed: bool,
    max_answer: usize,
}

/// What one look at the socket brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// Whether bytes left.
    pub(super) sent: bool,
    /// Whether bytes arrived.
    pub(super) received: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, max_answer: usize) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            written: 0,
            unflushed: false,
            max_answer,
        }
    }

    /// What waits to leave; append frames here.
    pub(super) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// How many bytes wait to leave.
    pub(super) fn waiting(&self) -> usize {
        self.output.len()
    }

    /// How many bytes the socket has taken since it was opened.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Where in the stream the next byte appended will stand.
    pub(super) fn position(&self) -> u64 {
        self.written + self.output.len() as u64
    }

    /// The next whole frame that arrived.
    pub(super) fn next_frame(&mut self) -> Result<Option<Bytes>, FrameTooLarge> {
        frame::split(&mut self.input, self.max_answer)
    }

    /// Waits until some bytes have left or arrived. Both directions move in one place, so a server that does not read until
    /// we do cannot block us. Cancel safe.
    pub(super) async fn transfer(&mut self) -> io::Result<Moved> {
        poll_fn(|context| self.poll_transfer(context)).await
    }

    fn poll_transfer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Moved>> {
        let sent = self.poll_send(context)?;
        self.input.reserve(READ_CHUNK);
        match pin!(self.stream.read_buf(&mut self.input)).poll(context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(Moved { sent, received: true })),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if sent => Poll::Ready(Ok(Moved { sent, received: false })),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Writes as much as the socket takes now; says whether it took anything.
    fn poll_send(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut sent = false;
        while !self.output.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &self.output) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    self.output.advance(count);
                    self.written += count as u64;
                    self.unflushed = true;
                    sent = true;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        if self.unflushed && Pin::new(&mut self.stream).poll_flush(context)?.is_ready() {
            self.unflushed = false;
        }
        Ok(sent)
    }
}

/// A socket, plain or TLS.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
