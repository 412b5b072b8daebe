use proptest::prelude::*;

use super::*;

/// What a reader sees of the whole of a conversation, and what it answers.
fn read_all<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, Vec<u8>, Option<Fault>) {
    let mut client = Amqp::new(reader()).unwrap();
    client.open(&mut Vec::new());
    give(&mut client, pieces)
}

/// All that a broker says to a reader from its greeting on.
fn conversation() -> Vec<u8> {
    let mut client = Amqp::new(reader()).unwrap();
    let mut server = Server::new();
    let (mut all, mut to_server) = (Vec::new(), Vec::new());
    client.open(&mut to_server);
    while !to_server.is_empty() {
        let mut to_client = Vec::new();
        server.received(&to_server, &mut to_client);
        to_server = give(&mut client, [&to_client[..]]).1;
        all.extend(to_client);
    }
    server.deliver(&mut all, b"one", false, 2);
    append_heartbeat(&mut all);
    server.deliver(&mut all, b"twelve bytes", true, 4088);
    server.deliver(&mut all, b"", false, 1);
    append_close(
        &mut all,
        0,
        method::CONNECTION_CLOSE,
        320,
        "CONNECTION_FORCED",
    );
    all
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    let bytes = conversation();
    let whole = read_all([&bytes[..]]);
    assert_eq!(whole.0.len(), 4, "{whole:?}");
    assert_eq!(
        whole.2,
        Some(Fault(
            "the broker closed the connection: 320 CONNECTION_FORCED".to_owned()
        ))
    );
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
        frame_body in 1..200_usize,
        piece in 1..300_usize,
    ) {
        let (mut client, mut server) = open(reader());
        let mut bytes = Vec::new();
        for body in &bodies {
            server.deliver(&mut bytes, body, false, frame_body);
        }
        let (seen, _, fault) = give(&mut client, bytes.chunks(piece));
        prop_assert_eq!(fault, None);
        let expected: Vec<Seen> = (1..)
            .zip(bodies)
            .map(|(number, body)| Seen::Delivered(body, number, false))
            .collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn any_bodies_are_published_as_they_were(
        sizes in prop::collection::vec(0..20_000_usize, 0..6),
        frame_max in 4096..9000_u32,
        piece in 1..5000_usize,
    ) {
        let mut server = Server::new();
        server.frame_max = frame_max;
        let (mut client, mut server) = open_with(writer(), server);
        let mut out = Vec::new();
        let bodies: Vec<Vec<u8>> = sizes.iter().map(|size| vec![9; *size]).collect();
        for (tag, body) in (0..).zip(&bodies) {
            client.publish(&mut out, body, tag);
        }
        for part in out.chunks(piece) {
            server.received(part, &mut Vec::new());
        }
        let published: Vec<Vec<u8>> = server.published.into_iter().map(|it| it.1).collect();
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
        let mut client = Amqp::new(reader()).unwrap();
        client.open(&mut Vec::new());
        give(&mut client, all.chunks(7));
        prop_assert!(client.held_bytes() < 64 * 1024);
    }

    #[test]
    fn any_order_of_settling_settles_all(
        count in 1..40_u64,
        seed in prop::collection::vec(any::<u32>(), 40),
        batch in 1..9_usize,
    ) {
        let (mut client, mut server) = open(reader());
        let mut numbers: Vec<u64> = (1..=count).collect();
        numbers.sort_by_key(|number| seed[usize::try_from(*number).unwrap() - 1] % 8);
        let mut unacked: Vec<u64> = (1..=count).collect();
        for handles in numbers.chunks(batch) {
            let mut out = Vec::new();
            client.settle(&mut out, handles);
            server.acked.clear();
            server.received(&out, &mut Vec::new());
            let before = unacked.len();
            for (number, multiple) in &server.acked {
                // RabbitMQ closes the channel if it does not know the number any more.
                prop_assert!(unacked.contains(number), "{number} twice");
                unacked.retain(|it| if *multiple { it > number } else { it != number });
            }
            prop_assert_eq!(before - unacked.len(), handles.len(), "no more than asked");
        }
        prop_assert!(unacked.is_empty());
    }
}
