//! A session under a simulated clock: single rules by example, the ledger of frames by random histories.

mod support;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, close_code};
use bytes::Bytes;
use proptest::prelude::*;
use rust_axum_plain::failure::{Failure, FailureKind};
use rust_axum_plain::gateway::Gateway;
use rust_axum_plain::messages::{FRAME_BYTES, Inference};
use rust_axum_plain::session::{Session, schedule};
use serde_json::Value;
use support::gateway;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, advance};

const INTERVAL_MS: u64 = 1000;

/// A session, its clock, and the world around it.
struct Simulation {
    session: Session,
    gateway: Arc<Gateway>,
    start: Instant,
    now_ms: u64,
    next_tick_ms: u64,
    request: Option<Bytes>,
    /// Taken while the gateway is at its cap.
    foreign_job: Option<OwnedSemaphorePermit>,
    client_reads: bool,
    frames: u32,
    received: Vec<Value>,
}

impl Simulation {
    fn new(variables: &[(&str, &str)]) -> Self {
        let gateway = gateway(&[&[("WORKER_THREADS", "1")], variables].concat());
        Self {
            session: Session::new(gateway.clone()),
            gateway,
            start: Instant::now(),
            now_ms: 0,
            next_tick_ms: INTERVAL_MS,
            request: None,
            foreign_job: None,
            client_reads: true,
            frames: 0,
            received: Vec::new(),
        }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    /// Sends frames whose samples tell their number.
    fn send(&mut self, frames: u32) {
        for _ in 0..frames {
            self.frames += 1;
            let pcm = self.frames.to_le_bytes().repeat(FRAME_BYTES / 4);
            self.session.frame(&pcm, self.at(self.now_ms)).expect("accepted");
        }
    }

    fn pass_ms(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while self.next_tick_ms <= end_ms {
            self.now_ms = self.next_tick_ms;
            self.next_tick_ms += INTERVAL_MS;
            self.tick(self.now_ms);
        }
        self.now_ms = end_ms;
    }

    fn tick(&mut self, scheduled_ms: u64) {
        let batch = self.session.tick(self.at(scheduled_ms), self.at(self.now_ms));
        if batch.is_some() {
            assert!(self.request.is_none(), "a second request in flight");
            self.request = batch;
        }
        self.read();
    }

    /// Ends the request in flight, if any.
    fn answer(&mut self, failure: Option<FailureKind>) -> bool {
        let Some(pcm) = self.request.take() else { return false };
        let outcome = match failure {
            Some(kind) => Err(Failure::new(kind, "", None)),
            None => Ok(answer(&pcm)),
        };
        self.session.answer(outcome, self.at(self.now_ms));
        self.read();
        true
    }

    fn read(&mut self) {
        while self.client_reads {
            let Some(message) = self.session.outbox.begin() else { break };
            let Message::Text(text) = message else { panic!("{message:?}") };
            self.received.push(serde_json::from_str(&text).expect("JSON"));
            self.session.outbox.sent();
        }
    }

    /// (type, kind, oldest, newest) of what the client has received.
    fn named(&self) -> Vec<(&str, &str, u64, u64)> {
        self.received
            .iter()
            .map(|message| {
                let text = |field: &str| message[field].as_str().unwrap_or("");
                let seq = |field: &str| message[field].as_u64().expect("a number");
                (text("type"), text("kind"), seq("oldest_frame_seq"), seq("newest_frame_seq"))
            })
            .collect()
    }

    /// A series of the metrics.
    fn metric(&self, series: &str) -> u64 {
        let text = self.gateway.metrics.render(0, 0).expect("metrics");
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().expect("a number")
    }
}

/// An answer that tells how long its batch was, and, by its checksum, which frame was the first.
fn answer(pcm: &Bytes) -> Inference {
    Inference {
        rms: 1.5,
        zero_crossings: 2,
        checksum: u32::from_le_bytes([pcm[0], pcm[1], pcm[2], pcm[3]]),
        samples: 4,
        transcript: "word".to_owned(),
        audio_bytes: pcm.len() as u64,
    }
}

#[tokio::test(start_paused = true)]
async fn the_schedule_is_absolute_and_one_tick_stands_for_all_that_are_overdue() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut ticks = schedule(start, Duration::from_secs(1));
    assert_eq!(ticks.tick().await, at(1000));
    advance(Duration::from_millis(1700)).await;
    assert_eq!(ticks.tick().await, at(2000));
    assert_eq!(ticks.tick().await, at(3000), "a late tick moves no other");
    advance(Duration::from_millis(3500)).await;
    assert_eq!(ticks.tick().await, at(4000));
    assert_eq!(ticks.tick().await, at(7000));
}

