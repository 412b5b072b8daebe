//! An open connection for speech-to-text, as Deepgram speaks over it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rust_axum::websocket::{Error, Incoming, Message, WebSocket};
use serde::Deserialize;

use super::Told;
use super::backlog::Backlog;
use crate::json::object;
use crate::limits::{AUDIO_BYTES_PER_MS, milliseconds};
use crate::messages::SttResult;

/// Between two pings, and without audio before the provider is told that there will be more.
const INTERVAL: Duration = Duration::from_secs(5);
/// The most of a message, in bytes: 2 s of audio. What is longer goes in pieces.
const PIECE_BYTES_MAX: usize = 64_000;

const KEEP_ALIVE: &str = r#"{"type":"KeepAlive"}"#;
const CLOSE_STREAM: &str = r#"{"type":"CloseStream"}"#;

/// What comes of a connection.
pub(super) enum Heard {
    Result(Told),
    Lost(&'static str),
}

pub(super) struct Link {
    socket: WebSocket,
    pong_timeout: Duration,
    ping_at: Instant,
    /// When the answer to a ping must be there.
    pong_by: Option<Instant>,
    /// When audio or a sign of life was sent last.
    sent_at: Instant,
    /// Pings and signs of life.
    control: VecDeque<Message>,
    sent: Sent,
}

impl Link {
    pub(super) fn new(socket: WebSocket, pong_timeout: Duration, now: Instant) -> Self {
        Self {
            socket,
            pong_timeout,
            ping_at: now + INTERVAL,
            pong_by: None,
            sent_at: now,
            control: VecDeque::new(),
            sent: Sent::default(),
        }
    }

    /// Writes audio and reads results.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, now: Instant, backlog: &mut Backlog) -> Poll<Heard> {
        if let Poll::Ready(Err(_)) = self.poll_write(context, now, backlog) {
            return Poll::Ready(Heard::Lost("it broke"));
        }
        loop {
            let lost = match ready!(self.socket.poll_incoming(context)) {
                Incoming::Text(text) => match self.result(&text, now) {
                    Some(told) => return Poll::Ready(Heard::Result(told)),
                    None => continue,
                },
                Incoming::Pong => {
                    self.pong_by = None;
                    continue;
                }
                Incoming::Binary(_) | Incoming::Ping => continue,
                Incoming::Closed => "the provider closed it",
                Incoming::Violation(_) => "the provider broke the protocol",
                Incoming::Gone => "it broke",
            };
            return Poll::Ready(Heard::Lost(lost));
        }
    }

    /// Ready when all is written.
    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        now: Instant,
        backlog: &mut Backlog,
    ) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.socket.poll_flush(context))?;
            let message = match self.control.pop_front() {
                Some(message) => message,
                None => match backlog.take(PIECE_BYTES_MAX) {
                    Some(audio) => self.audio(audio, now),
                    None => return Poll::Ready(Ok(())),
                },
            };
            ready!(self.socket.poll_send(context, message))?;
        }
    }

    fn audio(&mut self, audio: Bytes, now: Instant) -> Message {
        self.sent_at = now;
        self.sent.push(audio.len(), now);
        Message::Binary(audio)
    }

    fn result(&mut self, text: &str, now: Instant) -> Option<Told> {
        // What is not a result, or not as it should be, is nothing for the client.
        let results: Results<'_> = object(text.as_bytes()).ok()?;
        if results.r#type != "Results" {
            return None;
        }
        let alternative = results.channel.alternatives.into_iter().next()?;
        let waited = self.sent.since(results.start + results.duration, now);
        let result = SttResult {
            transcript: alternative.transcript,
            is_final: results.is_final,
            is_speech_final: results.speech_final,
            confidence: alternative.confidence,
            provider_ms: milliseconds(waited),
        };
        let (is_final, is_speech_final) = (result.is_final, result.is_speech_final);
        Some(Told::Result { message: result.to_message(), is_final, is_speech_final })
    }

    pub(super) fn wake_at(&self) -> Instant {
        let next = self.ping_at.min(self.sent_at + INTERVAL);
        self.pong_by.map_or(next, |by| next.min(by))
    }

    /// Does what is due, or says why the connection is lost.
    pub(super) fn wake(&mut self, now: Instant) -> Option<&'static str> {
        if self.pong_by.is_some_and(|by| by <= now) {
            return Some("the provider did not answer a ping");
        }
        if self.ping_at <= now {
            self.ping_at = now + INTERVAL;
            if self.pong_by.is_none() {
                self.pong_by = Some(now + self.pong_timeout);
                self.control.push_back(Message::Ping(Bytes::new()));
            }
        }
        if self.sent_at + INTERVAL <= now {
            self.sent_at = now;
            self.control.push_back(Message::text(KEEP_ALIVE));
        }
        None
    }

    /// Hands over what waits, says that no more will come, and reads until the provider has closed.
    pub(super) async fn close(&mut self, backlog: &mut Backlog) {
        let mut written = false;
        poll_fn(|context| {
            if !written {
                if ready!(self.poll_write(context, Instant::now(), backlog)).is_err() {
                    return Poll::Ready(());
                }
                written = true;
                self.control.push_back(Message::text(CLOSE_STREAM));
            }
            // Its own close, and the answer to the provider's, are tungstenite's.
            let _ = self.poll_write(context, Instant::now(), backlog);
            loop {
                match ready!(self.socket.poll_incoming(context)) {
                    Incoming::Closed | Incoming::Violation(_) | Incoming::Gone => return Poll::Ready(()),
                    Incoming::Text(_) | Incoming::Binary(_) | Incoming::Ping | Incoming::Pong => {}
                }
            }
        })
        .await;
        let _ = poll_fn(|context| self.socket.poll_flush(context)).await;
    }
}

