//! Audio in, results out, over a WebSocket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use plimsoll_workload_voice::marks::{BLOCK_MS, TranscriptMark};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::reply::Reply;
use super::socket::Socket;
use super::{Shared, line};
use crate::ear::{Blocks, Ear, Heard};
use crate::faults::{Fault, Outage};
use crate::profile::{Of, Provider};
use crate::stats::End;

const PROVIDER: Provider = Provider::DeepgramStt;

/// A session in which nothing came for so long is closed with 1011.
const IDLE: Duration = Duration::from_secs(10);

type Stream = WebSocketStream<TokioIo<Upgraded>>;

/// Answers the upgrade, and hears the session.
pub(super) fn open(
    shared: &Arc<Shared>,
    socket: &Socket,
    mut request: Request<Incoming>,
) -> Response<Reply> {
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY) else {
        let mut response = line(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket\n");
        let websocket = HeaderValue::from_static("websocket");
        response.headers_mut().insert(UPGRADE, websocket);
        return response;
    };
    if shared.book().outage(PROVIDER) == Some(Outage::Refuse) {
        return line(StatusCode::SERVICE_UNAVAILABLE, "out on demand\n");
    }
    let accept = derive_accept_key(key.as_bytes());
    shared.book().stats.session(PROVIDER);
    let upgrade = hyper::upgrade::on(&mut request);
    let (shared, socket) = (Arc::clone(shared), socket.clone());
    tokio::spawn(async move {
        // The gateway left in the handshake.
        let Ok(upgraded) = upgrade.await else { return };
        let stream =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
        Listener::new(shared, socket, stream).run().await;
    });
    let mut response = Response::new(Reply::Whole(Full::new(Bytes::new())));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The gateway is gone.
    Gone,
    /// The gateway asked for the end.
    Asked,
    /// Nothing came.
    Idle,
    /// A fault: an error and a close.
    Failed,
    /// A fault: a reset.
    Reset,
}

/// A result that is not handed over yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    heard: Heard,
    read_ns: u64,
    read: Instant,
    due: Instant,
    fault: Option<Fault>,
}

struct Listener {
    shared: Arc<Shared>,
    socket: Socket,
    stream: Stream,
    ear: Ear,
    pending: VecDeque<Pending>,
    idle_at: Instant,
}

impl Listener {
    fn new(shared: Arc<Shared>, socket: Socket, stream: Stream) -> Self {
        Self {
            shared,
            socket,
            stream,
            ear: Ear::default(),
            pending: VecDeque::new(),
            idle_at: Instant::now() + IDLE,
        }
    }

    async fn run(mut self) {
        let over = loop {
            let due = self
                .pending
                .front()
                .map_or(self.idle_at, |next| next.due.min(self.idle_at));
            let step = tokio::select! {
                biased;
                message = self.stream.next() => self.took(message).await,
                () = sleep_until(due) => self.woke().await,
            };
            if let Err(over) = step {
                break over;
            }
        };
        self.end(over).await;
    }

    async fn took(&mut self, message: Option<Result<Message, Error>>) -> Result<(), Over> {
        let Some(Ok(message)) = message else {
            return Err(Over::Gone);
        };
        self.idle_at = Instant::now() + IDLE;
        match message {
            Message::Binary(audio) => {
                self.hear(&audio);
                Ok(())
            }
            Message::Text(text) => {
                let command: Option<Value> = serde_json::from_str(&text).ok();
                let kind = command
                    .as_ref()
                    .and_then(|command| command["type"].as_str());
                match kind {
                    Some("Finalize") => self.finalize(),
                    Some("CloseStream") => {
                        self.finalize();
                        return Err(Over::Asked);
                    }
                    // KeepAlive, and what this mock does not know.
                    _ => {}
                }
                Ok(())
            }
            Message::Close(_) => Err(Over::Gone),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
        }
    }

    fn hear(&mut self, audio: &[u8]) {
        let mut blocks = Blocks::default();
        let mut all = Vec::new();
        self.ear.hear(audio, &mut blocks, |heard| all.push(heard));
        self.shared
            .book()
            .stats
            .heard(PROVIDER, audio.len(), blocks);
        for heard in all {
            self.answer(heard);
        }
    }

    fn finalize(&mut self) {
        if let Some(heard) = self.ear.finalize() {
            self.answer(heard);
        }
    }

