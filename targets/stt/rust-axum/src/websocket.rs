//! A WebSocket, of a client or to a provider: tungstenite's protocol over the bare TCP socket.
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
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
pub use tungstenite::{Error, Message, Utf8Bytes};

use heads::Heads;

mod heads;

/// How much a WebSocket takes and holds, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most that a text message may declare as its length.
    pub text_max: usize,
    /// Most that a binary message may declare as its length.
    pub binary_max: usize,
    /// A read takes up to this many. Every session owns such a buffer, and tungstenite zeroes it for every read.
    pub read_buffer: usize,
    /// Room for what the kernel does not take: one message, and pongs. When pongs have filled it, only the last ping will
    /// be answered (RFC 6455, section 5.5.3).
    pub write_buffer_max: usize,
}

impl Limits {
    fn config(self) -> WebSocketConfig {
        let message_max = Some(self.text_max.max(self.binary_max));
        WebSocketConfig::default()
            .read_buffer_size(self.read_buffer)
            .write_buffer_size(0)
            .max_write_buffer_size(self.write_buffer_max)
            .max_frame_size(message_max)
            .max_message_size(message_max)
    }
}

/// How long the close handshake may take after a session has ended.
const LINGER: Duration = Duration::from_secs(1);

/// What the other side did.
#[derive(Debug)]
pub enum Incoming {
    /// Sent a text message.
    Text(Utf8Bytes),
    /// Sent a binary message.
    Binary(Bytes),
    /// Sent a ping, whose pong is on its way.
    Ping,
    /// Sent a pong.
    Pong,
    /// Sent a close; [`WebSocket::acknowledge_close`] is owed.
    Closed,
    /// Broke the protocol of the wire.
    Violation(Violation),
    /// Is gone without a word.
    Gone,
}

/// How the protocol of the wire was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// Frames that RFC 6455 does not allow.
    Protocol,
    /// A text that is not UTF-8.
    NotUtf8,
    /// A message whose declared length is over the limit.
    TooLarge,
}

/// The gateway's end of a WebSocket. To be polled by one task only.
#[derive(Debug)]
pub struct WebSocket {
    socket: TcpStream,
    protocol: WebSocketContext,
    /// Where the limits of texts and binaries differ; tungstenite knows one limit for both.
    heads: Option<Heads>,
    written_bytes: u64,
}

impl WebSocket {
    /// Takes the TCP socket of a client back from hyper, with whatever hyper has read beyond the handshake.
    ///
    /// `None` if the connection is not TCP, which the gateway's listener never accepts.
    pub fn from_upgraded(upgraded: Upgraded, limits: Limits) -> Option<Self> {
        let parts = downcast::<TokioIo<TcpStream>>(upgraded).ok()?;
        Some(Self::new(parts.io.into_inner(), &parts.read_buf, Role::Server, limits))
    }

    /// A WebSocket after its handshake, with whatever was read beyond that.
    pub fn new(socket: TcpStream, read: &[u8], role: Role, limits: Limits) -> Self {
        let mut heads = (limits.text_max != limits.binary_max).then(|| Heads::new(limits.text_max, limits.binary_max));
        if let Some(heads) = &mut heads {
            heads.follow(read);
        }
        let protocol = WebSocketContext::from_partially_read(read.to_vec(), role, Some(limits.config()));
        Self { socket, protocol, heads, written_bytes: 0 }
    }

    /// The next thing that the other side did. Answers pings on the way.
    pub fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<Incoming> {
        let (protocol, mut polled) = self.parts(context);
        let incoming = match protocol.read(&mut polled) {
            Ok(Message::Binary(payload)) => Incoming::Binary(payload),
            Ok(Message::Text(text)) => Incoming::Text(text),
            Ok(Message::Ping(_)) => Incoming::Ping,
            Ok(Message::Pong(_) | Message::Frame(_)) => Incoming::Pong,
            Ok(Message::Close(_)) => Incoming::Closed,
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                // What came before the message that is too large has been handed out.
                if self.declared_too_large() {
                    return Poll::Ready(Incoming::Violation(Violation::TooLarge));
                }
                return Poll::Pending;
            }
            Err(Error::Capacity(_)) => Incoming::Violation(Violation::TooLarge),
            // tungstenite calls "protocol error" also what is only a stream that ended without a close.
            Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => Incoming::Gone,
            Err(Error::Protocol(_)) => Incoming::Violation(Violation::Protocol),
            Err(Error::Utf8(_)) => Incoming::Violation(Violation::NotUtf8),
            Err(_) => Incoming::Gone,
        };
        Poll::Ready(incoming)
    }

    fn declared_too_large(&self) -> bool {
        self.heads.as_ref().is_some_and(Heads::too_large)
    }

    /// Bytes that the kernel has taken so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Writes a message, or as much of it as the kernel takes; while it is pending, [`Self::poll_flush`] writes the rest.
    /// Call it only when that has nothing left to write, so that there is room.
    pub fn poll_send(&mut self, context: &mut Context<'_>, message: Message) -> Poll<Result<(), Error>> {
        let (protocol, mut polled) = self.parts(context);
        poll(protocol.write(&mut polled, message))
    }

    /// Writes on; ready when the kernel has taken everything.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let (protocol, mut polled) = self.parts(context);
        poll(protocol.flush(&mut polled))
    }

    /// The protocol, and the socket as it takes it.
    fn parts<'a, 'b>(&'a mut self, context: &'a mut Context<'b>) -> (&'a mut WebSocketContext, Polled<'a, 'b>) {
        let Self { socket, protocol, heads, written_bytes } = self;
        (protocol, Polled { socket, heads: heads.as_mut(), written_bytes, context })
    }

    /// Answers the client's close.
    pub async fn acknowledge_close(mut self) {
        // Queued by tungstenite when it read the close. A client that does not take it in time has no claim on it.
        let _ = tokio::time::timeout(LINGER, poll_fn(|context| self.poll_flush(context))).await;
    }

    /// Sends a close and sees to it that it can arrive: shuts the socket for writing, then reads and drops what the
    /// client still sends until it closes too, for [`LINGER`] at most.
    pub async fn close(mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: Utf8Bytes::default() };
        let handshake = async {
            poll_fn(|context| self.poll_flush(context)).await.ok()?;
            poll_fn(|context| {
                let (protocol, mut polled) = self.parts(context);
                // Queues the frame the first time and only flushes after that.
                poll(protocol.close(&mut polled, Some(frame.clone())))
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
    heads: Option<&'a mut Heads>,
    written_bytes: &'a mut u64,
    context: &'a mut Context<'b>,
}

impl Read for Polled<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.heads.as_ref().is_some_and(|heads| heads.too_large()) {
            // Nothing more of it is wanted.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut bytes = ReadBuf::new(bytes);
        match Pin::new(&mut *self.socket).poll_read(self.context, &mut bytes) {
            Poll::Ready(Ok(())) => {
                if let Some(heads) = &mut self.heads {
                    heads.follow(bytes.filled());
                }
                Ok(bytes.filled().len())
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Polled<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.socket).poll_write(self.context, bytes) {
            Poll::Ready(written) => {
                *self.written_bytes += written.as_ref().map_or(0, |bytes| *bytes as u64);
                written
            }
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// A TCP socket keeps nothing back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
