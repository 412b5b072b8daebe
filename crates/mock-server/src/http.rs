//! HTTP/1.1 as a server speaks it: a request at a time, and what becomes of the connection meanwhile.
//!
//! By hand, on the parser that hyper uses, because a mock has to know two things that a library hides: which bytes of a reply the
//! socket took, and that a client left in the middle of one. The loop is busy a third less, too (`crates/providers/README.md`).

use std::future::{Future as _, poll_fn};
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use plimsoll_protocol::websocket::handshake::accept_for;
use serde::Serialize;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, timeout};

use crate::request::{Body, Head, Refusal, Request};

/// What one `read` takes of a request.
const READ_BYTES: usize = 8 << 10;
/// What a client may send ahead while it is answered. Beyond that nobody looks whether it is still there.
const AHEAD_MAX_BYTES: usize = 64 << 10;
/// How long a connection that is to be closed is read to its end. Otherwise unread bytes would reset it, and the last answer with it.
const LINGER: Duration = Duration::from_secs(1);

/// The client is gone, or the connection was reset: there is nobody to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// A connection of a client.
#[derive(Debug)]
pub struct Connection {
    /// The socket. Nobody but this connection reads or writes it until the upgrade.
    pub stream: TcpStream,
    /// What was read, and is not part of the request that is being answered.
    pub input: Vec<u8>,
    /// What is to be written. It is kept, so that a block of a reply allocates nothing.
    pub out: Vec<u8>,
    /// The headers whose values are kept, in lower case.
    kept: &'static [&'static str],
}

/// An answer in one piece.
#[derive(Debug)]
pub struct Answer {
    /// Status and reason, such as `200 OK`.
    pub status: &'static str,
    /// The header `content-type`.
    pub content_type: &'static str,
    /// One more header.
    pub header: Option<(&'static str, &'static str)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// 200 with plain data whose keys are names.
    #[must_use]
    pub fn json(value: &impl Serialize) -> Self {
        Self {
            status: "200 OK",
            content_type: "application/json",
            header: None,
            // Such data has nothing that JSON lacks.
            body: serde_json::to_vec(value).unwrap_or_default(),
        }
    }

    /// A line for people.
    #[must_use]
    pub fn line(status: &'static str, text: impl Into<String>) -> Self {
        let text: String = text.into();
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            header: None,
            body: text.into_bytes(),
        }
    }
}