    /// Results are made side by side and handed over in order.
    fn answer(&mut self, heard: Heard) {
        let of = Of {
            provider: PROVIDER,
            vu: heard.vu,
            turn: heard.to,
            attempt: 1,
        };
        let mut fate = self.shared.fate(&of);
        if !heard.last {
            // An utterance meets one fault at most.
            fate.fault = None;
        } else {
            self.shared.book().stats.request(PROVIDER);
        }
        if fate.outage == Some(Outage::Hang) {
            fate.fault = Some(Fault::Timeout);
        } else if fate.outage == Some(Outage::Refuse) {
            fate.fault = Some(Fault::Drop);
        }
        let read = Instant::now();
        let after = self.pending.back().map_or(read, |last| last.due);
        self.pending.push_back(Pending {
            heard,
            read_ns: Shared::now_ns(),
            read,
            due: after.max(read + fate.latency),
            fault: fate.fault,
        });
    }

    async fn woke(&mut self) -> Result<(), Over> {
        while let Some(next) = self.pending.front().copied() {
            if next.due > Instant::now() {
                break;
            }
            self.pending.pop_front();
            self.hand_over(&next).await?;
        }
        if Instant::now() >= self.idle_at {
            return Err(Over::Idle);
        }
        Ok(())
    }

    async fn hand_over(&mut self, next: &Pending) -> Result<(), Over> {
        let last = next.heard.last;
        let end = |end| {
            if last {
                self.shared.book().stats.end(PROVIDER, end);
            }
        };
        match next.fault {
            Some(Fault::Fail) => {
                end(End::Failed);
                return Err(Over::Failed);
            }
            Some(Fault::Drop) => {
                end(End::Dropped);
                return Err(Over::Reset);
            }
            Some(Fault::Timeout | Fault::Stall) => {
                end(End::TimedOut);
                return Ok(());
            }
            // A session is limited when it opens, not in the middle.
            Some(Fault::RateLimit | Fault::Slow) | None => end(End::Completed),
        }
        let handed_ns = Shared::now_ns();
        {
            let mut book = self.shared.book();
            book.stats.result(PROVIDER, last);
            let late = next.due.elapsed();
            if last {
                book.stats.answered(PROVIDER, next.read.elapsed(), late);
            } else {
                book.stats.late(late);
            }
        }
        let result = result(&next.heard, next.read_ns, handed_ns);
        let sent = self.stream.send(Message::text(result.to_string())).await;
        sent.map_err(|_| Over::Gone)
    }

    async fn end(mut self, over: Over) {
        let asked = over == Over::Asked;
        while let Some(next) = self.pending.pop_front() {
            if asked {
                sleep_until(next.due).await;
                if self.hand_over(&next).await.is_ok() {
                    continue;
                }
            } else if next.heard.last {
                self.shared.book().stats.end(PROVIDER, End::Cancelled);
            }
        }
        let close = |code, reason: &'static str| {
            Some(CloseFrame {
                code,
                reason: reason.into(),
            })
        };
        // Whoever is gone is told nothing.
        match over {
            Over::Gone => {}
            Over::Reset => {
                self.socket.reset_when_closed();
            }
            Over::Asked => {
                let metadata = json!({"type": "Metadata", "request_id": "mock", "channels": 1});
                let _ = self.stream.send(Message::text(metadata.to_string())).await;
                let _ = self.stream.close(close(CloseCode::Normal, "")).await;
            }
            Over::Idle => {
                let _ = self
                    .stream
                    .close(close(CloseCode::Error, "nothing came for 10 s"))
                    .await;
            }
            Over::Failed => {
                let error = json!({"type": "Error", "description": "failed on demand"});
                let _ = self.stream.send(Message::text(error.to_string())).await;
                let _ = self
                    .stream
                    .close(close(CloseCode::Error, "failed on demand"))
                    .await;
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a session")]
fn result(heard: &Heard, read_ns: u64, handed_ns: u64) -> Value {
    let mark = TranscriptMark {
        vu: heard.vu,
        from: heard.from,
        to: heard.to,
        read_ns,
        handed_ns,
    };
    let seconds = |blocks: u32| (u64::from(blocks) * BLOCK_MS) as f64 / 1e3;
    json!({
        "type": "Results",
        "start": seconds(heard.from - 1),
        "duration": seconds(heard.to - heard.from + 1),
        "is_final": heard.last,
        "speech_final": heard.last,
        "channel": {"alternatives": [{
            "transcript": format!("{mark}what the caller said"),
            "confidence": 0.98,
            "words": [],
        }]},
    })
}