#[test]
fn lateness_and_content_are_told() {
    let mut simulation = Simulation::new(&[]);
    simulation.send(3);
    simulation.now_ms = 1007;
    simulation.tick(1000);
    assert!(simulation.answer(None));
    let partial = &simulation.received[0];
    assert_eq!(partial["flush_lateness_ms"], 7.0);
    assert_eq!((&partial["frames"], &partial["audio_bytes"]), (&3.into(), &1920.into()));
    assert_eq!((&partial["checksum"], &partial["cpu_passes"]), (&1.into(), &4.into()));
}

#[test]
fn only_frames_of_their_size_are_taken() {
    let mut simulation = Simulation::new(&[("OVERFLOW_POLICY", "close"), ("MAX_BUFFER_FRAMES", "2")]);
    let now = simulation.start;
    for bytes in [0, 1, 639, 641, 1280] {
        let taken = simulation.session.frame(&vec![0; bytes], now);
        assert_eq!(taken, Err(close_code::UNSUPPORTED), "{bytes} bytes");
    }
    simulation.send(2);
    assert_eq!(simulation.session.frame(&[0; FRAME_BYTES], now), Err(close_code::AGAIN));
    assert_eq!(simulation.metric("stt_frames_total"), 2);
}

#[test]
fn a_tick_with_a_request_in_flight_leaves_the_audio_for_the_next() {
    let mut simulation = Simulation::new(&[]);
    simulation.send(1);
    simulation.pass_ms(1000);
    simulation.pass_ms(1000);
    assert_eq!(simulation.metric("stt_ticks_deferred_total{reason=\"inflight\"}"), 0, "nothing to do");
    simulation.send(2);
    simulation.pass_ms(1000);
    assert_eq!(simulation.metric("stt_ticks_deferred_total{reason=\"inflight\"}"), 1);
    simulation.answer(None);
    simulation.pass_ms(1000);
    simulation.answer(None);
    assert_eq!(simulation.named(), [("partial", "", 1, 1), ("partial", "", 2, 3)]);
}

#[test]
fn at_the_cap_of_the_gateway_ticks_defer() {
    let mut simulation = Simulation::new(&[("MAX_INFLIGHT_JOBS", "1")]);
    let foreign = simulation.gateway.jobs.acquire().expect("free");
    simulation.send(1);
    simulation.pass_ms(2000);
    assert_eq!(simulation.metric("stt_ticks_deferred_total{reason=\"jobs\"}"), 2);
    drop(foreign);
    simulation.pass_ms(1000);
    assert_eq!(simulation.gateway.jobs.in_use(), 1);
    assert!(simulation.answer(None));
    assert_eq!(simulation.gateway.jobs.in_use(), 0);
}

#[test]
fn a_client_that_does_not_read_is_left_to_the_overflow_policy() {
    let mut simulation = Simulation::new(&[("MAX_BUFFER_FRAMES", "10"), ("OUTBOX_MESSAGES", "2")]);
    simulation.client_reads = false;
    for _ in 1..=3 {
        simulation.send(1);
        simulation.pass_ms(1000);
        simulation.answer(None);
    }
    assert_eq!(simulation.metric("stt_ticks_deferred_total{reason=\"outbox\"}"), 1);
    simulation.send(12);
    assert_eq!(simulation.metric("stt_frames_dropped_total"), 3);
    simulation.client_reads = true;
    simulation.read();
    simulation.pass_ms(1000);
    simulation.answer(None);
    let expected = [("partial", "", 1, 1), ("partial", "", 2, 2), ("error", "overflow", 3, 5), ("partial", "", 6, 15)];
    assert_eq!(simulation.named(), expected);
}

