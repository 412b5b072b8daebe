//! A session under a simulated clock: the rules by example, the ledger of its frames by random histories.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::failure::Kind;
use crate::metrics;

const INTERVAL_MS: u64 = 1000;
const JITTER_MS: u64 = 300;

/// The samples of a batch, with one number for each frame.
type Sent = Vec<u32>;

/// The way out, as far as tests need one.
struct Way {
    has_jobs: bool,
    sent: usize,
}

impl Carrier for Way {
    type Job = ();
    type Request = Sent;

    fn job(&mut self) -> Option<()> {
        self.has_jobs.then_some(())
    }

    fn send(&mut self, (): (), pcm: Pcm) -> Sent {
        self.sent += 1;
        let bytes: Vec<u8> = pcm.iter().flat_map(|piece| piece.as_ref().to_vec()).collect();
        let (frames, rest) = bytes.as_chunks::<FRAME_BYTES>();
        assert_eq!(rest, b"", "whole frames");
        frames.iter().map(|frame| u32::from_le_bytes(*frame.first_chunk().expect("four bytes"))).collect()
    }
}

/// A session, its clock, and the world around it.
struct Simulation {
    rules: Rules,
    session: Session<Sent>,
    start: Instant,
    now: Instant,
    way: Way,
    pool: Pool,
    tally: Tally,
    client_reads: bool,
    frames: u32,
    received: Vec<Value>,
}

fn rules() -> Rules {
    Rules {
        flush_interval: Duration::from_millis(INTERVAL_MS),
        start_timeout: Duration::from_secs(10),
        inference_timeout: Duration::from_millis(2500),
        buffer_frames_max: 500,
        overflow_policy: OverflowPolicy::DropOldest,
        outbox_messages_max: 4,
        cpu_passes: 4,
    }
}

