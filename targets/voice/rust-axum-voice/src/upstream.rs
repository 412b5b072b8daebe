//! The way to the providers: HTTP/1.1 over connections that are used again, and WebSockets.
//!
//! A connection has no task of its own. Whoever waits for its answer drives it, so a block of audio costs one wake-up and
//! crosses no channel between tasks, and to drop an answer is to close its connection at once: that cancels the request.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::http::header::{CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use axum::http::{HeaderValue, Method, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, upgrade};
use hyper_util::rt::TokioIo;
use rust_axum::variables::HttpUrl;
use rust_axum::websocket::{Limits, WebSocket};
use tokio::net::TcpStream;
use tungstenite::handshake::client::generate_key;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;

use crate::providers::Ask;

/// The most that is read of an answer at once, in bytes: more than a second of a reply.
const READ_BYTES_MAX: usize = 64 * 1024;

/// A connection that has waited longer for its next request is not used again: the provider may be closing it just now.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Connections that may wait for their next request.
const IDLE_CONNECTIONS_MAX: usize = 4096;

/// What providers may send over a WebSocket, in bytes. A result has a few hundred.
pub const WEBSOCKET_LIMITS: Limits =
    Limits { text_max: 1 << 20, binary_max: 1 << 20, read_buffer: 2 * 1024, write_buffer_max: 256 * 1024 };

/// All providers at one base.
#[derive(Debug)]
pub struct Upstream {
    url: HttpUrl,
    host: HeaderValue,
    /// The path of the base, without a slash at its end.
    prefix: String,
    /// The one that waited least is last, and used next.
    idle: Mutex<VecDeque<Connection>>,
}

impl Upstream {
    /// Connects nowhere yet.
    pub fn new(url: &HttpUrl) -> Arc<Self> {
        let rest = url.base.split_once("://").map_or("", |(_, rest)| rest);
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        Arc::new(Self {
            url: url.clone(),
            // What has been parsed as a URL can stand in a header.
            host: HeaderValue::from_str(authority).unwrap_or(HeaderValue::from_static("")),
            prefix: path.to_owned(),
            idle: Mutex::default(),
        })
    }

