//! The faults that a test of WebSocket servers can have, one by one (`docs/ws/guide.md`): for each a test that shows that these machines do not have it, as far as that shows without
//! sockets. Faults 8 (one run per cell, no intervals) and 9's batches are the search's and the schedule's; the sizes of fault 6 are tested in `payload`.

use plimsoll_core::latency::Series;
use plimsoll_core::profile::NS_PER_S;
use plimsoll_core::sanity::{ClientCounts, TargetCounts, metrics};
use plimsoll_core::schedule::{Arrivals, Spacing};
use plimsoll_core::session::{Disconnect, Session as _, SessionMachines as _};
use serde_json::{Value, json};

use super::closed_loop::ClosedPings;
use super::rig::{MS, Reply, Rig, Said, close_frame, peer, profile, text};
use super::*;

fn endpoint() -> Endpoint {
    peer(Dialect::Wse).endpoint
}

fn stream(format: Format) -> WseMessages {
    WseMessages::new(endpoint(), &format.trade_update(), format, 10 * MS)
}

fn pings() -> WsePings {
    WsePings::new(endpoint(), 100 * MS)
}

/// Pongs that come `delay_ns` after their pings.
fn after(delay_ns: u64, said: &Said) -> Vec<Reply> {
    said.pong()
        .map(|pong| (delay_ns, pong))
        .into_iter()
        .collect()
}

/// Fault 1: what was written is taken for delivered.
#[test]
fn a_server_that_discards_has_answered_nothing() {
    let (mut rig, _) = Rig::new(&stream(Format::Json)).greeted();
    rig.run_until(8_000 * MS, |_, _| Vec::new());
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.frames_sent, ledger.frames_due), (200, 200));
    assert_eq!((ledger.frames_answered, ledger.frames_lost), (0, 200));
    assert_eq!(rig.recorder.interval.censored(), 200);
}

/// Fault 1 again: a server that reads and then stops reading is credited with what it is proven to have read.
#[test]
fn a_server_that_stops_reading_is_credited_with_what_it_read() {
    let (mut rig, _) = Rig::new(&stream(Format::Json)).greeted();
    rig.run_until(8_000 * MS, |now_ns, said| {
        if now_ns < 2_000 * MS {
            after(MS, said)
        } else {
            Vec::new()
        }
    });
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert!((90..=100).contains(&ledger.frames_answered));
    assert_eq!(ledger.frames_answered + ledger.frames_lost, 200);
}

/// Fault 2: the server parses and drops. Its pongs prove that it read; that the application had nothing shows in its own counter.
#[test]
fn a_server_that_does_no_work_disagrees_with_its_counter() {
    let (mut rig, _) = Rig::new(&stream(Format::Json)).greeted();
    rig.run_until(3_300 * MS, |_, said| after(MS, said));
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!(ledger.frames_lost, 0);
    let client = ClientCounts {
        frames_sent: ledger.frames_sent_in_all,
        frames_answered: ledger.frames_answered_in_all,
        partials: ledger.partials_in_all,
        sessions: ledger.sessions_started,
    };
    let counted = |frames| TargetCounts {
        frames: Some(frames),
        ..TargetCounts::default()
    };
    assert!(metrics(&counted(f64::from(330)), &client)[0].holds);
    assert!(!metrics(&counted(0.0), &client)[0].holds);
}

/// Fault 3: formats are compared that the server never decodes.
#[test]
fn a_format_that_is_never_decoded_is_opaque() {
    // This server reads JSON, and hands on everything else as bytes, as the WSE engine does on an ordinary session.
    let reads_json = |_: u64, said: &Said| after(MS, said);
    for format in Format::ALL {
        let workload = stream(format);
        let (mut rig, said) = Rig::new(&workload).greeted();
        if let Some(pong) = said[1].pong() {
            rig.receive(&pong);
        }
        rig.run_until(3_300 * MS, reads_json);
        rig.finish();
        let ledger = &rig.recorder.ledger;
        assert_eq!(
            ledger.frames_lost,
            0,
            "it read them all, {} too",
            format.name()
        );
        rig.settle(&workload);
        let proof = workload.decode_proof();
        assert_eq!(proof.asked, 1);
        assert_eq!(proof.holds(), format == Format::Json, "{}", format.name());
    }
}

/// Fault 3, the other way round: an answer to the question in that very format is a proof.
#[test]
fn a_format_that_is_decoded_is_proven() {
    let workload = stream(Format::Msgpack);
    let (mut rig, said) = Rig::new(&workload).greeted();
    let question: Value = rmp_serde::from_slice(&said[1].payload).unwrap();
    let answer = json!({"t": "PONG", "p": {"client_timestamp": question["p"]["timestamp"]}});
    let packed = [b"M:".to_vec(), rmp_serde::to_vec(&answer).unwrap()].concat();
    let frame = plimsoll_protocol::websocket::RawFrame::server(
        plimsoll_protocol::websocket::Opcode::Binary,
        &packed,
    );
    for _ in 0..2 {
        rig.receive(&frame.to_vec());
    }
    rig.finish();
    rig.settle(&workload);
    assert_eq!(
        workload.decode_proof(),
        DecodeProof {
            asked: 1,
            answered: 1
        }
    );
}