impl Simulation {
    fn started(rules: Rules) -> Self {
        let start = Instant::now();
        let mut session = Session::new(&rules, Duration::from_millis(JITTER_MS), start);
        session.on_start(&rules, start, br#"{"type":"start"}"#).expect("a good start");
        Self {
            rules,
            session,
            start,
            now: start,
            way: Way { has_jobs: true, sent: 0 },
            pool: Pool::default(),
            tally: Tally::default(),
            client_reads: true,
            frames: 0,
            received: Vec::new(),
        }
    }

    /// Sends frames whose samples tell their number.
    fn send(&mut self, frames: u32) -> Result<(), CloseReason> {
        for _ in 0..frames {
            self.session.on_announced(false, 640, true)?;
            if let Some(place) = self.session.place(FRAME_BYTES, &mut self.pool) {
                place.copy_from_slice(&(self.frames + 1).to_le_bytes().repeat(FRAME_BYTES / 4));
            }
            self.session.on_frame(self.now, &mut self.pool, &mut self.tally)?;
            self.frames += 1;
        }
        Ok(())
    }

    /// Lets time pass, with the session woken whenever it wants to be.
    fn run_until_ms(&mut self, ms: u64) {
        let end = self.start + Duration::from_millis(ms);
        while self.session.wake_at() <= end {
            self.now = self.now.max(self.session.wake_at());
            self.wake().expect("started in time");
        }
        self.now = self.now.max(end);
    }

    fn wake(&mut self) -> Result<Option<Sent>, CloseReason> {
        let Self { rules, session, now, way, pool, tally, .. } = self;
        let given_up = session.on_wake(rules, *now, way, pool, tally);
        self.read();
        given_up
    }

    /// Ends the request in flight, if there is one.
    fn answer(&mut self, failure: Option<Failure>) -> bool {
        let Some(span) = self.session.lane.flight().map(|flight| flight.span) else { return false };
        let inference = Inference {
            rms: 1.5,
            zero_crossings: 2,
            checksum: 3,
            samples: 4,
            transcript: Cow::Borrowed("word"),
            audio_bytes: span.frames() * 640,
        };
        let answer = failure.map_or(Ok(inference), Err);
        let sent = self.session.on_answer(&self.rules, self.now, answer, &mut self.tally).expect("a request");
        let expected: Vec<u64> = (span.oldest_seq..=span.newest_seq).collect();
        assert_eq!(sent.into_iter().map(u64::from).collect::<Vec<_>>(), expected, "the batch is what it is named");
        self.read();
        true
    }

    /// The client takes what there is, if it reads.
    fn read(&mut self) {
        if !self.client_reads {
            return;
        }
        let outbox = &mut self.session.outbox;
        let mut bytes = outbox.unsent_bytes();
        while let [0x81, 126, high, low, rest @ ..] = bytes {
            let (text, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            self.received.push(serde_json::from_slice(text).expect("JSON"));
            bytes = rest;
        }
        assert_eq!(bytes, b"");
        outbox.advance(outbox.unsent_bytes().len());
    }

    /// (type, kind, oldest, newest) of what the client has.
    fn named(&self) -> Vec<(&str, &str, u64, u64)> {
        let name = |message: &'_ Value, field| message[field].as_u64().expect("a number");
        self.received
            .iter()
            .map(|message| {
                let kind = message["kind"].as_str().unwrap_or("");
                let (oldest, newest) = (name(message, "oldest_frame_seq"), name(message, "newest_frame_seq"));
                (message["type"].as_str().expect("a type"), kind, oldest, newest)
            })
            .collect()
    }

    /// A metric, as it would be scraped.
    fn metric(&self, name: &str) -> u64 {
        let published = metrics::Published::default();
        published.store(&self.tally);
        let text = metrics::render([published].iter(), 0, 0);
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a metric");
        line.trim().parse().expect("a number")
    }

    fn deferred(&self, reason: &str) -> u64 {
        self.metric(&format!("stt_ticks_deferred_total{{reason=\"{reason}\"}}"))
    }
}

#[test]
fn nothing_but_a_start_opens_a_session() {
    let (rules, now) = (rules(), Instant::now());
    let new = || Session::<Sent>::new(&rules, Duration::ZERO, now);
    assert_eq!(new().on_start(&rules, now, b"{}"), Err(CloseReason::Protocol));
    assert_eq!(new().on_announced(false, 640, true), Err(CloseReason::Protocol));
    assert_eq!(new().on_announced(true, 5000, false), Ok(()));
    let mut late = new();
    let until = now + rules.start_timeout;
    assert_eq!(late.wake_at(), until);
    let mut way = Way { has_jobs: true, sent: 0 };
    let woken = late.on_wake(&rules, until, &mut way, &mut Pool::default(), &mut Tally::default());
    assert_eq!(woken, Err(CloseReason::Protocol));
}

#[test]
fn after_the_start_only_frames_are_welcome() {
    let mut simulation = Simulation::started(rules());
    let session = &simulation.session;
    assert_eq!(session.on_announced(true, 16, true), Err(CloseReason::Protocol));
    for (bytes, is_whole, is_good) in [
        (640, true, true),
        (640, false, true),
        (0, false, true),
        (0, true, false),
        (639, true, false),
        (641, true, false),
        (641, false, false),
    ] {
        let expected = if is_good { Ok(()) } else { Err(CloseReason::FrameSize) };
        assert_eq!(session.on_announced(false, bytes, is_whole), expected, "{bytes} {is_whole}");
    }
    assert_eq!(simulation.send(1), Ok(()));
}

#[test]
fn ticks_keep_their_schedule_and_lateness_is_told() {
    let mut simulation = Simulation::started(rules());
    simulation.send(3).expect("accepted");
    assert_eq!(simulation.session.wake_at(), simulation.start + Duration::from_millis(1300));
    simulation.now = simulation.start + Duration::from_millis(1307);
    simulation.wake().expect("started");
    assert!(simulation.answer(None));
    assert_eq!(simulation.received[0]["flush_lateness_ms"], 7.0);
    assert_eq!(simulation.received[0]["frames"], 3);
    assert_eq!(simulation.session.wake_at(), simulation.start + Duration::from_millis(2300));
    simulation.run_until_ms(3300);
    assert!(!simulation.answer(None), "an empty buffer makes no request");
}

#[test]
fn a_tick_with_a_request_in_flight_leaves_the_audio_for_the_next() {
    let mut simulation = Simulation::started(rules());
    simulation.send(1).expect("accepted");
    simulation.run_until_ms(1300);
    simulation.send(2).expect("accepted");
    simulation.run_until_ms(2300);
    assert_eq!((simulation.way.sent, simulation.deferred("inflight")), (1, 1));
    simulation.answer(None);
    assert_eq!(simulation.way.sent, 1, "not before the next tick");
    simulation.run_until_ms(3300);
    simulation.answer(None);
    assert_eq!(simulation.named(), [("partial", "", 1, 1), ("partial", "", 2, 3)]);
}

#[test]
fn a_request_without_an_answer_times_out() {
    let mut simulation = Simulation::started(rules());
    simulation.send(50).expect("accepted");
    simulation.run_until_ms(1300 + 2499);
    assert_eq!(simulation.received, Vec::<Value>::new());
    simulation.now = simulation.start + Duration::from_millis(1300 + 2500);
    let given_up = simulation.wake().expect("started");
    assert_eq!(given_up.map(|sent| sent.len()), Some(50), "to be cancelled");
    let error = &simulation.received[0];
    assert_eq!((&error["kind"], &error["retryable"]), (&"timeout".into(), &true.into()));
    assert_eq!((&error["inference_elapsed_ms"], &error["oldest_age_ms"]), (&2500.0.into(), &3800.0.into()));
    assert_eq!(error["inference_status"], Value::Null);
    assert!(!simulation.answer(None), "a late answer finds no batch");
}

#[test]
fn at_the_cap_of_the_gateway_ticks_defer() {
    let mut simulation = Simulation::started(rules());
    simulation.way.has_jobs = false;
    simulation.send(1).expect("accepted");
    simulation.run_until_ms(2300);
    assert_eq!((simulation.deferred("jobs"), simulation.way.sent), (2, 0));
    simulation.way.has_jobs = true;
    simulation.run_until_ms(3300);
    assert!(simulation.answer(None));
}

#[test]
fn a_client_that_does_not_read_is_left_to_the_overflow_policy() {
    let mut simulation = Simulation::started(Rules { buffer_frames_max: 10, outbox_messages_max: 2, ..rules() });
    simulation.client_reads = false;
    for second in 1..=3 {
        simulation.send(1).expect("accepted");
        simulation.run_until_ms(second * 1000 + JITTER_MS);
        simulation.answer(None);
    }
    assert_eq!(simulation.deferred("outbox"), 1);
    simulation.send(12).expect("accepted, at the cost of older ones");
    assert_eq!(simulation.metric("stt_frames_dropped_total "), 3);
    simulation.client_reads = true;
    simulation.read();
    simulation.run_until_ms(4300);
    simulation.answer(None);
    let expected = [("partial", "", 1, 1), ("partial", "", 2, 2), ("error", "overflow", 3, 5), ("partial", "", 6, 15)];
    assert_eq!(simulation.named(), expected);
}

#[test]
fn drops_are_named_after_the_batch_before_them() {
    let mut simulation = Simulation::started(Rules { buffer_frames_max: 5, ..rules() });
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
    let overflow_policy = OverflowPolicy::Close;
    let mut simulation = Simulation::started(Rules { buffer_frames_max: 5, overflow_policy, ..rules() });
    assert_eq!(simulation.send(6), Err(CloseReason::Overflow));
    assert_eq!((simulation.frames, CloseReason::Overflow.code()), (5, 1013));
}

#[test]
fn draining_answers_what_is_in_flight_and_no_more() {
    let mut simulation = Simulation::started(rules());
    simulation.send(2).expect("accepted");
    simulation.run_until_ms(1300);
    simulation.send(2).expect("accepted");
    let until = simulation.now + Duration::from_secs(4);
    simulation.session.drain(until);
    assert!(!simulation.session.is_drained());
    simulation.send(1).expect("not looked at");
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
    let mut simulation = Simulation::started(rules());
    simulation.send(2).expect("accepted");
    simulation.run_until_ms(1300);
    let until = simulation.now + Duration::from_secs(1);
    simulation.session.drain(until);
    simulation.now = until - Duration::from_millis(1);
    assert_eq!(simulation.wake(), Ok(None));
    simulation.now = until;
    assert_eq!(simulation.wake(), Err(CloseReason::GoingAway));
    assert_eq!(simulation.session.end(&mut simulation.pool).map(|sent| sent.len()), Some(2), "to be cancelled");
}

/// Something that happens to a session.
#[derive(Debug, Clone)]
enum Happening {
    Frames(u32),
    PassMs(u64),
    Answer(Option<Kind>),
    Jobs(bool),
    ClientReads(bool),
}

fn happening() -> impl Strategy<Value = Happening> {
    let failure = prop_oneof![Just(None), Just(Some(Kind::Http5xx)), Just(Some(Kind::ParseError))];
    prop_oneof![
        4 => (1..30_u32).prop_map(Happening::Frames),
        4 => (0..1500_u64).prop_map(Happening::PassMs),
        3 => failure.prop_map(Happening::Answer),
        1 => any::<bool>().prop_map(Happening::Jobs),
        1 => any::<bool>().prop_map(Happening::ClientReads),
    ]
}

fn failure(kind: Kind) -> Failure {
    Failure { kind, message: "".into(), status: None }
}

proptest! {
    #[test]
    fn every_accepted_frame_is_named_exactly_once_and_in_order(
        history in prop::collection::vec(happening(), 1..120),
        buffer_frames_max in 1..60_usize,
        outbox_messages_max in 1..4_usize,
        drops_oldest: bool,
    ) {
        let overflow_policy = if drops_oldest { OverflowPolicy::DropOldest } else { OverflowPolicy::DropNewest };
        let mut simulation =
            Simulation::started(Rules { buffer_frames_max, outbox_messages_max, overflow_policy, ..rules() });
        let mut clock_ms = 0;
        for happening in history {
            match happening {
                Happening::Frames(count) => simulation.send(count).expect("both policies accept every frame"),
                Happening::PassMs(ms) => {
                    clock_ms += ms;
                    simulation.run_until_ms(clock_ms);
                }
                Happening::Answer(kind) => drop(simulation.answer(kind.map(failure))),
                Happening::Jobs(has_jobs) => simulation.way.has_jobs = has_jobs,
                Happening::ClientReads(reads) => simulation.client_reads = reads,
            }
            simulation.read();
            prop_assert!(simulation.session.audio.frames() <= buffer_frames_max);
            // A tick may name drops and launch a batch, and the batch is named whatever has come between.
            prop_assert!(simulation.session.outbox.unsent() <= outbox_messages_max + 1);
        }
        // Now nothing is in the way any more.
        (simulation.way.has_jobs, simulation.client_reads) = (true, true);
        for _ in 0..4 {
            simulation.read();
            clock_ms += INTERVAL_MS + JITTER_MS;
            simulation.run_until_ms(clock_ms);
            simulation.answer(None);
        }
        let (mut next, mut overflowed) = (1, 0);
        for (_, kind, oldest, newest) in simulation.named() {
            prop_assert_eq!(oldest, next);
            prop_assert!(newest >= oldest);
            next = newest + 1;
            overflowed += if kind == "overflow" { newest - oldest + 1 } else { 0 };
        }
        prop_assert_eq!(next, u64::from(simulation.frames) + 1);
        prop_assert_eq!(overflowed, simulation.metric("stt_frames_dropped_total "));
        prop_assert_eq!(u64::from(simulation.frames), simulation.metric("stt_frames_total "));
    }
}
