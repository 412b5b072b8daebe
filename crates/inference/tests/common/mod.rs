//! A simulator on a real socket and a small client for both protocols.

#![allow(dead_code, reason = "each test program uses its part")]

use std::error::Error;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_inference::config::Config;
use plimsoll_inference::server::Simulator;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;

pub(crate) type AnyError = Box<dyn Error + Send + Sync>;

/// Fast answers, nothing random in them.
pub(crate) fn quick() -> Config {
    Config {
        port: 0,
        model_delay_ms: 1.0,
        model_jitter_sigma: 0.0,
        model_batch_wait_max_ms: 0.0,
        model_longtail_prob: 0.0,
        ..Config::default()
    }
}

/// Starts a simulator in this runtime. It listens when this returns.
pub(crate) fn start(config: Config) -> SocketAddr {
    let simulator = Simulator::bind(config).expect("a free port of this machine");
    let address = simulator.address();
    tokio::spawn(simulator.run());
    address
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// One connection.
pub(crate) enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, protocol: Protocol) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the simulator listens");
        // Else the second half of each request waits for the acknowledgement of the first.
        stream.set_nodelay(true).expect("a live socket");
        let stream = TokioIo::new(stream);
        match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(stream)
                    .await
                    .expect("an HTTP/1.1 connection");
                tokio::spawn(connection);
                Self::Http1(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .expect("an HTTP/2 connection");
                tokio::spawn(connection);
                Self::Http2(sender)
            }
        }
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Reply, AnyError> {
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let content_type = response
            .headers()
            .get("content-type")
            .map(|v| v.to_str().map(str::to_owned))
            .transpose()?
            .unwrap_or_default();
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Reply {
            status,
            content_type,
            body,
        })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.send(request(Method::GET, path, Bytes::new()))
            .await
            .expect("an answer")
    }

    pub(crate) async fn put_faults(&mut self, body: &str) -> Reply {
        self.send(request(
            Method::PUT,
            "/faults",
            Bytes::copy_from_slice(body.as_bytes()),
        ))
        .await
        .expect("an answer")
    }
}

pub(crate) fn request(method: Method, path: &str, body: Bytes) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("http://simulator{path}"))
        .header("host", "simulator")
        .body(Full::new(body))
        .expect("a valid request")
}

/// An inference request as a gateway sends it.
pub(crate) fn infer(pcm: impl Into<Bytes>, passes: &str) -> Request<Full<Bytes>> {
    let mut request = request(Method::POST, "/infer", pcm.into());
    request.headers_mut().insert(
        "content-type",
        "application/octet-stream".parse().expect("a header value"),
    );
    request
        .headers_mut()
        .insert("x-cpu-passes", passes.parse().expect("a header value"));
    request
}