/// Fault 4: the next ping waits for the last answer, and what timed out vanishes. A server stands still from 1.2 s to 2.7 s.
#[test]
fn a_server_that_stands_still_is_asked_all_the_same() {
    let stands_still = |now_ns: u64, said: &Said| {
        let until_ns = 2_700 * MS;
        let delay_ns = if (1_200 * MS..until_ns).contains(&now_ns) {
            until_ns - now_ns
        } else {
            MS
        };
        after(delay_ns, said)
    };
    let (mut open, _) = Rig::new(&pings()).greeted();
    open.run_until(3_200 * MS, stands_still);
    open.finish();
    assert_eq!(open.recorder.ledger.frames_answered, 20);
    assert!((1_400..=1_500).contains(&open.max_ms(Series::NewestFromSchedule)));
    // 15 of the 20 pings met the standstill, so the median did.
    let latency = open.recorder.interval.summary().newest.from_schedule;
    assert!(latency.p50_ms.unwrap() > 300.0);

    let closed = ClosedPings::new(peer(Dialect::Wse), 500);
    let (mut rig, _) = Rig::new(&closed).greeted();
    rig.run_until(3_200 * MS, stands_still);
    rig.finish();
    rig.settle(&closed);
    let told = closed.told();
    assert!(told.pings_answered > 300);
    assert!(
        told.round_trip.p99_ms.unwrap() < 2.0,
        "one slow ping in hundreds: the closed loop does not see it"
    );
}

/// Fault 4 again: what is never answered is in the histogram with at least the time it was waited for.
#[test]
fn unanswered_pings_are_in_the_percentiles() {
    let loses = |now_ns: u64, said: &Said| {
        if now_ns > 2_000 * MS {
            Vec::new()
        } else {
            after(MS, said)
        }
    };
    let (mut open, _) = Rig::new(&pings()).greeted();
    open.run_until(8_000 * MS, loses);
    open.finish();
    let latency = open.recorder.interval.summary().newest.from_schedule;
    assert_eq!(latency.count, 20);
    assert!(latency.censored >= 9 && latency.max_ms.unwrap() > 5_000.0);

    let closed = ClosedPings::new(peer(Dialect::Wse), 2_000);
    let (mut rig, _) = Rig::new(&closed).greeted();
    rig.run_until(8_000 * MS, loses);
    rig.finish();
    rig.settle(&closed);
    let told = closed.told();
    assert!(told.pings_given_up >= 1);
    assert!(told.round_trip.max_ms.unwrap() < 2.0, "they vanish there");
}

/// Fault 5: the client's own lateness passes for the server's. Here it is seen apart: the latency from the write leaves it out.
#[test]
fn a_late_client_is_told_from_a_slow_server() {
    let (mut rig, _) = Rig::new(&pings()).greeted();
    rig.run_until(1_450 * MS, |_, said| after(MS, said));
    // The next ping is written 40 ms late and answered at once.
    rig.now_ns = rig.session.next_due_ns().unwrap() + 40 * MS;
    let said = rig.said();
    rig.now_ns += MS;
    rig.receive(&said[0].pong().unwrap());
    assert_eq!(rig.max_ms(Series::NewestFromSchedule), 41);
    assert_eq!(rig.max_ms(Series::NewestFromWrite), 1);
}

fn storm() -> Storm {
    let arrivals = Arrivals {
        rate_per_s: 100.0,
        spacing: Spacing::Even,
        open_within_ns: 5 * NS_PER_S,
    };
    Storm::new(peer(Dialect::Wse), arrivals, NS_PER_S)
}

/// Faults 6 and 9: connections that are said to come in batches are opened all at once, or wait for the slowest of their batch.
#[test]
fn arrivals_come_by_the_clock_whoever_is_slow() {
    let storm = storm();
    let plans: Vec<_> = (0..300)
        .map(|id| storm.plan(id, 300, &profile(), 1))
        .collect();
    for second in 0..3 {
        let (from_ns, to_ns) = (second * NS_PER_S, (second + 1) * NS_PER_S);
        let in_second = |plan: &&plimsoll_core::schedule::SessionPlan| {
            (from_ns..to_ns).contains(&plan.connect_at_ns)
        };
        assert_eq!(plans.iter().filter(in_second).count(), 100);
    }
    // A server that accepts slowly: the wait is in the latency of that arrival, and in nobody else's.
    let mut slow = Rig::of(&storm, 150, 300);
    let due_ns = slow.now_ns;
    slow.session.connecting(slow.now_ns, &mut slow.recorder);
    slow.now_ns += 3 * NS_PER_S;
    let request = slow.writes().concat();
    slow.receive(&rig::upgrade(&request));
    slow.receive(&text(&json!({"t": "server_ready", "p": {}})));
    slow.writes();
    assert_eq!(slow.max_ms(Series::NewestFromSchedule) / 10, 300);
    assert_eq!(Rig::of(&storm, 150, 300).now_ns, due_ns);
}