impl Connection {
    /// Puts the answer to an upgrade into [`Connection::out`], with the subprotocol that was chosen, if any was.
    pub fn switch_to_websocket(&mut self, request: &Request, subprotocol: Option<&str>) {
        let accept = accept_for(request.websocket_key.as_deref().unwrap_or_default());
        self.out.clear();
        self.out
            .extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
        header(&mut self.out, "upgrade", "websocket");
        header(&mut self.out, "connection", "Upgrade");
        header(&mut self.out, "sec-websocket-accept", accept);
        if let Some(chosen) = subprotocol {
            header(&mut self.out, "sec-websocket-protocol", chosen);
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// A connection that is open. Of the headers nothing is kept, so nothing can show a key.
    #[must_use]
    pub const fn new(stream: TcpStream) -> Self {
        Self::keeping(stream, &[])
    }

    /// The same, for a server that looks at these headers; in lower case.
    #[must_use]
    pub const fn keeping(stream: TcpStream, kept: &'static [&'static str]) -> Self {
        Self {
            stream,
            input: Vec::new(),
            out: Vec::new(),
            kept,
        }
    }

    /// The next request; `None` if the client closed the connection behind the last one, or asked for something that is none
    /// (which is answered).
    pub async fn request(&mut self) -> Option<Request> {
        match self.read_request().await {
            Ok(request) => request,
            Err(Refusal { status, told }) => {
                let answer = Answer::line(status, format!("{told}\n"));
                if self.answer(&answer, false).await.is_ok() {
                    self.linger().await;
                }
                None
            }
        }
    }

    async fn read_request(&mut self) -> Result<Option<Request>, Refusal> {
        let head = loop {
            if let Some((length, head)) = Head::parse(&self.input, self.kept)? {
                self.input.drain(..length);
                break head;
            }
            if self.read_more().await.is_err() {
                return Ok(None);
            }
        };
        if head.expects_continue && self.input.is_empty() {
            self.out.clear();
            self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            if self.send(&mut 0).await.is_err() {
                return Ok(None);
            }
        }
        let mut body = Body::of(&head)?;
        while !body.take(&mut self.input)? {
            if self.read_more().await.is_err() {
                return Ok(None);
            }
        }
        Ok(Some(head.request(body)))
    }

    /// Reads into [`Connection::input`].
    async fn read_more(&mut self) -> Result<(), Gone> {
        poll_fn(|context| self.poll_read(context)).await
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let mut bytes = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
        self.input.extend_from_slice(buffer.filled());
        let nothing = buffer.filled().is_empty();
        Poll::Ready(if read.is_err() || nothing {
            Err(Gone)
        } else {
            Ok(())
        })
    }

    /// Answers in one piece.
    ///
    /// # Errors
    /// [`Gone`], here and below: the client left.
    pub async fn answer(&mut self, answer: &Answer, keep_alive: bool) -> Result<(), Gone> {
        self.out.clear();
        begin(
            &mut self.out,
            answer.status,
            answer.content_type,
            keep_alive,
        );
        if let Some((name, value)) = answer.header {
            header(&mut self.out, name, value);
        }
        header(&mut self.out, "content-length", answer.body.len());
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(&answer.body);
        self.send(&mut 0).await.map(drop)
    }

    /// Writes [`Connection::out`] from `sent` on, which counts what the socket took. True if the socket was full meanwhile.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn send(&mut self, sent: &mut usize) -> Result<bool, Gone> {
        let mut full = false;
        let written = poll_fn(|context| {
            let written = self.poll_send(sent, context);
            full |= written.is_pending();
            written
        });
        let written = written.await;
        written.map(|()| full)
    }

    fn poll_send(&mut self, sent: &mut usize, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        match self.poll_write(sent, context) {
            Poll::Pending => self.poll_gone(context).map(Err),
            written => written,
        }
    }

    /// The same, but nobody looks whether the client has left.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn poll_write(
        &mut self,
        sent: &mut usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Gone>> {
        while *sent < self.out.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(context, &self.out[*sent..])) {
                Ok(count) if count > 0 => *sent += count,
                _ => return Poll::Ready(Err(Gone)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Waits for a time.
    ///
    /// # Errors
    /// [`Gone`]: the client left before.
    pub async fn sleep(&mut self, mut timer: Pin<&mut Sleep>) -> Result<(), Gone> {
        poll_fn(|context| {
            if self.poll_gone(context).is_ready() {
                return Poll::Ready(Err(Gone));
            }
            timer.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// Ready when the client has left. What it sends ahead is kept.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<Gone> {
        while self.input.len() < AHEAD_MAX_BYTES {
            if ready!(self.poll_read(context)).is_err() {
                return Poll::Ready(Gone);
            }
        }
        Poll::Pending
    }

    /// When the connection is closed next, that is a TCP reset, and what was not sent is dropped.
    pub fn reset_when_closed(&self) {
        // Refused only where the socket is gone already.
        let _ = self.stream.set_zero_linger();
    }

    /// Nothing more is written: waits until the client has closed its side, but not for long.
    pub async fn linger(&mut self) {
        let ended = poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await;
        if ended.is_err() {
            return;
        }
        let to_the_end = async {
            while self.read_more().await.is_ok() {
                self.input.clear();
            }
        };
        // Whoever does not leave is left.
        let _ = timeout(LINGER, to_the_end).await;
    }
}

/// Begins the head of an answer.
pub fn begin(out: &mut Vec<u8>, status: &str, content_type: &str, keep_alive: bool) {
    // Writing into a vector cannot fail, here and below.
    let _ = write!(out, "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n");
    if !keep_alive {
        header(out, "connection", "close");
    }
}

/// One more header.
pub fn header(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, "{name}: {value}\r\n");
}
