//! Connections of HTTP/1.1 with a made-up clock: what becomes of a request, whatever the server does.

use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_MS, NS_PER_S};
use plimsoll_core::session::{Disconnect, Session};

use crate::account::Counts;
use crate::arrivals::Dispatch;
use crate::rig::{Asked, Rig, Slot};

mod connections;
mod properties;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CLOSING: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// The quantile of a series, in milliseconds.
fn at_ms(rig: &Rig, series: Series, quantile: f64) -> u64 {
    let us = rig
        .recorder
        .interval
        .histogram(series)
        .value_at_quantile(quantile);
    // The histogram has three digits.
    (us + 5) / 1_000
}

fn slot(rig: &Rig) -> Slot {
    rig.places[0].slot
}

/// The first request is due at 200 ms, the second at 700 ms.
fn two_a_second() -> Rig {
    let mut rig = Rig::open(Asked::on_one(2));
    rig.until_ms(200);
    assert_eq!(rig.places[0].wire, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    rig
}

#[test]
fn a_right_answer_has_the_age_of_its_request() {
    let mut rig = two_a_second();
    rig.until_ms(210);
    // In two pieces.
    rig.sends(0, &OK[..20]);
    rig.until_ms(215);
    rig.sends(0, &OK[20..]);
    rig.until_ms(700);
    rig.answers(0);
    assert!(rig.places[0].session.settled());
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 2, 0, 0]);
    assert_eq!(at_ms(&rig, Series::NewestFromSchedule, 1.0), 15);
    assert_eq!(at_ms(&rig, Series::NewestFromWrite, 1.0), 15);
    assert_eq!(
        (counts.written_in_window, counts.answered_in_window),
        (2, 2)
    );
    assert_eq!((counts.body_bytes, counts.bodies_unchecked), (4, 0));
    assert_eq!((counts.connections_opened, counts.found_all_busy), (1, 0));
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.content_checked, ledger.sessions_started), (2, 1));
}

/// The server takes 30 ms for each answer, and a request is due every 10 ms.
#[test]
fn a_request_that_waits_for_a_busy_connection_counts_from_its_schedule() {
    let mut rig = Rig::open(Asked::on_one(100));
    for answer in 0..10 {
        rig.until_ms(230 + 30 * answer);
        let wait = &rig.places[0].session.transmit(0).is_none();
        assert!(wait, "one request at a time");
        rig.answers(0);
    }
    assert_eq!(at_ms(&rig, Series::NewestFromWrite, 1.0), 30);
    // The last answer, to the request that was due at 290 ms, came at 500 ms.
    assert_eq!(at_ms(&rig, Series::NewestFromSchedule, 1.0), 210);
    let counts = rig.finish();
    // Due at 200 ms, 210 ms, … 500 ms. Ten are answered, one is written, and the rest never was.
    assert_eq!(rig.account(), [31, 10, 0, 21]);
    assert_eq!(rig.reasons(), [("never_written", 20), ("unanswered", 1)]);
    assert_eq!(counts.found_all_busy, 30);
    assert_eq!(counts.written_in_window, 11);
    // What was never written has waited since it was due, in both records: at most from 310 ms on.
    assert_eq!(at_ms(&rig, Series::NewestFromWrite, 1.0), 190);
}

#[test]
fn what_held_a_request_back_is_known_to_the_engine() {
    let mut rig = Rig::open(Asked::on_one(100));
    rig.until_ms(215);
    // Its socket takes nothing, so that the next request can be looked at.
    rig.places[0].full = true;
    rig.answers(0);
    let now_ns = rig.now_ns;
    let transmit = rig.places[0].session.transmit(now_ns).expect("a request");
    assert_eq!(transmit.due_ns, Some(210 * NS_PER_MS));
    assert_eq!(transmit.held_until_ns, Some(215 * NS_PER_MS));
    assert!(transmit.measured);
}