/// Fault 7: failures are only counted. Here each has its name.
#[test]
fn every_failure_of_an_arrival_is_classified() {
    type Script = fn(&mut Rig<StormSession>);
    let scripts: [(&str, Script); 8] = [
        ("tcp_refused", |rig| end(rig, Disconnect::Refused)),
        ("closed_before_http", |rig| end(rig, Disconnect::Reset)),
        ("timeout", |rig| end(rig, Disconnect::TimedOut)),
        ("http_status 503", |rig| {
            rig.receive(b"HTTP/1.1 503 Busy\r\n\r\n");
        }),
        ("bad_handshake", |rig| rig.receive(b"SMTP ready\r\n\r\n")),
        ("auth_4401", |rig| {
            upgrade(rig);
            rig.receive(&text(&json!({"t": "error", "p": {"code": "AUTH_FAILED"}})));
            rig.receive(&close_frame(4401));
        }),
        ("no_server_ready", |rig| {
            upgrade(rig);
            end(rig, Disconnect::TimedOut);
        }),
        ("no_server_ready", |rig| {
            upgrade(rig);
            rig.receive(&close_frame(1011));
        }),
    ];
    for (name, script) in scripts {
        let mut rig = Rig::of(&storm(), 200, 300);
        rig.session.connecting(rig.now_ns, &mut rig.recorder);
        rig.now_ns += 20 * MS;
        script(&mut rig);
        rig.finish();
        assert_eq!(rig.reason(name), 1, "{name}: {:?}", rig.recorder.ledger);
        let ledger = &rig.recorder.ledger;
        assert_eq!((ledger.sessions_failed, ledger.frames_due), (1, 1));
        // In vain is at least so long; refused is no latency.
        assert_eq!(ledger.frames_errored + ledger.frames_lost, 1);
        assert_eq!(rig.recorder.interval.censored(), ledger.frames_lost);
    }
}

fn end(rig: &mut Rig<StormSession>, how: Disconnect) {
    rig.session.disconnected(rig.now_ns, how, &mut rig.recorder);
}

fn upgrade(rig: &mut Rig<StormSession>) {
    let request = rig.writes().concat();
    rig.receive(&rig::upgrade(&request));
}

/// Fault 7 again: a port range that is full is the client's. Such an arrival never began, so nothing of it is in the account; the engine counts
/// `EADDRNOTAVAIL` (`client_faults.rs` there) and the trial is invalid.
#[test]
fn an_arrival_that_the_clients_machine_refused_is_no_frame() {
    let rig = Rig::of(&storm(), 200, 300);
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.frames_sent, ledger.frames_due), (0, 0));
    assert_eq!(ledger.sessions_failed, 0);
}

/// Fault 10: a pong that comes late is taken for the answer to the ping after it.
#[test]
fn a_late_pong_answers_its_own_ping_only() {
    let (mut rig, _) = Rig::new(&pings()).greeted();
    // From 1.4 s on nothing is answered; the first of those pings is, 250 ms late, when others are under way.
    let mut late = None;
    rig.run_until(1_650 * MS, |now_ns, said| {
        if now_ns < 1_400 * MS {
            return after(MS, said);
        }
        late.get_or_insert_with(|| (now_ns, said.pong().unwrap()));
        Vec::new()
    });
    let (asked_ns, pong) = late.unwrap();
    rig.now_ns = asked_ns + 250 * MS;
    let answered = rig.recorder.ledger.frames_answered;
    rig.receive(&pong);
    assert_eq!(rig.recorder.ledger.frames_answered, answered + 1);
    assert_eq!(rig.max_ms(Series::NewestFromSchedule), 250);
    assert!(!rig.session.settled());
    // Once more: it answers nothing again.
    rig.receive(&pong);
    assert_eq!(rig.recorder.ledger.frames_answered, answered + 1);
    assert_eq!(rig.recorder.ledger.frames_duplicated, 1);
}

/// Fault 10 again: the WSE engine sends a pong that carries no ping's timestamp. It answers nothing.
#[test]
fn a_pong_without_a_pings_timestamp_answers_nothing() {
    let (mut rig, _) = Rig::new(&pings()).greeted();
    rig.run_until(1_450 * MS, |_, said| after(MS, said));
    let answered = rig.recorder.ledger.frames_answered;
    for timestamp in [
        json!(0),
        json!(1_700_000_000_000_u64),
        json!(-1),
        json!(null),
    ] {
        rig.receive(&rig::pong(&timestamp));
    }
    assert_eq!(rig.recorder.ledger.frames_answered, answered);
    assert_eq!(rig.recorder.ledger.protocol_faults, 4);
}
