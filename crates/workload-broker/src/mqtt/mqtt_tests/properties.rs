use proptest::prelude::*;

use super::*;

/// All that a broker says to a reader from its greeting on.
fn conversation() -> Vec<u8> {
    let mut all = Vec::new();
    append_connack(&mut all, 0, 0, b"\x21\0\x14\x1F\0\x02hi");
    append_message(&mut all, QOS_1, 1, b"before the subscription's answer");
    all.extend_from_slice(b"\x90\x04\0\x01\0\x02");
    append_message(&mut all, QOS_2, 2, b"");
    append_message(&mut all, 0, 0, &[7; 300]);
    all.extend_from_slice(b"\x62\x02\0\x09\xD0\0\xE0\x01\x8B");
    all
}

fn read_all<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, Vec<u8>, Option<Fault>) {
    let mut client = Mqtt::new(reader(Qos::ExactlyOnce)).unwrap();
    client.open(&mut Vec::new());
    give(&mut client, pieces)
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    let bytes = conversation();
    let whole = read_all([&bytes[..]]);
    assert_eq!(whole.0.len(), 4, "{whole:?}");
    assert!(whole.2.as_ref().unwrap().0.contains("shutting down"));
    assert_eq!(read_all(bytes.chunks(1)), whole, "byte by byte");
    for cut in 0..bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(read_all([a, b]), whole, "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn any_bodies_arrive_as_they_were(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..8),
        qos in 0..3_u8,
        piece in 1..300_usize,
    ) {
        let (mut client, _) = open(reader(Qos::ExactlyOnce));
        let mut bytes = Vec::new();
        for (id, body) in (1..).zip(&bodies) {
            append_message(&mut bytes, qos << 1, id, body);
        }
        let (seen, _, fault) = give(&mut client, bytes.chunks(piece));
        prop_assert_eq!(fault, None);
        let arrived: Vec<Vec<u8>> = seen
            .into_iter()
            .map(|seen| match seen {
                Seen::Delivered(body, _, false) => body,
                other => panic!("{other:?}"),
            })
            .collect();
        prop_assert_eq!(arrived, bodies);
    }

    #[test]
    fn any_bodies_are_published_as_they_were(
        sizes in prop::collection::vec(0..20_000_usize, 0..6),
        qos in prop::sample::select(vec![Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce]),
        piece in 1..5000_usize,
    ) {
        let (mut client, mut server) = open(writer(qos));
        let mut out = Vec::new();
        let bodies: Vec<Vec<u8>> = sizes.iter().map(|size| vec![9; *size]).collect();
        for (tag, body) in (0..).zip(&bodies) {
            client.publish(&mut out, body, tag);
        }
        for part in out.chunks(piece) {
            server.received(part, &mut Vec::new());
        }
        let published: Vec<Vec<u8>> = server.published.into_iter().map(|it| it.body).collect();
        prop_assert_eq!(published, bodies);
    }

    #[test]
    fn no_bytes_make_it_panic_or_hold_much(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        after in 0..600_usize,
    ) {
        let mut all = conversation();
        all.truncate(after);
        all.extend(bytes);
        let mut client = Mqtt::new(reader(Qos::ExactlyOnce)).unwrap();
        client.open(&mut Vec::new());
        give(&mut client, all.chunks(7));
        prop_assert!(client.held_bytes() < 64 * 1024);
    }
}