#[test]
fn an_answer_with_another_status_or_body_is_an_error_and_the_connection_lives() {
    for (answer, name, wrong) in [
        (
            &b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"[..],
            "http_status 503",
            0,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
            "wrong_body",
            1,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\no",
            "wrong_body",
            1,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nokk",
            "wrong_body",
            1,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "wrong_body",
            1,
        ),
    ] {
        let mut rig = two_a_second();
        rig.sends(0, answer);
        rig.until_ms(700);
        rig.answers(0);
        let counts = rig.finish();
        assert_eq!(rig.account(), [2, 1, 1, 0], "{name}");
        assert_eq!(rig.reasons(), [(name, 1)]);
        assert_eq!(counts.connections_opened, 1);
        let ledger = &rig.recorder.ledger;
        assert_eq!((ledger.errors, ledger.content_wrong), (1, wrong), "{name}");
        assert_eq!(counts.answered_in_window, 1);
    }
}

#[test]
fn what_is_not_http_ends_the_connection_and_it_opens_again() {
    let mut rig = two_a_second();
    rig.sends(0, b"SSH-2.0-OpenSSH\r\n");
    assert!(
        matches!(slot(&rig), Slot::Connecting(_)),
        "{:?}",
        slot(&rig)
    );
    rig.opened(0);
    rig.until_ms(700);
    rig.answers(0);
    // Nobody asked for this one.
    rig.answers(0);
    assert!(
        matches!(slot(&rig), Slot::Connecting(_)),
        "{:?}",
        slot(&rig)
    );
    rig.finish();
    assert_eq!(rig.account(), [2, 1, 1, 0]);
    assert_eq!(rig.reasons(), [("bad_answer", 1), ("unasked_answer", 1)]);
    assert_eq!(rig.recorder.ledger.protocol_faults, 1);
    assert_eq!(rig.recorder.sessions_open, 0);
}

#[test]
fn a_get_that_meets_a_close_is_asked_once_more_with_its_clock_unchanged() {
    let mut rig = two_a_second();
    rig.answers(0);
    rig.until_ms(700);
    rig.until_ms(701);
    rig.ends(0, Disconnect::Reset);
    assert!(matches!(slot(&rig), Slot::Connecting(_)));
    rig.until_ms(702);
    rig.opened(0);
    assert_eq!(rig.places[0].wire, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    rig.until_ms(705);
    rig.answers(0);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 2, 0, 0]);
    assert_eq!(at_ms(&rig, Series::NewestFromSchedule, 1.0), 5);
    assert_eq!(at_ms(&rig, Series::NewestFromWrite, 1.0), 5);
    // It counts as one request, however often it was sent.
    assert_eq!(rig.recorder.ledger.frames_sent_in_all, 2);
    assert_eq!((counts.written_in_window, counts.asked_again), (2, 1));
    assert_eq!((counts.closed_idle, counts.connections_opened), (0, 2));
}

#[test]
fn a_get_is_not_asked_a_third_time() {
    let mut rig = two_a_second();
    rig.answers(0);
    rig.until_ms(700);
    rig.ends(0, Disconnect::Closed);
    rig.opened(0);
    rig.ends(0, Disconnect::Closed);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 1, 1, 0]);
    assert_eq!(rig.reasons(), [("closed_before_answer", 1)]);
    assert_eq!(counts.asked_again, 1);
}

#[test]
fn a_first_request_that_meets_a_close_is_an_error() {
    let mut rig = two_a_second();
    rig.ends(0, Disconnect::Closed);
    let counts = rig.finish();
    assert_eq!(rig.account(), [1, 0, 1, 0]);
    assert_eq!(rig.reasons(), [("closed_before_answer", 1)]);
    assert_eq!(counts.asked_again, 0);
}

#[test]
fn a_post_that_meets_a_close_is_an_error() {
    let mut rig = Rig::open(Asked {
        test: "post",
        ..Asked::on_one(2)
    });
    rig.until_ms(200);
    let body = rig.places[0].wire.len() - 1_024;
    let sum = crc32fast::hash(&rig.places[0].wire[body..]);
    let text = format!("{sum:08x} 1024");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    rig.sends(0, answer.as_bytes());
    rig.until_ms(700);
    rig.ends(0, Disconnect::Closed);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 1, 1, 0]);
    assert_eq!(rig.reasons(), [("closed_before_answer", 1)]);
    assert_eq!(counts.asked_again, 0);
}