#[test]
fn drops_are_named_after_the_batch_before_them() {
    let mut simulation = Simulation::new(&[("MAX_BUFFER_FRAMES", "5")]);
    simulation.send(5);
    simulation.pass_ms(1000);
    simulation.send(8);
    simulation.pass_ms(1000);
    assert_eq!(simulation.received.len(), 0, "the drop waits for the batch that is older");
    simulation.answer(Some(FailureKind::Timeout));
    simulation.pass_ms(1000);
    simulation.answer(None);
    let expected = [("error", "timeout", 1, 5), ("error", "overflow", 6, 8), ("partial", "", 9, 13)];
    assert_eq!(simulation.named(), expected);
    let timeout = &simulation.received[0];
    assert_eq!((&timeout["inference_elapsed_ms"], &timeout["oldest_age_ms"]), (&1000.0.into(), &2000.0.into()));
    let overflow = &simulation.received[1];
    assert_eq!((&overflow["inference_elapsed_ms"], &overflow["inference_status"]), (&Value::Null, &Value::Null));
    assert_eq!((&overflow["audio_bytes"], &overflow["gateway_buffer_frames"]), (&1920.into(), &5.into()));
}

#[test]
fn drop_newest_is_named_after_what_was_kept() {
    let mut simulation = Simulation::new(&[("MAX_BUFFER_FRAMES", "5"), ("OVERFLOW_POLICY", "drop_newest")]);
    simulation.send(8);
    simulation.pass_ms(1000);
    simulation.send(1);
    simulation.answer(None);
    simulation.pass_ms(1000);
    simulation.answer(None);
    let expected = [("partial", "", 1, 5), ("error", "overflow", 6, 8), ("partial", "", 9, 9)];
    assert_eq!(simulation.named(), expected);
}

/// Something that happens to a session.
#[derive(Debug, Clone)]
enum Event {
    Frames(u32),
    PassMs(u64),
    Answer(Option<FailureKind>),
    Jobs(bool),
    ClientReads(bool),
}

fn event() -> impl Strategy<Value = Event> {
    let failure = prop_oneof![Just(None), Just(Some(FailureKind::Http5xx)), Just(Some(FailureKind::ParseError))];
    prop_oneof![
        4 => (1..30u32).prop_map(Event::Frames),
        4 => (0..1500u64).prop_map(Event::PassMs),
        3 => failure.prop_map(Event::Answer),
        1 => any::<bool>().prop_map(Event::Jobs),
        1 => any::<bool>().prop_map(Event::ClientReads),
    ]
}

proptest! {
    #[test]
    fn every_accepted_frame_is_named_exactly_once_and_in_order(
        events in prop::collection::vec(event(), 1..120),
        buffer_frames in 1..60usize,
        outbox_messages in 1..4usize,
        drop_oldest: bool,
    ) {
        let mut simulation = Simulation::new(&[
            ("MAX_BUFFER_FRAMES", &buffer_frames.to_string()),
            ("OUTBOX_MESSAGES", &outbox_messages.to_string()),
            ("OVERFLOW_POLICY", if drop_oldest { "drop_oldest" } else { "drop_newest" }),
            ("MAX_INFLIGHT_JOBS", "1"),
        ]);
        for event in events {
            match event {
                Event::Frames(count) => simulation.send(count),
                Event::PassMs(ms) => simulation.pass_ms(ms),
                Event::Answer(kind) => drop(simulation.answer(kind)),
                Event::Jobs(true) => simulation.foreign_job = None,
                Event::Jobs(false) => simulation.foreign_job = simulation.gateway.jobs.acquire(),
                Event::ClientReads(reads) => simulation.client_reads = reads,
            }
            simulation.read();
            prop_assert!(simulation.session.outbox.unsent() <= outbox_messages);
        }
        // Let everything through.
        (simulation.foreign_job, simulation.client_reads) = (None, true);
        for _ in 0..4 {
            simulation.read();
            simulation.pass_ms(INTERVAL_MS);
            simulation.answer(None);
        }
        let mut next = 1;
        let mut dropped = 0;
        for (message, (kind, what, oldest, newest)) in simulation.received.iter().zip(simulation.named()) {
            prop_assert_eq!(oldest, next);
            prop_assert!(newest >= oldest);
            prop_assert!(kind == "error" || message["checksum"] == oldest, "the samples are those of the frames");
            next = newest + 1;
            dropped += if what == "overflow" { newest - oldest + 1 } else { 0 };
        }
        prop_assert_eq!(next, u64::from(simulation.frames) + 1);
        prop_assert_eq!(dropped, simulation.metric("stt_frames_dropped_total"));
        prop_assert_eq!(simulation.frames, u32::try_from(simulation.metric("stt_frames_total")).expect("few"));
    }
}
