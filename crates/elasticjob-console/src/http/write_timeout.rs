//! Notices a client that does not take what is sent to it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::connections::ConnectionSlot;

/// How long a client may take nothing.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// A stream whose writes fail once they have been blocked for a minute. Meanwhile its connection may give way to others.
pub(super) struct WriteTimeout<S> {
    stream: S,
    slot: Arc<ConnectionSlot>,
    /// Ends the connection, if the last write was blocked.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, slot: Arc<ConnectionSlot>) -> Self {
        Self { stream, slot, timer: None }
    }

    fn limit<T>(
        &mut self,
        write: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            if self.timer.take().is_some() {
                self.slot.resume_write();
            }
            return write;
        }
        let timer = self.timer.get_or_insert_with(|| {
            self.slot.block_write();
            Box::pin(sleep(WRITE_TIMEOUT))
        });
        ready!(timer.as_mut().poll(cx));
        let text = format!("the client took nothing for {} s", WRITE_TIMEOUT.as_secs());
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limit(write, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.limit(write, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.stream).poll_flush(cx);
        self.limit(flush, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.limit(shutdown, cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::timeout,
    };

    use super::*;
    use crate::http::{
        connections::{Connections, Lane},
        limits::Limits,
    };

    #[tokio::test(start_paused = true)]
    async fn write_fails_only_once_the_client_takes_nothing_for_a_minute() {
        let (server, mut client) = duplex(4);
        let slot = Connections::new(Limits::default()).open(None);
        let mut server = WriteTimeout::new(server, Arc::new(slot));
        let reader = async {
            for _ in 0..3 {
                sleep(WRITE_TIMEOUT / 2).await;
                client.read_exact(&mut [0; 4]).await.unwrap();
            }
            // Stays open, and reads no more.
            std::future::pending::<()>().await;
        };
        let writer = async {
            for _ in 0..4 {
                server.write_all(b"line").await.unwrap();
            }
            timeout(WRITE_TIMEOUT * 2, server.write_all(b"line")).await.expect("it failed in time")
        };

        tokio::select! {
            () = reader => {}
            result = writer => assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut),
        }
    }

    #[tokio::test]
    async fn connection_gives_way_while_its_client_takes_nothing() {
        let connections = Connections::new(Limits::of(1));
        let slot = Arc::new(connections.open(None));
        assert!(slot.begin_work());
        let (server, _client) = duplex(4);
        let mut server = WriteTimeout::new(server, Arc::clone(&slot));
        server.write_all(b"line").await.unwrap();
        assert_eq!(connections.open(None).lane, Lane::Reserve);

        assert!(server.write_all(b"line").now_or_never().is_none());

        assert_eq!(connections.open(None).lane, Lane::Regular);
    }
}