#[test]
fn an_answer_that_is_cut_off_is_an_error() {
    for cut in [&OK[..5], &OK[..OK.len() - 1]] {
        let mut rig = two_a_second();
        rig.answers(0);
        rig.until_ms(700);
        rig.sends(0, cut);
        rig.ends(0, Disconnect::Closed);
        rig.finish();
        assert_eq!(rig.account(), [2, 1, 1, 0]);
        assert_eq!(rig.reasons(), [("closed_in_answer", 1)]);
    }
}

#[test]
fn a_close_between_two_requests_is_counted_and_the_connection_opens_again_at_once() {
    let mut rig = two_a_second();
    rig.answers(0);
    rig.until_ms(400);
    rig.ends(0, Disconnect::Closed);
    assert!(matches!(slot(&rig), Slot::Connecting(_)));
    rig.opened(0);
    rig.until_ms(700);
    rig.answers(0);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 2, 0, 0]);
    assert_eq!((counts.closed_idle, counts.asked_again), (1, 0));
    assert_eq!(rig.recorder.ledger.sessions_died, 0);
}

/// Otherwise the client would connect as fast as it can.
#[test]
fn a_server_that_accepts_and_closes_at_once_is_tried_again_after_a_pause() {
    let mut rig = Rig::open(Asked::on_one(2));
    rig.ends(0, Disconnect::Closed);
    assert!(
        matches!(slot(&rig), Slot::Planned(Some(_))),
        "{:?}",
        slot(&rig)
    );
    rig.until_ms(198);
    assert!(matches!(slot(&rig), Slot::Planned(_)));
    rig.until_ms(199);
    assert!(matches!(slot(&rig), Slot::Connecting(_)));
}

#[test]
fn an_announced_close_is_one_and_the_client_connects_again() {
    let mut rig = two_a_second();
    rig.sends(0, CLOSING);
    assert!(
        matches!(slot(&rig), Slot::Connecting(_)),
        "{:?}",
        slot(&rig)
    );
    rig.opened(0);
    rig.until_ms(700);
    rig.answers(0);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 2, 0, 0]);
    assert_eq!((counts.closed_announced, counts.closed_idle), (1, 0));
    assert_eq!((counts.connections_opened, counts.asked_again), (2, 0));
}

/// HTTP/1.0 ends a body with the connection. That is one close, and it is no idle one.
#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let mut rig = two_a_second();
    rig.sends(0, b"HTTP/1.0 200 OK\r\n\r\nok");
    rig.ends(0, Disconnect::Closed);
    let counts = rig.finish();
    assert_eq!(rig.account(), [1, 1, 0, 0]);
    assert_eq!((counts.closed_announced, counts.closed_idle), (1, 0));
}

/// A server may refuse a body before it has read it. What is left of the request must not go out before the next one.
#[test]
fn an_answer_before_its_request_is_written_ends_the_connection() {
    for (answer, accounts) in [
        (
            &b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"[..],
            [1, 0, 1, 0],
        ),
        (OK, [1, 1, 0, 0]),
    ] {
        let mut rig = Rig::open(Asked::on_one(2));
        rig.places[0].full = true;
        rig.until_ms(200);
        rig.sends(0, answer);
        assert!(
            matches!(slot(&rig), Slot::Connecting(_)),
            "{:?}",
            slot(&rig)
        );
        rig.finish();
        assert_eq!(rig.account(), accounts);
    }
}

#[test]
fn an_answer_that_takes_2_s_is_given_up_with_its_connection() {
    let mut rig = two_a_second();
    rig.until_ms(2_199);
    assert_eq!(slot(&rig), Slot::Connected);
    rig.until_ms(2_200);
    assert_ne!(slot(&rig), Slot::Connected);
    // The one that was due at 700 ms waits. The window is over, but not the grace.
    rig.opened(0);
    rig.until_ms(2_201);
    rig.answers(0);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 1, 0, 1]);
    assert_eq!(rig.reasons(), [("timeout", 1)]);
    assert_eq!(counts.found_all_busy, 1);
    assert_eq!(rig.recorder.ledger.errors, 1);
    // In the histogram with the time since its schedule.
    assert_eq!(at_ms(&rig, Series::NewestFromSchedule, 1.0), 2_000);
    assert_eq!(at_ms(&rig, Series::NewestFromWrite, 1.0), 2_000);
}

