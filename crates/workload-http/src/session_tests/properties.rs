//! What holds whatever happens to connections, and when.

use proptest::prelude::*;

use super::*;

/// Something that may happen to a connection.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Answers,
    AnswersAndCloses,
    Sends(&'static [u8]),
    Ends(Disconnect),
    IsFull,
    HasRoom,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => Just(Happens::Answers),
        1 => Just(Happens::AnswersAndCloses),
        1 => prop_oneof![
            Just(&b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"[..]),
            Just(&b"HTTP/1.1 200 OK\r\nContent-"[..]),
            Just(&b"HTTP/1.0 200 OK\r\n\r\nok"[..]),
            Just(&b"HTTP/1.1 100 Continue\r\n\r\n"[..]),
            Just(&b"Length: 2\r\n\r\no"[..]),
            Just(&b"nonsense\r\n"[..]),
        ].prop_map(Happens::Sends),
        1 => prop_oneof![
            Just(Disconnect::Closed),
            Just(Disconnect::Reset),
            Just(Disconnect::Failed),
            Just(Disconnect::HoldsTooMuch),
        ].prop_map(Happens::Ends),
        1 => Just(Happens::IsFull),
        1 => Just(Happens::HasRoom),
    ]
}

/// What happens to one of three connections after so many milliseconds; one that opens may be refused instead.
fn apply(rig: &mut Rig, id: usize, happens: Happens) {
    match (rig.places[id].slot, happens) {
        (Slot::Connecting(_), Happens::Ends(how)) => {
            let how = if how == Disconnect::Closed {
                Disconnect::Refused
            } else {
                how
            };
            rig.ends(id, how);
        }
        (Slot::Connecting(_), _) => rig.opened(id),
        (Slot::Connected, Happens::Answers) => rig.answers(id),
        (Slot::Connected, Happens::AnswersAndCloses) => rig.sends(id, CLOSING),
        (Slot::Connected, Happens::Sends(bytes)) => rig.sends(id, bytes),
        (Slot::Connected, Happens::Ends(how)) => rig.ends(id, how),
        (Slot::Connected, Happens::IsFull) => rig.places[id].full = true,
        (Slot::Connected, Happens::HasRoom) => rig.has_room(id),
        (Slot::Planned(_) | Slot::Over, _) => {}
    }
}

/// How many requests of this rate are due in the window and not after `now_ns`.
fn due_until(rig: &Rig, rate: u32) -> u64 {
    let last_ns = rig.now_ns.min(rig.window.end_ns - 1);
    let since_ns = last_ns.checked_sub(rig.window.start_ns);
    since_ns.map_or(0, |since_ns| since_ns * u64::from(rate) / NS_PER_S + 1)
}

proptest! {
    /// Whatever the server does and whenever the trial ends, every request that was due is answered, errored or lost, and
    /// none is in two places.
    #[test]
    fn the_ledger_always_adds_up(
        test in prop_oneof![Just("rate"), Just("post"), Just("json"), Just("connect")],
        fixed in any::<bool>(),
        rate in 1_u32..400,
        warm_up in 0_u32..200,
        events in prop::collection::vec((0_u64..30, 0_usize..3, happens()), 1..200),
        rest_ms in 0_u64..4_000,
    ) {
        let dispatch = if fixed && test != "connect" { Dispatch::Fixed } else { Dispatch::Pool };
        let mut rig = Rig::new(Asked { test, connections: 3, rate, warm_up, dispatch, closed_loop: false });
        for (after_ms, id, happens) in events {
            let until_ms = rig.now_ns / NS_PER_MS + after_ms;
            rig.until_ms(until_ms);
            apply(&mut rig, id, happens);
        }
        let until_ms = rig.now_ns / NS_PER_MS + rest_ms;
        rig.until_ms(until_ms);
        let counts: Counts = rig.finish();
        let ledger = &rig.recorder.ledger;
        prop_assert_eq!(ledger.frames_due, due_until(&rig, rate));
        prop_assert!(ledger.frames_sent <= ledger.frames_due);
        prop_assert!(ledger.frames_sent_in_all >= ledger.frames_answered_in_all);
        // Each has a latency: an answer, or the time that it was waited for.
        let latencies = rig.recorder.interval.histogram(Series::NewestFromSchedule);
        prop_assert_eq!(latencies.len(), ledger.frames_answered + ledger.frames_lost);
        let failed = ledger.frames_errored + ledger.frames_lost;
        prop_assert_eq!(ledger.errors, failed);
        prop_assert_eq!(ledger.sessions_started, counts.connections_opened);
        prop_assert_eq!(ledger.sessions_failed, counts.connections_failed);
        let open = rig.places.iter().filter(|place| place.slot == Slot::Connected).count() as u64;
        prop_assert_eq!(rig.recorder.sessions_open, open);
    }
}
