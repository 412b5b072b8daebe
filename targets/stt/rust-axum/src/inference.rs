//! The way to the inference server: HTTP/2 with prior knowledge over a few long-lived connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, Request, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::config::InferenceUrl;
use crate::failure::Failure;
use crate::messages::Inference;

/// Longest answer that is read; a good one has some 150 bytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Credit that the server has for answers, in bytes: enough that it never waits for more, whatever the number of streams.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// Streams to open before the server has said how many it allows. hyper assumes 100, which would hold back the first
/// second of a full gateway.
const STREAMS_BEFORE_SETTINGS: usize = 10_000;

/// A connection that carries requests but has been silent this long is asked for a sign of life…
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// …and is lost if there is none for this long.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests go round-robin over a fixed set of connections, each made on first use and made anew when lost.
#[derive(Debug)]
pub struct InferenceClient {
    url: InferenceUrl,
    connections: Box<[Arc<Connection>]>,
    next: AtomicUsize,
}

/// A place for a connection. The lock is held while connecting, so that a lost connection is made anew once and not once
/// per session; otherwise it is held for the clone of a handle.
type Connection = Mutex<Option<SendRequest<Full<Bytes>>>>;

impl InferenceClient {
    /// A client of `url` with up to `connections` connections.
    pub fn new(url: &InferenceUrl, connections: usize) -> Self {
        Self {
            url: url.clone(),
            connections: (0..connections).map(|_| Arc::default()).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// Sends one batch and reads its answer. Has no timeout of its own: the session times its request, and dropping the
    /// future gives the request up.
    pub fn infer(
        &self,
        pcm: Bytes,
        cpu_passes: u32,
    ) -> impl Future<Output = Result<Inference, Failure>> + Send + use<> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let connection = Arc::clone(&self.connections[turn]);
        let url = self.url.clone();
        async move {
            let response = match send(&connection, &url, &pcm, cpu_passes).await {
                // The connection had ended, and this request never left: it may try a new one, once.
                Err(Unsent::NeverLeft) => match send(&connection, &url, &pcm, cpu_passes).await {
                    Err(Unsent::NeverLeft) => return Err(Failure::connection("closed")),
                    Err(Unsent::Failed(failure)) => return Err(failure),
                    Ok(response) => response,
                },
                Err(Unsent::Failed(failure)) => return Err(failure),
                Ok(response) => response,
            };
            if response.status() != 200 {
                return Err(Failure::status(response.status().as_u16()));
            }
            match Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await {
                Ok(body) => Inference::parse(&body.to_bytes()),
                Err(error) if error.is::<LengthLimitError>() => Err(Failure::parse("longer than 64 KiB")),
                Err(error) => Err(Failure::connection(error)),
            }
        }
    }
}

/// Why there is no response.
enum Unsent {
    /// Nothing of the request reached the connection.
    NeverLeft,
    Failed(Failure),
}

async fn send(
    connection: &Connection,
    url: &InferenceUrl,
    pcm: &Bytes,
    cpu_passes: u32,
) -> Result<hyper::Response<hyper::body::Incoming>, Unsent> {
    let mut sender = sender(connection, url).await.map_err(Unsent::Failed)?;
    let request = request(&url.infer, pcm.clone(), cpu_passes);
    sender.send_request(request).await.map_err(|error| {
        if error.is_canceled() { Unsent::NeverLeft } else { Unsent::Failed(Failure::connection(error)) }
    })
}

/// A handle to the connection, which is made if there is none.
async fn sender(connection: &Connection, url: &InferenceUrl) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let mut place = connection.lock().await;
    if let Some(sender) = place.as_ref().filter(|sender| !sender.is_closed()) {
        return Ok(sender.clone());
    }
    let socket = TcpStream::connect((url.server.host.as_str(), url.server.port)).await.map_err(Failure::connection)?;
    socket.set_nodelay(true).map_err(Failure::connection)?;
    let (sender, driver) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_max_send_streams(STREAMS_BEFORE_SETTINGS)
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(Failure::connection)?;
    // Its end is seen by `is_closed`, and its error by the requests that it had.
    tokio::spawn(driver);
    *place = Some(sender.clone());
    Ok(sender)
}

fn request(infer: &Uri, pcm: Bytes, cpu_passes: u32) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(pcm));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = infer.clone();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert("x-cpu-passes", HeaderValue::from(cpu_passes));
    request
}
