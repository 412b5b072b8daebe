//! The WebSocket of one session: tungstenite's protocol over the bare TCP socket.
//!
//! axum's own `ws` extractor is not used, although it is tungstenite as well, because it hides the socket. The contract
//! wants a violation answered with a close code that *arrives*, and closing a socket whose receive buffer still holds
//! data sends an RST, which makes the peer's kernel throw away the close frame. So after a violation the socket is shut
//! for writing and read empty for a while ([`WebSocket::close`]), which needs the socket itself.
//!
//! Nor is tokio-tungstenite in between. It lets two tasks share a WebSocket and pays for that with wakers behind wakers
//! on every read; here one task reads and writes, and its own waker will do ([`Polled`]).

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tungstenite::error::ProtocolError;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Utf8Bytes};

use crate::session::CloseReason;

/// Most that a message may declare as its length, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// A read takes up to this many bytes. Every session owns such a buffer, and tungstenite zeroes it for every read; three
/// frames are more than a socket holds unless the gateway is late.
const READ_BUFFER_BYTES: usize = 2 * 1024;

/// Room for what the kernel does not take: one message, which is at most a little longer than the longest answer of the
/// inference server, and pongs. When pongs have filled it, only the last ping will be answered (RFC 6455, section 5.5.3).
const WRITE_BUFFER_BYTES_MAX: usize = 2 * crate::inference::ANSWER_BYTES_MAX;

/// How long the close handshake may take after a session has ended.
const LINGER: Duration = Duration::from_secs(1);

/// What a client did.
#[derive(Debug)]
pub enum Incoming {
    /// Sent a text message.
    Text(Utf8Bytes),
    /// Sent a binary message.
    Binary(Bytes),
    /// Sent a ping, whose pong is on its way, or a pong.
    Control,
    /// Sent a close; [`WebSocket::acknowledge_close`] is owed.
    Closed,
    /// Broke the protocol of the wire.
    Violation(CloseReason),
    /// Is gone without a word.
    Gone,
}

/// The gateway's end of a WebSocket. To be polled by one task only.
#[derive(Debug)]
pub struct WebSocket {
    socket: TcpStream,
    protocol: WebSocketContext,
}

impl WebSocket {
    /// Takes the TCP socket back from hyper, with whatever hyper has read beyond the handshake.
    ///
    /// `None` if the connection is not TCP, which the gateway's listener never accepts.
    pub fn from_upgraded(upgraded: Upgraded) -> Option<Self> {
        let parts = downcast::<TokioIo<TcpStream>>(upgraded).ok()?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
            .max_frame_size(Some(MESSAGE_BYTES_MAX))
            .max_message_size(Some(MESSAGE_BYTES_MAX));
        Some(Self {
            socket: parts.io.into_inner(),
            protocol: WebSocketContext::from_partially_read(parts.read_buf.to_vec(), Role::Server, Some(config)),
        })
    }

    /// The next thing that the client did. Answers pings on the way.
    pub fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<Incoming> {
        let incoming = match self.protocol.read(&mut Polled { socket: &mut self.socket, context }) {
            Ok(Message::Binary(payload)) => Incoming::Binary(payload),
            Ok(Message::Text(text)) => Incoming::Text(text),
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Incoming::Control,
            Ok(Message::Close(_)) => Incoming::Closed,
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(Error::Capacity(_)) => Incoming::Violation(CloseReason::TooLarge),
            // tungstenite calls "protocol error" also what is only a stream that ended without a close.
            Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => Incoming::Gone,
            Err(Error::Protocol(_) | Error::Utf8(_)) => Incoming::Violation(CloseReason::Protocol),
            Err(_) => Incoming::Gone,
        };
        Poll::Ready(incoming)
    }

    /// Writes a message, or as much of it as the kernel takes; while it is pending, [`Self::poll_flush`] writes the rest.
    /// Call it only when that has nothing left to write, so that there is room.
    pub fn poll_send(&mut self, context: &mut Context<'_>, text: String) -> Poll<Result<(), Error>> {
        poll(self.protocol.write(&mut Polled { socket: &mut self.socket, context }, Message::text(text)))
    }

    /// Writes on; ready when the kernel has taken everything.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        poll(self.protocol.flush(&mut Polled { socket: &mut self.socket, context }))
    }

    /// Answers the client's close.
    pub async fn acknowledge_close(mut self) {
        // Queued by tungstenite when it read the close. A client that does not take it in time has no claim on it.
        let _ = tokio::time::timeout(LINGER, poll_fn(|context| self.poll_flush(context))).await;
    }

    /// Sends a close and sees to it that it can arrive: shuts the socket for writing, then reads and drops what the
    /// client still sends until it closes too, for [`LINGER`] at most.
    pub async fn close(mut self, reason: CloseReason) {
        let frame = CloseFrame { code: CloseCode::from(reason.code()), reason: Utf8Bytes::default() };
        let handshake = async {
            poll_fn(|context| self.poll_flush(context)).await.ok()?;
            poll_fn(|context| {
                // Queues the frame the first time and only flushes after that.
                poll(self.protocol.close(&mut Polled { socket: &mut self.socket, context }, Some(frame.clone())))
            })
            .await
            .ok()?;
            self.socket.shutdown().await.ok()?;
            let mut dropped = [0; 4096];
            while self.socket.read(&mut dropped).await.ok()? > 0 {}
            Some(())
        };
        let _ = tokio::time::timeout(LINGER, handshake).await;
    }
}

/// Tungstenite's "would block" as `Poll::Pending`. Its "closed" after the last byte of a close is no error.
fn poll(result: Result<(), Error>) -> Poll<Result<(), Error>> {
    match result {
        Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        Err(Error::ConnectionClosed) => Poll::Ready(Ok(())),
        result => Poll::Ready(result),
    }
}

/// A socket for the time of one poll, as the blocking socket that tungstenite expects: where it would wait, it registers
/// the polling task and says "would block".
struct Polled<'a, 'b> {
    socket: &'a mut TcpStream,
    context: &'a mut Context<'b>,
}

impl Read for Polled<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut bytes = ReadBuf::new(bytes);
        match Pin::new(&mut *self.socket).poll_read(self.context, &mut bytes) {
            Poll::Ready(read) => read.map(|()| bytes.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Polled<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.socket).poll_write(self.context, bytes) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// A TCP socket keeps nothing back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
