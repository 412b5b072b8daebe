//! Messages cost the client no memory of their own: what it needs, it has after the first few.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::session::{Session, SessionMachines};
use plimsoll_workload::Value;
use plimsoll_workload::calibrate::{After, Speaker};

use super::peer::{BATCH, Peer};
use super::readers::Readers;
use super::{Confirming, links, messages, values};
use crate::link::Links;
use crate::load::{BrokerLoad, Test};
use crate::machines::Connections;
use crate::session::{BrokerSession, Claim};

/// Looks of the engine in a second.
const LOOKS_PER_S: u64 = 2_000;
const LOOK_NS: u64 = 1_000_000_000 / LOOKS_PER_S;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, which counts what each thread asks of it, and what it did not give back.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocated(bytes: usize) {
    // A thread that ends may allocate when its counter is gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    hold(bytes.cast_signed());
}

fn hold(bytes: isize) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let _ = HELD_BYTES.try_with(|held| held.set(held.get() + bytes));
}

#[allow(unsafe_code)]
// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        hold(-layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        allocated(bytes);
        hold(-layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

/// What a stretch of a trial took of memory.
struct Taken {
    allocations: u64,
    /// Of those, what it did not give back.
    bytes: i64,
}

impl Taken {
    /// Once in 32,768 numbers a set of numbers grows: each writer and each reader has a few. Fault of other benchmarks:
    /// they keep all samples. Ten million messages may hold less than 64 MiB.
    #[track_caller]
    fn expect_for(&self, messages: u64) {
        let (allocations, bytes) = (self.allocations, self.bytes);
        let most = 8 * (messages / 32_768 + 1);
        assert!(allocations <= most, "{allocations} for {messages} messages");
        let for_ten_million = i128::from(bytes) * 10_000_000 / i128::from(messages);
        assert!(
            for_ten_million < 64 << 20,
            "{bytes} B for {messages} messages"
        );
    }
}

/// A session and the sink's side of its connection.
struct Wire<P> {
    session: BrokerSession,
    peer: P,
    profile: Profile,
    recorder: Recorder<Claim>,
    now_ns: u64,
    /// Bytes to the sink, and back.
    out: Vec<u8>,
    back: Vec<u8>,
}

impl<P: Speaker> Wire<P> {
    fn new(session: BrokerSession, peer: P, profile: Profile) -> Self {
        Self {
            session,
            peer,
            profile,
            recorder: Recorder::default(),
            now_ns: 0,
            out: Vec::new(),
            back: Vec::new(),
        }
    }

    /// Goes on for so many seconds. Returns what that took of memory.
    fn go_on(&mut self, seconds: u64) -> Taken {
        let before = (ALLOCATIONS.get(), HELD_BYTES.get());
        for _ in 0..seconds * LOOKS_PER_S {
            self.look();
        }
        Taken {
            allocations: ALLOCATIONS.get() - before.0,
            bytes: HELD_BYTES.get() - before.1,
        }
    }

    fn look(&mut self) {
        self.now_ns += LOOK_NS;
        while let Some(transmit) = self.session.transmit(self.now_ns) {
            self.out.extend_from_slice(transmit.head);
            self.out.extend_from_slice(transmit.body);
            self.session.sent(self.now_ns, &mut self.recorder);
        }
        let after = self.peer.heard(&mut self.out, &mut self.back);
        assert_eq!(after, After::GoOn);
        self.out.clear();
        self.peer
            .unasked(self.now_ns, &self.profile, &mut self.back);
        if !self.back.is_empty() {
            self.session
                .received(self.now_ns, &self.back, &mut self.recorder);
            self.back.clear();
        }
    }
}

fn profile() -> Profile {
    Profile {
        ramp_s: 0.01,
        warm_up_s: 1.0,
        measured_s: 100.0,
        ..Profile::quick()
    }
}

fn nowhere() -> plimsoll_core::session::Endpoint {
    plimsoll_core::session::Endpoint {
        host: String::new(),
        path: "/".to_owned(),
        headers: Vec::new(),
    }
}

#[test]
fn a_message_that_is_published_takes_no_memory() {
    let rate = 16_000;
    let load =
        BrokerLoad::of(&values(Test::Publish).with("writers", Value::Whole(1))).expect("a load");
    let links = Links::new(&load, &nowhere(), 0).expect("links");
    let connections = Connections::new(&load, links, 0, rate, &profile()).expect("machines");
    let plan = connections.plan(0, 1, &profile(), 1);
    let mut wire = Wire::new(connections.session(&plan), Confirming::default(), profile());
    wire.go_on(2);
    let sent = wire.recorder.ledger.frames_sent_in_all;
    let took = wire.go_on(10);
    let messages = wire.recorder.ledger.frames_sent_in_all - sent;
    assert_eq!(messages, 10 * u64::from(rate));
    took.expect_for(messages);
    // All of them were confirmed, but for those that the last look wrote.
    let open =
        wire.recorder.ledger.frames_sent_in_all - wire.recorder.ledger.frames_answered_in_all;
    assert!(open <= 8, "{open}");
    assert_eq!(wire.recorder.ledger.protocol_faults, 0);
}

#[test]
fn a_message_that_is_taken_takes_no_memory() {
    let readers = Readers::new(links(Test::Steady, &nowhere()), messages(), 1, &profile());
    let plan = readers.plan(0, 1, &profile(), 1);
    let peer = Peer::new(0, messages().into());
    let mut wire = Wire::new(readers.session(&plan), peer, profile());
    wire.go_on(2);
    let taken = wire.recorder.ledger.frames_answered_in_all;
    let took = wire.go_on(20);
    let messages = wire.recorder.ledger.frames_answered_in_all - taken;
    assert_eq!(messages, 20 * 250 * u64::from(BATCH));
    took.expect_for(messages);
    let ledger = &wire.recorder.ledger;
    assert!(
        ledger.content_checked > messages / 128,
        "some are compared whole"
    );
    assert_eq!((ledger.protocol_faults, ledger.errors), (0, 0));
}
