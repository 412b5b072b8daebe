//! What connections share, the HTTP surface, and the upgrade.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

use crate::config::Config;
use crate::connection;
use crate::drain::Drain;
use crate::hub::{Hub, Seat};
use crate::metrics::{Metrics, OpenConnection};

/// A client has so long to send the head of a request, and to begin another on the same connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long nothing is accepted when that has failed, for want of descriptors most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// How often draining looks whether connections are left.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(5);

type Body = Full<Bytes>;

/// One per process.
#[derive(Debug)]
pub struct Server {
    /// The configuration.
    pub config: Config,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// `/fanout`.
    pub hub: Arc<Hub>,
    /// The end.
    pub drain: Drain,
}

impl Server {
    /// A server without connections.
    pub fn new(config: Config) -> Arc<Self> {
        Arc::new(Self { config, metrics: Arc::default(), hub: Arc::default(), drain: Drain::default() })
    }

    /// Accepts connections until the future is dropped.
    pub async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Fails only on a socket that is dead already, which the next read will tell.
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(Arc::clone(&self).serve(stream));
                }
                // A client that has left already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Closes the WebSockets with 1001; returns when the last one is closed or `DRAIN_TIMEOUT_MS` is nearly over.
    pub async fn drain(&self) {
        self.drain.begin();
        let all_closed = async {
            while self.metrics.open() > 0 {
                tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
            }
        };
        // The last twentieth is for the exit itself. Out of time or done: the process ends either way.
        let _ = tokio::time::timeout(self.config.drain_timeout.mul_f64(0.95), all_closed).await;
    }

    /// Speaks HTTP until the connection ends or is upgraded.
    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(move |request| {
            let answer = self.answer(request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        // An error is a client that left, or that does not speak HTTP.
        let _ = connection.await;
    }

    fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let asks_for_websocket = asks_for_websocket(&request);
        let response = self.grant(request);
        if asks_for_websocket && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            self.metrics.refused.add(1);
        }
        response
    }

    fn grant(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if request.method() != Method::GET {
            return respond(StatusCode::METHOD_NOT_ALLOWED, &[(ALLOW, "GET")], "");
        }
        match request.uri().path() {
            "/healthz" => respond(StatusCode::OK, &[(CONTENT_TYPE, "text/plain; charset=utf-8")], "ok\n"),
            "/metrics" => {
                let content_type = (CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
                respond(StatusCode::OK, &[content_type], self.metrics.render())
            }
            _ => self.upgrade(request),
        }
    }

    /// Answers 101 and starts the WebSocket's task, or refuses while it is still HTTP.
    fn upgrade(self: &Arc<Self>, mut request: Request<Incoming>) -> Response<Body> {
        if self.drain.has_begun() {
            return respond(StatusCode::SERVICE_UNAVAILABLE, &[], "");
        }
        // It takes up no extension that the client offers.
        let Ok(switch) = create_response_with_body(&request, Body::default) else {
            let fields = [(CONNECTION, "upgrade"), (UPGRADE, "websocket"), (SEC_WEBSOCKET_VERSION, "13")];
            return respond(StatusCode::UPGRADE_REQUIRED, &fields, "");
        };
        self.metrics.accepted.add(1);
        // Before the answer: the end waits for who has it, and at the hub it misses nothing.
        let open = self.metrics.connection();
        let seat = (request.uri().path() == "/fanout").then(|| self.hub.join());
        tokio::spawn(Arc::clone(self).open(hyper::upgrade::on(&mut request), seat, open));
        switch
    }

    /// A WebSocket's task.
    async fn open(self: Arc<Self>, upgrade: OnUpgrade, seat: Option<Seat>, _open: OpenConnection) {
        // An error is a client that left between its request and our answer.
        if let Ok(upgraded) = upgrade.await
            && let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>()
        {
            connection::serve(&self, parts.io.into_inner(), parts.read_buf.into(), seat).await;
        }
    }
}

fn asks_for_websocket(request: &Request<Incoming>) -> bool {
    let upgrade = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

fn respond(status: StatusCode, fields: &[(HeaderName, &'static str)], body: impl Into<Bytes>) -> Response<Body> {
    let builder =
        fields.iter().fold(Response::builder().status(status), |builder, (name, value)| builder.header(name, *value));
    builder.body(Full::new(body.into())).expect("good names and values")
}
