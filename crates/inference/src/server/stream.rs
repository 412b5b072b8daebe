//! A connection that can be aborted: closed by a TCP reset instead of in order.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Tells a connection to abort when it is next closed.
#[derive(Debug, Clone, Default)]
pub(super) struct AbortHandle(Arc<AtomicBool>);

impl AbortHandle {
    pub(super) fn abort(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The stream under hyper.
#[derive(Debug)]
pub(super) struct AbortableStream {
    stream: TokioIo<TcpStream>,
    abort: AbortHandle,
}

impl AbortableStream {
    pub(super) fn new(stream: TcpStream, abort: AbortHandle) -> Self {
        Self {
            stream: TokioIo::new(stream),
            abort,
        }
    }
}

impl Drop for AbortableStream {
    fn drop(&mut self) {
        if self.abort.is_set() {
            // With a linger time of zero, closing sends RST and drops what was not sent.
            let _ = self.stream.inner().set_zero_linger();
        }
    }
}

impl Read for AbortableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for AbortableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.abort.is_set() {
            // An orderly end would reach the client before the reset.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }
}
