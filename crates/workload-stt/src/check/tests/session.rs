//! A session of the fake gateway: one thread, one turn after the other.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::reference::Answer;
use plimsoll_protocol::websocket::{Opcode, RawFrame, close};
use serde_json::json;

use super::Defect;
use super::bench::Outcome;
use super::gateway::Shared;
use super::wire::{ClientFrame, Strictness, take_frame};

/// A batch on its way.
struct Batch {
    oldest: u64,
    frames: u64,
    due: Instant,
    sent: Instant,
    pcm: Vec<u8>,
}

type Done = (Batch, Outcome);

pub(super) struct FakeSession<'a> {
    stream: TcpStream,
    bytes: Vec<u8>,
    shared: &'a Shared,
    started: bool,
    begun: Instant,
    next_tick: Instant,
    buffer: Vec<u8>,
    buffered_from: u64,
    received: u64,
    in_flight: u64,
    batches: u64,
    done: (Sender<Done>, Receiver<Done>),
    fragments: Option<(u8, Vec<u8>)>,
}

/// How a session ends: with a close code, or without a word because the client has gone.
type Ended = Option<u16>;

impl<'a> FakeSession<'a> {
    pub(super) fn new(stream: TcpStream, bytes: Vec<u8>, shared: &'a Shared) -> Self {
        let now = Instant::now();
        Self {
            stream,
            bytes,
            shared,
            started: false,
            begun: now,
            next_tick: now,
            buffer: Vec::new(),
            buffered_from: 1,
            received: 0,
            in_flight: 0,
            batches: 0,
            done: channel(),
            fragments: None,
        }
    }

    pub(super) fn run(mut self) {
        let ended = loop {
            if let Err(ended) = self.turn() {
                break ended;
            }
        };
        if let Some(code) = ended {
            if self.shared.defect == Defect::LateClose {
                thread::sleep(Duration::from_millis(700));
            }
            self.send(Opcode::Close, &close::payload(code, ""));
            self.linger();
        }
    }

    /// Ends as TCP should: otherwise bytes unread would reset the connection and take the close frame with them.
    fn linger(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let _ = self
            .stream
            .set_read_timeout(Some(Duration::from_millis(300)));
        let mut sink = [0; 4096];
        while matches!(self.stream.read(&mut sink), Ok(n) if n > 0) {}
    }

    fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        let _ = self
            .stream
            .write_all(&RawFrame::server(opcode, payload).to_vec());
    }

    /// One turn: frames, answers, the tick, and a short wait for bytes.
    fn turn(&mut self) -> Result<(), Ended> {
        if let Some(hold) = &self.shared.hold {
            hold.wait();
        }
        let defect = self.shared.defect;
        let allowed = Strictness {
            unmasked: defect == Defect::TakesUnmasked,
            length_max: if defect == Defect::WaitsForBody {
                u64::MAX
            } else {
                65_536
            },
        };
        while let Some(frame) =
            take_frame(&mut self.bytes, allowed).map_err(|code| self.code(code))?
        {
            self.take(frame)?;
        }
        while let Ok((batch, outcome)) = self.done.1.try_recv() {
            self.finish(&batch, outcome);
        }
        let now = Instant::now();
        if self.started && now >= self.next_tick {
            self.tick(now);
        }
        let overdue = !self.started && self.begun.elapsed() > self.shared.settings.start_timeout;
        if overdue && defect != Defect::NoStartTimeout {
            return Err(self.code(1002));
        }
        self.read()
    }

    fn read(&mut self) -> Result<(), Ended> {
        let _ = self.stream.set_read_timeout(Some(Duration::from_millis(2)));
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(None),
            Ok(n) => {
                self.bytes.extend_from_slice(&buffer[..n]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(())
            }
            Err(_) => Err(None),
        }
    }

    fn code(&self, code: u16) -> Ended {
        Some(
            if self.shared.defect == Defect::WrongCloseCode && code == 1002 {
                1000
            } else {
                code
            },
        )
    }

    fn take(&mut self, frame: ClientFrame) -> Result<(), Ended> {
        match frame.opcode {
            8 => {
                let code = frame
                    .payload
                    .first_chunk::<2>()
                    .map_or(1000, |bytes| u16::from_be_bytes(*bytes));
                return Err(if close::may_be_sent(code) {
                    Some(code)
                } else {
                    self.code(1002)
                });
            }
            9 => {
                let payload: &[u8] = if self.shared.defect == Defect::EmptyPong {
                    &[]
                } else {
                    &frame.payload
                };
                self.send(Opcode::Pong, payload);
                return Ok(());
            }
            10 => return Ok(()),
            _ => {}
        }
        let (opcode, payload) = match (frame.opcode, self.fragments.take()) {
            (0, Some((opcode, mut message))) => {
                message.extend(frame.payload);
                (opcode, message)
            }
            (0, None) | (_, Some(_)) => return Err(self.code(1002)),
            (opcode, None) => (opcode, frame.payload),
        };
        if payload.len() > 65_536 {
            return Err(Some(1009));
        }
        if !frame.fin {
            self.fragments = Some((opcode, payload));
            return Ok(());
        }
        self.message(opcode, &payload)
    }

    fn message(&mut self, opcode: u8, payload: &[u8]) -> Result<(), Ended> {
        if !self.started {
            if opcode != 1 || !is_start(payload, self.shared.defect) {
                return Err(self.code(1002));
            }
            self.started = true;
            self.next_tick = Instant::now() + self.shared.settings.interval + self.phase();
            return Ok(());
        }
        if opcode == 1 {
            return Err(self.code(1002));
        }
        if payload.len() != 640 && self.shared.defect != Defect::AnySize {
            return Err(Some(1003));
        }
        self.received += 1;
        self.shared.counters.frames.fetch_add(1, Ordering::SeqCst);
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    /// A session's jitter, drawn from where its socket came from.
    fn phase(&self) -> Duration {
        static DRAWS: Mutex<VecDeque<u32>> = Mutex::new(VecDeque::new());
        if self.shared.defect == Defect::NoJitter {
            return Duration::ZERO;
        }
        let mut draws = DRAWS.lock().expect("sound");
        if draws.is_empty() {
            draws.extend([0, 7, 3, 9, 5, 1, 8, 4, 2, 6]);
        }
        self.shared.settings.jitter * draws.pop_front().unwrap_or(0) / 10
    }

    fn tick(&mut self, now: Instant) {
        let defect = self.shared.defect;
        let due = self.next_tick;
        if self.in_flight > 0 && defect != Defect::TwoInFlight {
            self.shared.counters.deferred.fetch_add(1, Ordering::SeqCst);
            // With this defect the tick stays due, and goes when the answer has come.
            if defect != Defect::FlushOnAnswer {
                self.next_tick += self.shared.settings.interval;
            }
            return;
        }
        self.next_tick = match defect {
            Defect::RelativeSchedule => {
                now + self.shared.settings.interval + Duration::from_millis(10)
            }
            Defect::FlushOnAnswer => now + self.shared.settings.interval,
            _ => due + self.shared.settings.interval,
        };
        if self.buffer.is_empty() {
            return;
        }
        self.flush(due, now);
    }

    fn flush(&mut self, due: Instant, now: Instant) {
        let frames = self.received - self.buffered_from + 1;
        let batch = Batch {
            oldest: self.buffered_from,
            frames,
            due,
            sent: now,
            pcm: std::mem::take(&mut self.buffer),
        };
        self.buffered_from = self.received + 1;
        self.batches += 1;
        if self.shared.defect == Defect::DroppedFlush && self.batches.is_multiple_of(2) {
            return;
        }
        self.in_flight += 1;
        let (model, done) = (Arc::clone(&self.shared.model), self.done.0.clone());
        let (passes, defect) = (self.shared.settings.passes, self.shared.defect);
        let timeout = self.shared.settings.inference_timeout;
        thread::spawn(move || {
            let version = if defect == Defect::OtherTransport {
                "HTTP/1.1"
            } else {
                "HTTP/2.0"
            };
            let kind = if defect == Defect::WrongContentType {
                "text/plain"
            } else {
                "application/octet-stream"
            };
            let outcome = model.infer(&batch.pcm, passes, version, kind);
            if matches!(outcome, Outcome::Never) {
                thread::sleep((batch.sent + timeout).saturating_duration_since(Instant::now()));
            }
            // The session may be over.
            let _ = done.send((batch, outcome));
        });
    }

    fn finish(&mut self, batch: &Batch, outcome: Outcome) {
        self.in_flight -= 1;
        let defect = self.shared.defect;
        let text = match outcome {
            Outcome::Answer(answer) => {
                let counted = if defect == Defect::Miscounts { 2 } else { 1 };
                self.shared
                    .counters
                    .partials
                    .fetch_add(counted, Ordering::SeqCst);
                self.partial(batch, &answer)
            }
            _ if defect == Defect::SilentFailure => return,
            Outcome::Never => self.error(batch, "inference_request", "timeout", None, true),
            Outcome::Status(status @ 500..) => {
                self.error(batch, "inference_request", "http_5xx", Some(status), true)
            }
            Outcome::Status(status) => {
                self.error(batch, "inference_request", "http_4xx", Some(status), false)
            }
            Outcome::Unreadable => {
                let retryable = defect == Defect::RetryableParseError;
                self.error(
                    batch,
                    "inference_response_parse",
                    "parse_error",
                    Some(200),
                    retryable,
                )
            }
        };
        self.send(Opcode::Text, text.to_string().as_bytes());
    }

    fn partial(&self, batch: &Batch, answer: &Answer) -> serde_json::Value {
        let defect = self.shared.defect;
        let shift = u64::from(defect == Defect::NumbersFromZero);
        let mut partial = json!({
            "type": "partial",
            "oldest_frame_seq": batch.oldest - shift,
            "newest_frame_seq": batch.oldest + batch.frames - 1 - shift,
            "frames": batch.frames,
            "rms": answer.rms,
            "zero_crossings": answer.zero_crossings,
            "checksum": answer.checksum.wrapping_add(u32::from(defect == Defect::WrongContent)),
            "samples": answer.samples,
            "transcript": answer.transcript,
            "audio_bytes": answer.audio_bytes,
            "cpu_passes": self.shared.settings.passes,
            "flush_lateness_ms": batch.sent.saturating_duration_since(batch.due).as_secs_f64() * 1e3,
        });
        if let Some(fields) = partial.as_object_mut() {
            match defect {
                Defect::ExtraField => drop(fields.insert("language".to_owned(), json!("en"))),
                Defect::MissingField => drop(fields.remove("flush_lateness_ms")),
                _ => {}
            }
        }
        partial
    }

    fn error(
        &self,
        batch: &Batch,
        stage: &str,
        kind: &str,
        status: Option<u16>,
        retryable: bool,
    ) -> serde_json::Value {
        let age_ms = batch.sent.elapsed().as_secs_f64() * 1e3;
        json!({
            "type": "error", "stage": stage, "kind": kind, "message": "as told",
            "oldest_frame_seq": batch.oldest, "newest_frame_seq": batch.oldest + batch.frames - 1,
            "frames": batch.frames, "audio_bytes": batch.pcm.len(),
            "oldest_age_ms": age_ms, "newest_age_ms": age_ms, "flush_lateness_ms": 0,
            "inference_elapsed_ms": age_ms, "inflight_gateway_batches": 0, "gateway_buffer_frames": 0,
            "inference_status": status, "retryable": retryable,
        })
    }
}

fn is_start(text: &[u8], defect: Defect) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Start {
        r#type: String,
    }
    if defect == Defect::LooseStart {
        return String::from_utf8_lossy(text).contains("t");
    }
    // A derived reader also takes the fields as an array.
    let object = text.trim_ascii_start().starts_with(b"{");
    object && serde_json::from_slice::<Start>(text).is_ok_and(|start| start.r#type == "start")
}
