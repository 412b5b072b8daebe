//! The way to the inference server: HTTP/2 with prior knowledge.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url, redirect};

use crate::config::Config;
use crate::failure::{Failure, FailureKind};
use crate::messages::Inference;

/// A connection that has been silent for so long is asked for a sign of life.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Requests take turns over clients of one connection each: over HTTP/2 a client opens no second
/// connection to a server.
pub struct InferenceClient {
    clients: Vec<Client>,
    next: AtomicUsize,
    url: Url,
    cpu_passes: u32,
}

impl InferenceClient {
    /// Connects on the first request.
    pub fn new(config: &Config) -> Result<Self> {
        let connections = config.worker_threads * config.inference_http_clients;
        let client = || {
            Client::builder()
                .http2_prior_knowledge()
                .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
                .timeout(config.inference_timeout)
                .redirect(redirect::Policy::none())
                .no_proxy()
                .build()
        };
        Ok(Self {
            clients: (0..connections).map(|_| client()).collect::<reqwest::Result<_>>()?,
            next: AtomicUsize::new(0),
            url: config.infer_url.clone(),
            cpu_passes: config.cpu_passes,
        })
    }

    /// Sends one batch and reads its answer. Dropping the future gives the request up.
    pub fn infer(&self, pcm: Bytes) -> impl Future<Output = Result<Inference, Failure>> + Send + use<> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len();
        let request = self.clients[turn]
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/octet-stream")
            .header("x-cpu-passes", self.cpu_passes)
            .body(pcm);
        async move {
            let response = request.send().await.map_err(failed)?;
            let status = response.status();
            if status != StatusCode::OK {
                let kind = FailureKind::of_status(status.as_u16());
                return Err(Failure::new(kind, format!("inference answered {status}"), Some(status.as_u16())));
            }
            Inference::parse(&response.bytes().await.map_err(failed)?)
        }
    }
}

fn failed(error: reqwest::Error) -> Failure {
    let kind = if error.is_timeout() { FailureKind::Timeout } else { FailureKind::ConnectionReset };
    Failure::new(kind, error.without_url(), None)
}