    /// Sends a request and waits for the head of its answer. Has no timeout of its own: dropping it gives the request up.
    ///
    /// # Errors
    /// The connection could not be made, or broke before the head was whole.
    pub async fn send(self: Arc<Self>, ask: Ask) -> Result<Answer, String> {
        let method = if ask.body.is_empty() { Method::GET } else { Method::POST };
        let mut request = self.request(method, &ask)?;
        loop {
            let kept = self.alive().await;
            let may_be_stale = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => Connection::open(&self.url).await?,
            };
            match connection.send(request).await {
                Ok(response) => return Ok(Answer { response, connection: Some(connection), upstream: self }),
                // It had ended, and nothing of the request was written: the next one may have it.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if may_be_stale => request = unsent,
                    _ => return Err(error.into_error().to_string()),
                },
            }
        }
    }

    /// Opens a WebSocket.
    ///
    /// # Errors
    /// The connection could not be made, or the answer is not 101.
    pub async fn open_websocket(self: Arc<Self>, ask: Ask) -> Result<WebSocket, String> {
        let mut request = self.request(Method::GET, &ask)?;
        let key = generate_key();
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_str(&key).map_err(told)?);

        let (mut sender, connection) = handshake(&self.url).await?;
        let mut driver = Some(connection.with_upgrades());
        let response = driven(&mut driver, sender.send_request(request)).await.map_err(told)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(format!("the provider answered with status {}", response.status().as_u16()));
        }
        let accepted = response.headers().get("sec-websocket-accept");
        if accepted.is_none_or(|accepted| accepted != &derive_accept_key(key.as_bytes())) {
            return Err("the provider did not accept the WebSocket".to_owned());
        }
        let upgraded = driven(&mut driver, upgrade::on(response)).await.map_err(told)?;
        let parts = upgraded.downcast::<TokioIo<TcpStream>>().map_err(|_| "not a TCP socket".to_owned())?;
        Ok(WebSocket::new(parts.io.into_inner(), &parts.read_buf, Role::Client, WEBSOCKET_LIMITS))
    }

    fn request(&self, method: Method, ask: &Ask) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{}", self.prefix, ask.path).parse().map_err(told)?;
        request.headers_mut().clone_from(&ask.headers);
        request.headers_mut().insert(HOST, self.host.clone());
        Ok(request)
    }

    /// A connection that can take a request, if one waits.
    async fn alive(&self) -> Option<Connection> {
        loop {
            // The lock is released before the connection is driven.
            let next = self.idle().pop_back();
            let mut connection = next?;
            if connection.idle_since.elapsed() < IDLE_MAX && connection.is_ready().await {
                return Some(connection);
            }
        }
    }

    fn keep(&self, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut idle = self.idle();
        idle.push_back(connection);
        while idle.len() > IDLE_CONNECTIONS_MAX
            || idle.front().is_some_and(|oldest| oldest.idle_since.elapsed() >= IDLE_MAX)
        {
            idle.pop_front();
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Connection>> {
        // Nothing under the lock leaves it half done.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Driver = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// A connection and what drives it.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// None once the connection has ended.
    driver: Option<Driver>,
    idle_since: Instant,
}

impl Connection {
    async fn open(url: &HttpUrl) -> Result<Self, String> {
        let (sender, driver) = handshake(url).await?;
        Ok(Self { sender, driver: Some(driver), idle_since: Instant::now() })
    }

    /// Whether it can take a request. Sees that the provider has closed it.
    async fn is_ready(&mut self) -> bool {
        poll_fn(|context| {
            drive(&mut self.driver, context);
            let ready = matches!(self.sender.poll_ready(context), Poll::Ready(Ok(())));
            Poll::Ready(ready && self.driver.is_some())
        })
        .await
    }

    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        driven(&mut self.driver, self.sender.try_send_request(request)).await
    }
}

async fn handshake(url: &HttpUrl) -> Result<(SendRequest<Full<Bytes>>, Driver), String> {
    let socket = TcpStream::connect((url.host.as_str(), url.port)).await.map_err(told)?;
    socket.set_nodelay(true).map_err(told)?;
    http1::Builder::new().max_buf_size(READ_BYTES_MAX).handshake(TokioIo::new(socket)).await.map_err(told)
}

/// Drives a connection for as long as it can go on. How it ends, its requests tell.
fn drive<D: Future + Unpin>(driver: &mut Option<D>, context: &mut Context<'_>) {
    if let Some(driving) = driver
        && Pin::new(driving).poll(context).is_ready()
    {
        *driver = None;
    }
}

/// Drives a connection until something that waits for it is done.
async fn driven<D: Future + Unpin, F: Future>(driver: &mut Option<D>, waiting: F) -> F::Output {
    let mut waiting = pin!(waiting);
    poll_fn(|context| {
        drive(driver, context);
        waiting.as_mut().poll(context)
    })
    .await
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The answer to a request, whose body comes as it comes.
#[derive(Debug)]
pub struct Answer {
    response: Response<Incoming>,
    /// None once it is back with the others.
    connection: Option<Connection>,
    upstream: Arc<Upstream>,
}

impl Answer {
    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The provider's own time, if it says it.
    pub fn provider_ms(&self) -> Option<f64> {
        let told = self.response.headers().get("x-mock-provider-ms")?.to_str().ok()?;
        told.parse().ok().filter(|ms: &f64| ms.is_finite())
    }

    /// The next piece of the body; none at its end.
    pub fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        loop {
            if let Some(connection) = &mut self.connection {
                drive(&mut connection.driver, context);
            }
            return match ready!(Pin::new(self.response.body_mut()).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => Poll::Ready(Some(Ok(data))),
                    // Trailers are no audio.
                    _ => continue,
                },
                Some(Err(error)) => Poll::Ready(Some(Err(told(error)))),
                None => {
                    if let Some(connection) = self.connection.take() {
                        self.upstream.keep(connection);
                    }
                    Poll::Ready(None)
                }
            };
        }
    }
}
