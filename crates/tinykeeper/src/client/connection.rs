//! One socket, plain or TLS, with a buffer of frames to send and a buffer of bytes received.

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

/// Bytes to request from the socket at once.
const READ_CHUNK: usize = 64 << 10;

/// One connection to one server.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    input: BytesMut,
    output: BytesMut,
    /// Bytes written to the socket since it was opened.
    written: u64,
    /// TLS buffers written bytes until it is flushed.
    needs_flush: bool,
    max_response: usize,
}

/// The directions in which [`Connection::transfer`] moved bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) sent: bool,
    pub(super) received: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, max_response: usize) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            written: 0,
            needs_flush: false,
            max_response,
        }
    }

    /// The buffer of bytes to send; append frames here.
    pub(super) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.output.len()
    }

    /// Bytes written to the socket since it was opened.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Offset in the output stream of the next byte to be appended.
    pub(super) fn position(&self) -> u64 {
        self.written + self.output.len() as u64
    }

    /// The next complete frame received.
    pub(super) fn next_frame(&mut self) -> Result<Option<Bytes>, FrameTooLarge> {
        frame::split(&mut self.input, self.max_response)
    }

    /// Waits until bytes were sent or received. Both directions are polled together, so that a server that does not read until
    /// the client reads cannot block it. Cancel safe.
    pub(super) async fn transfer(&mut self) -> io::Result<Transfer> {
        poll_fn(|context| self.poll_transfer(context)).await
    }

    fn poll_transfer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Transfer>> {
        let sent = self.poll_send(context)?;
        self.input.reserve(READ_CHUNK);
        match pin!(self.stream.read_buf(&mut self.input)).poll(context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(Transfer { sent, received: true })),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if sent => Poll::Ready(Ok(Transfer { sent, received: false })),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Writes as much as the socket accepts now; returns whether it accepted anything.
    fn poll_send(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut sent = false;
        while !self.output.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &self.output) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    self.output.advance(count);
                    self.written += count as u64;
                    self.needs_flush = true;
                    sent = true;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        if self.needs_flush && Pin::new(&mut self.stream).poll_flush(context)?.is_ready() {
            self.needs_flush = false;
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
