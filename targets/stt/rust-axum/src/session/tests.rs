//! A session under a simulated clock: single rules by example, the ledger of frames by random histories.

use super::*;
use crate::failure::FailureKind;
use proptest::prelude::*;
use serde_json::Value;

const INTERVAL_MS: u64 = 1000;
const JITTER_MS: u64 = 300;

/// A session, its clock, and the world around it.
struct Simulation {
    session: Session<Bytes>,
    start: Instant,
    now: Instant,
    jobs_free: bool,
    client_reads: bool,
    frames: u32,
    received: Vec<Value>,
}

fn settings() -> Settings {
    Settings {
        flush_interval: Duration::from_millis(INTERVAL_MS),
        start_timeout: Duration::from_secs(10),
        inference_timeout: Duration::from_millis(2500),
        buffer_frames_max: 500,
        overflow_policy: OverflowPolicy::DropOldest,
        outbox_messages_max: 4,
        cpu_passes: 4,
    }
}

fn answer(pcm: &Bytes) -> Inference {
    Inference {
        rms: 1.5,
        zero_crossings: 2,
        checksum: 3,
        samples: 4,
        transcript: "word".to_owned(),
        audio_bytes: pcm.len() as u64,
    }
}

impl Simulation {
    fn started(settings: Settings) -> Self {
        let start = Instant::now();
        let mut session = Session::new(settings, Duration::from_millis(JITTER_MS), start);
        session.on_text(start, br#"{"type":"start"}"#).expect("a good start");
        Self { session, start, now: start, jobs_free: true, client_reads: true, frames: 0, received: Vec::new() }
    }

    /// Sends frames whose samples tell their number.
    fn send(&mut self, frames: u32) -> Result<(), CloseReason> {
        for _ in 0..frames {
            self.session.on_binary(self.now, &(self.frames + 1).to_le_bytes().repeat(FRAME_BYTES / 4))?;
            self.frames += 1;
        }
        Ok(())
    }

    /// Lets time pass, waking the session whenever it wants to be.
    fn run_until_ms(&mut self, ms: u64) {
        let end = self.start + Duration::from_millis(ms);
        while let Some(wake_at) = self.session.wake_at().filter(|wake_at| *wake_at <= end) {
            self.now = self.now.max(wake_at);
            self.wake();
        }
        self.now = self.now.max(end);
        self.read();
    }

    fn wake(&mut self) {
        let jobs_free = self.jobs_free;
        self.session.on_wake(self.now, || jobs_free.then_some(|pcm| pcm)).expect("started in time");
        self.read();
    }

    /// Ends the request in flight, if any.
    fn answer(&mut self, failure: Option<Failure>) -> bool {
        let Some(pcm) = self.session.request_mut().map(|pcm| pcm.clone()) else { return false };
        let first = self.session.slot.busy().expect("a request").span.oldest_seq;
        for (index, frame) in pcm.chunks(FRAME_BYTES).enumerate() {
            let seq = u32::try_from(first).expect("a short test") + u32::try_from(index).expect("a short test");
            assert_eq!(frame, seq.to_le_bytes().repeat(FRAME_BYTES / 4), "the samples are those of frame {seq}");
        }
        let result = match failure {
            Some(failure) => Err(failure),
            None => Ok(answer(&pcm)),
        };
        self.session.on_answer(self.now, result);
        self.read();
        true
    }

    fn read(&mut self) {
        while self.client_reads {
            let Some(message) = self.session.outbox().next_to_send() else { break };
            self.received.push(serde_json::from_str(&message).expect("JSON"));
            self.session.outbox().sent();
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
}

fn deferred(session: &mut Session<Bytes>, reason: Deferral) -> u64 {
    session.take_tally().deferred[reason as usize]
}

#[test]
fn nothing_but_a_start_opens_a_session() {
    let now = Instant::now();
    let new = || Session::<()>::new(settings(), Duration::ZERO, now);
    assert_eq!(new().on_text(now, b"{}"), Err(CloseReason::Protocol));
    assert_eq!(new().on_binary(now, &[0; FRAME_BYTES]), Err(CloseReason::Protocol));
    let mut late = new();
    assert_eq!(late.wake_at(), Some(now + Duration::from_secs(10)));
    let woken = late.on_wake(now + Duration::from_secs(10), || Some(|_| ()));
    assert_eq!(woken, Err(CloseReason::Protocol));
}

#[test]
fn after_the_start_only_frames_are_welcome() {
    let mut simulation = Simulation::started(settings());
    let now = simulation.now;
    assert_eq!(simulation.session.on_text(now, br#"{"type":"start"}"#), Err(CloseReason::Protocol));
    assert_eq!(simulation.session.on_binary(now, &[0; 639]), Err(CloseReason::FrameSize));
    assert_eq!(simulation.session.on_binary(now, &[]), Err(CloseReason::FrameSize));
    assert_eq!(simulation.send(1), Ok(()));
}

#[test]
fn ticks_keep_their_schedule_and_lateness_is_told() {
    let mut simulation = Simulation::started(settings());
    simulation.send(3).expect("accepted");
    assert_eq!(simulation.session.wake_at(), Some(simulation.start + Duration::from_millis(1300)));
    simulation.now = simulation.start + Duration::from_millis(1307);
    simulation.wake();
    assert!(simulation.answer(None));
    assert_eq!(simulation.received[0]["flush_lateness_ms"], 7.0);
    assert_eq!(simulation.received[0]["frames"], 3);
    assert_eq!(simulation.session.wake_at(), Some(simulation.start + Duration::from_millis(2300)));
    simulation.run_until_ms(3300);
    assert!(!simulation.answer(None), "an empty buffer makes no request");
}

#[test]
fn a_tick_with_a_request_in_flight_leaves_the_audio_for_the_next() {
    let mut simulation = Simulation::started(settings());
    simulation.send(1).expect("accepted");
    simulation.run_until_ms(1300);
    simulation.send(2).expect("accepted");
    simulation.run_until_ms(2300);
    assert_eq!(deferred(&mut simulation.session, Deferral::InFlight), 1);
    simulation.answer(None);
    simulation.run_until_ms(3300);
    simulation.answer(None);
    assert_eq!(simulation.named(), [("partial", "", 1, 1), ("partial", "", 2, 3)]);
}

#[test]
fn a_request_without_an_answer_times_out() {
    let mut simulation = Simulation::started(settings());
    simulation.send(50).expect("accepted");
    simulation.run_until_ms(1300 + 2499);
    assert_eq!(simulation.received, Vec::<Value>::new());
    simulation.run_until_ms(1300 + 2500);
    let error = &simulation.received[0];
    assert_eq!((&error["kind"], &error["retryable"]), (&"timeout".into(), &true.into()));
    assert_eq!(error["inference_elapsed_ms"], 2500.0);
    assert_eq!(error["oldest_age_ms"], 3800.0);
    assert_eq!(error["inference_status"], Value::Null);
    assert!(!simulation.answer(None), "a late answer finds no batch");
}

#[test]
fn at_the_cap_of_the_gateway_ticks_defer() {
    let mut simulation = Simulation::started(settings());
    simulation.jobs_free = false;
    simulation.send(1).expect("accepted");
    simulation.run_until_ms(2300);
    assert_eq!(deferred(&mut simulation.session, Deferral::Jobs), 2);
    simulation.jobs_free = true;
    simulation.run_until_ms(3300);
    assert!(simulation.answer(None));
}

#[test]
fn a_client_that_does_not_read_is_left_to_the_overflow_policy() {
    let mut simulation = Simulation::started(Settings { buffer_frames_max: 10, outbox_messages_max: 2, ..settings() });
    simulation.client_reads = false;
    for second in 1..=3 {
        simulation.send(1).expect("accepted");
        simulation.run_until_ms(second * 1000 + JITTER_MS);
        simulation.answer(None);
    }
    assert_eq!(deferred(&mut simulation.session, Deferral::Outbox), 1);
    simulation.send(12).expect("accepted, at the cost of older ones");
    assert_eq!(simulation.session.take_tally().frames_dropped, 3);
    simulation.client_reads = true;
    simulation.read();
    simulation.run_until_ms(4300);
    simulation.answer(None);
    let expected = [("partial", "", 1, 1), ("partial", "", 2, 2), ("error", "overflow", 3, 5), ("partial", "", 6, 15)];
    assert_eq!(simulation.named(), expected);
}

#[test]
fn drops_are_named_after_the_batch_before_them() {
    let mut simulation = Simulation::started(Settings { buffer_frames_max: 5, ..settings() });
    simulation.send(5).expect("accepted");
    simulation.run_until_ms(1300);
    simulation.send(8).expect("accepted");
    simulation.run_until_ms(2300);
    assert_eq!(simulation.received.len(), 0, "the drop waits for the batch that is older");
    simulation.answer(None);
    simulation.run_until_ms(3300);
    simulation.answer(None);
    let expected = [("partial", "", 1, 5), ("error", "overflow", 6, 8), ("partial", "", 9, 13)];
    assert_eq!(simulation.named(), expected);
    let error = &simulation.received[1];
    assert_eq!((&error["inference_elapsed_ms"], &error["inference_status"]), (&Value::Null, &Value::Null));
    assert_eq!((&error["audio_bytes"], &error["gateway_buffer_frames"]), (&1920.into(), &5.into()));
}

#[test]
fn the_close_policy_closes() {
    let policy = OverflowPolicy::Close;
    let mut simulation = Simulation::started(Settings { buffer_frames_max: 5, overflow_policy: policy, ..settings() });
    assert_eq!(simulation.send(6), Err(CloseReason::Overflow));
    assert_eq!(CloseReason::Overflow.code(), 1013);
}

#[test]
fn draining_answers_what_is_in_flight_and_no_more() {
    let mut simulation = Simulation::started(settings());
    simulation.send(2).expect("accepted");
    simulation.run_until_ms(1300);
    simulation.send(2).expect("accepted");
    let until = simulation.now + Duration::from_secs(4);
    simulation.session.drain(until);
    assert!(!simulation.session.is_drained());
    simulation.run_until_ms(2300);
    simulation.client_reads = false;
    simulation.answer(None);
    assert!(!simulation.session.is_drained(), "the answer has not left");
    simulation.client_reads = true;
    simulation.read();
    assert!(simulation.session.is_drained());
    assert_eq!(simulation.named(), [("partial", "", 1, 2)]);
}

#[test]
fn a_drain_does_not_wait_for_ever() {
    let mut simulation = Simulation::started(settings());
    simulation.send(2).expect("accepted");
    simulation.run_until_ms(1300);
    let until = simulation.now + Duration::from_secs(1);
    simulation.session.drain(until);
    let before = simulation.session.on_wake(until - Duration::from_millis(1), || None::<fn(Bytes) -> Bytes>);
    assert_eq!(before, Ok(()));
    let after = simulation.session.on_wake(until, || None::<fn(Bytes) -> Bytes>);
    assert_eq!(after, Err(CloseReason::GoingAway));
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

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, message: String::new(), status: None }
}

proptest! {
    #[test]
    fn every_accepted_frame_is_named_exactly_once_and_in_order(
        events in prop::collection::vec(event(), 1..120),
        buffer_frames_max in 1..60usize,
        outbox_messages_max in 1..4usize,
        drop_oldest: bool,
    ) {
        let overflow_policy = if drop_oldest { OverflowPolicy::DropOldest } else { OverflowPolicy::DropNewest };
        let settings = Settings { buffer_frames_max, outbox_messages_max, overflow_policy, ..settings() };
        let mut simulation = Simulation::started(settings);
        let mut clock_ms = 0;
        let mut dropped = 0;
        for event in events {
            match event {
                Event::Frames(count) => simulation.send(count).expect("both policies accept every frame"),
                Event::PassMs(ms) => {
                    clock_ms += ms;
                    simulation.run_until_ms(clock_ms);
                }
                Event::Answer(kind) => drop(simulation.answer(kind.map(failure))),
                Event::Jobs(free) => simulation.jobs_free = free,
                Event::ClientReads(reads) => simulation.client_reads = reads,
            }
            simulation.read();
            dropped += simulation.session.take_tally().frames_dropped;
            prop_assert!(simulation.session.audio.frames() <= buffer_frames_max);
            prop_assert!(simulation.session.outbox.unsent() <= outbox_messages_max + 1);
        }
        // Let everything through.
        (simulation.jobs_free, simulation.client_reads) = (true, true);
        for _ in 0..4 {
            simulation.read();
            clock_ms += INTERVAL_MS + JITTER_MS;
            simulation.run_until_ms(clock_ms);
            simulation.answer(None);
        }
        let mut next = 1;
        let mut overflowed = 0;
        for (_, kind, oldest, newest) in simulation.named() {
            prop_assert_eq!(oldest, next);
            prop_assert!(newest >= oldest);
            next = newest + 1;
            overflowed += if kind == "overflow" { newest - oldest + 1 } else { 0 };
        }
        prop_assert_eq!(next, u64::from(simulation.frames) + 1);
        prop_assert_eq!(overflowed, dropped);
    }
}