/// A message of Deepgram, as far as it matters here.
#[derive(Deserialize)]
struct Results<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    /// Seconds of the connection's audio before what was recognised.
    #[serde(default)]
    start: f64,
    /// Seconds of what was recognised.
    #[serde(default)]
    duration: f64,
    is_final: bool,
    speech_final: bool,
    #[serde(borrow)]
    channel: Channel<'a>,
}

#[derive(Deserialize)]
struct Channel<'a> {
    #[serde(borrow)]
    alternatives: Vec<Alternative<'a>>,
}

#[derive(Deserialize)]
struct Alternative<'a> {
    #[serde(borrow)]
    transcript: Cow<'a, str>,
    confidence: f64,
}

/// When which part of the audio was sent: the gateway's own clock for a provider that does not say how long it took.
#[derive(Debug, Default)]
struct Sent {
    /// Where each of the newest messages ended, in bytes since the connection was opened.
    ends: VecDeque<(u64, Instant)>,
    bytes: u64,
}

impl Sent {
    /// Some seconds of audio, which no provider takes for a result.
    const ENDS_MAX: usize = 64;

    fn push(&mut self, bytes: usize, now: Instant) {
        self.bytes += bytes as u64;
        if self.ends.len() == Self::ENDS_MAX {
            self.ends.pop_front();
        }
        self.ends.push_back((self.bytes, now));
    }

    /// The time since the audio up to `seconds` was sent. A provider may count the seconds otherwise: at most it is the
    /// time since the newest audio.
    fn since(&self, seconds: f64, now: Instant) -> Duration {
        let end_bytes = seconds * 1e3 * AUDIO_BYTES_PER_MS as f64;
        let covered = self.ends.partition_point(|(end, _)| (*end as f64) < end_bytes);
        let sent = self.ends.get(covered).or(self.ends.back());
        sent.map_or(Duration::ZERO, |(_, at)| now.saturating_duration_since(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_result_is_that_since_its_last_audio() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut sent = Sent::default();
        assert_eq!(sent.since(1.0, at(0)), Duration::ZERO);
        for number in 1..=100 {
            sent.push(3200, at(number * 100));
        }
        assert_eq!(sent.ends.len(), Sent::ENDS_MAX);
        assert_eq!(sent.since(9.8, at(10_050)), Duration::from_millis(250));
        assert_eq!(sent.since(9.75, at(10_050)), Duration::from_millis(250));
        assert_eq!(sent.since(99.0, at(10_050)), Duration::from_millis(50));
    }

    #[test]
    fn a_result_is_read_among_other_messages() {
        let read = |text: &str| object::<Results<'_>>(text.as_bytes()).is_ok();
        assert!(read(
            r#"{"type":"Results","channel_index":[0,1],"start":1.5,"duration":0.2,"is_final":true,"speech_final":false,"channel":{"alternatives":[{"transcript":"a \"b\"","confidence":0.98,"words":[{"word":"a"}]}]}}"#
        ));
        assert!(!read(r#"{"type":"Metadata","request_id":"1","channels":1}"#));
        assert!(!read(r#"{"type":"SpeechStarted","channel":[0,1],"timestamp":1.0}"#));
    }
}