/// The timeout counts from the first write, also where the request is asked once more.
#[test]
fn a_connection_for_a_request_that_is_asked_again_must_open_before_its_timeout() {
    let mut rig = two_a_second();
    rig.answers(0);
    rig.until_ms(700);
    rig.until_ms(1_500);
    rig.ends(0, Disconnect::Closed);
    assert_eq!(slot(&rig), Slot::Connecting(2_700 * NS_PER_MS));
    rig.until_ms(2_700);
    rig.finish();
    assert_eq!(rig.account(), [2, 1, 0, 1]);
    assert_eq!(rig.reasons(), [("not open in time", 1), ("timeout", 1)]);
}

#[test]
fn what_no_connection_took_is_lost_with_the_time_it_waited() {
    let mut rig = Rig::new(Asked::on_one(2));
    rig.until_ms(500);
    rig.ends(0, Disconnect::Refused);
    rig.until_ms(1_300);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 0, 0, 2]);
    let reasons = rig.reasons();
    assert!(reasons.contains(&("never_written", 2)), "{reasons:?}");
    assert!(reasons.contains(&("connection refused", 1)), "{reasons:?}");
    assert_eq!(
        (counts.connections_opened, counts.connections_failed),
        (0, 1)
    );
    assert_eq!(at_ms(&rig, Series::NewestFromSchedule, 1.0), 1_100);
}

#[test]
fn requests_go_to_the_connection_that_has_been_idle_the_longest() {
    let mut rig = Rig::open(Asked {
        connections: 3,
        ..Asked::on_one(100)
    });
    let busy = |rig: &Rig| -> Vec<bool> {
        let places = rig.places.iter();
        places
            .map(|place| place.session.next_due_ns().is_some())
            .collect()
    };
    rig.until_ms(200);
    assert_eq!(busy(&rig), [true, false, false]);
    rig.answers(0);
    rig.until_ms(210);
    assert_eq!(busy(&rig), [false, true, false]);
    rig.until_ms(220);
    assert_eq!(busy(&rig), [false, true, true]);
    rig.until_ms(240);
    assert_eq!(busy(&rig), [true, true, true]);
    // Due at 240 ms; the first that is free gets it.
    rig.until_ms(241);
    rig.answers(2);
    assert_eq!(busy(&rig), [true, true, true]);
    let counts = rig.finish();
    assert_eq!(counts.found_all_busy, 1);
    assert_eq!(rig.account(), [5, 2, 0, 3]);
}

#[test]
fn a_fixed_request_waits_for_its_own_connection_although_others_are_free() {
    let mut rig = Rig::open(Asked {
        connections: 2,
        dispatch: Dispatch::Fixed,
        ..Asked::on_one(100)
    });
    // Requests 0, 2 and 4 are for the first connection, which does not answer.
    for answered_ms in [210, 230] {
        rig.until_ms(answered_ms);
        rig.answers(1);
    }
    rig.until_ms(240);
    rig.answers(0);
    let counts = rig.finish();
    assert_eq!(rig.account(), [5, 3, 0, 2]);
    assert_eq!(rig.reasons(), [("never_written", 1), ("unanswered", 1)]);
    assert_eq!(counts.found_all_busy, 2);
}

#[test]
fn a_closed_loop_asks_as_soon_as_it_is_answered_however_requests_are_dispatched() {
    for dispatch in [Dispatch::Pool, Dispatch::Fixed] {
        let mut rig = Rig::open(Asked {
            connections: 2,
            dispatch,
            closed_loop: true,
            ..Asked::on_one(1)
        });
        rig.until_ms(200);
        for _ in 0..10 {
            rig.answers(0);
            rig.answers(1);
            rig.until_ms(rig.now_ns / NS_PER_MS + 1);
        }
        rig.until_ms(1_300);
        rig.answers(0);
        rig.answers(1);
        let counts = rig.finish();
        // Two came before the window.
        assert_eq!(rig.account(), [20, 20, 0, 0], "{dispatch:?}");
        assert_eq!(counts.answered_in_window, 20);
    }
}
