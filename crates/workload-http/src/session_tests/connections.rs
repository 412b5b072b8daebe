//! A connection for each request.

use super::*;

fn connect(rate: u32, connections: u32) -> Rig {
    let mut rig = Rig::new(Asked {
        test: "connect",
        connections,
        ..Asked::on_one(rate)
    });
    rig.until_ms(199);
    assert!(
        rig.places
            .iter()
            .all(|place| place.slot == Slot::Planned(None))
    );
    rig.until_ms(200);
    rig
}

#[test]
fn a_connection_of_its_own_opens_with_its_request() {
    let mut rig = connect(2, 2);
    let connecting = |rig: &Rig| {
        let places = rig.places.iter();
        places
            .filter(|place| matches!(place.slot, Slot::Connecting(_)))
            .count()
    };
    assert_eq!(connecting(&rig), 1);
    let id = rig
        .places
        .iter()
        .position(|place| place.slot != Slot::Planned(None));
    let id = id.expect("it connects");
    rig.until_ms(205);
    rig.opened(id);
    let request = String::from_utf8_lossy(&rig.places[id].wire).into_owned();
    assert!(request.contains("Connection: close"), "{request}");
    rig.until_ms(207);
    rig.sends(id, CLOSING);
    assert_eq!(rig.places[id].slot, Slot::Connected, "the server closes");
    rig.until_ms(208);
    rig.ends(id, Disconnect::Closed);
    assert_eq!(rig.places[id].slot, Slot::Planned(None));
    let counts = rig.finish();
    assert_eq!(rig.account(), [1, 1, 0, 0]);
    // The handshake is part of the latency, from the schedule and from the write.
    assert_eq!(at_ms(&rig, Series::NewestFromSchedule, 1.0), 7);
    assert_eq!(at_ms(&rig, Series::NewestFromWrite, 1.0), 7);
    assert_eq!((counts.closed_announced, counts.closed_idle), (0, 0));
    assert_eq!((counts.connections_opened, counts.left_open), (1, 0));
}

#[test]
fn a_connection_that_the_server_leaves_open_is_closed_by_the_client_and_counted() {
    let mut rig = connect(2, 1);
    rig.opened(0);
    rig.sends(0, OK);
    rig.until_ms(1_199);
    assert_eq!(slot(&rig), Slot::Connected);
    rig.until_ms(1_200);
    // The next request was due at 700 ms, and opens the next connection.
    assert!(
        matches!(slot(&rig), Slot::Connecting(_)),
        "{:?}",
        slot(&rig)
    );
    let counts = rig.finish();
    assert_eq!((counts.left_open, counts.found_all_busy), (1, 1));
    assert_eq!(rig.account(), [2, 1, 0, 1]);
    // It waited for the server, not for the client.
    assert_eq!(at_ms(&rig, Series::SendWait, 1.0), 500);
    assert_eq!(at_ms(&rig, Series::SendLag, 1.0), 0);
}

#[test]
fn a_connection_that_cannot_be_opened_fails_its_request() {
    let mut rig = connect(2, 1);
    rig.ends(0, Disconnect::Refused);
    rig.until_ms(700);
    rig.until_ms(2_700);
    let counts = rig.finish();
    assert_eq!(rig.account(), [2, 0, 1, 1]);
    let reasons = rig.reasons();
    assert!(reasons.contains(&("tcp_refused", 1)), "{reasons:?}");
    assert!(reasons.contains(&("timeout", 1)), "{reasons:?}");
    assert_eq!(
        (counts.connections_failed, counts.connections_opened),
        (2, 0)
    );
}
