//! Connections on a simulated clock, spoken to in raw bytes: also the honest server's behaviour on the wire.

use serde_json::Value;

use super::*;

const MS: u64 = 1000;

const UPGRADE: &[u8] =
    b"GET /ws/stt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A world without jitter, so that sessions flush each full second after their start.
fn world(lie: &str, parameters: &[(&str, &str)]) -> World {
    let config = Config::read(|name| match name {
        "LIE" => Some(lie.to_owned()),
        "FLUSH_PHASE_JITTER_MS" => Some("0".to_owned()),
        _ => {
            let set = parameters.iter().find(|(key, _)| *key == name);
            set.map(|(_, value)| (*value).to_owned())
        }
    });
    World::new(config.unwrap())
}

/// A client's frame. Its mask is zero, which leaves the payload as it is.
fn client_frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | u8::try_from(short).unwrap()),
        long => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(long).unwrap().to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

fn start() -> Vec<u8> {
    client_frame(1, br#"{"type":"start"}"#)
}

/// The synthetic frame of the contract.
fn audio(session: u64, seq: u64) -> Vec<u8> {
    let pcm: Vec<u8> = (0..320)
        .map(|i| i16::try_from((seq * 320 + session + i) * 17 % 20_000).unwrap() - 10_000)
        .flat_map(i16::to_le_bytes)
        .collect();
    client_frame(2, &pcm)
}

/// What the server has for the client: (opcode, payload) of each whole frame, and the bytes left over.
fn take(connection: &mut Connection) -> (Vec<(u8, Vec<u8>)>, usize) {
    let bytes = connection.unwritten().to_vec();
    connection.wrote(bytes.len());
    let (mut at, mut frames) = (0, Vec::new());
    while at + 2 <= bytes.len() {
        let (header, length) = match bytes[at + 1] {
            126 => (
                4,
                usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]])),
            ),
            127 => {
                let long = bytes[at + 2..at + 10].try_into().unwrap();
                (10, usize::try_from(u64::from_be_bytes(long)).unwrap())
            }
            short => (2, usize::from(short)),
        };
        if at + header + length > bytes.len() {
            break;
        }
        let payload = bytes[at + header..at + header + length].to_vec();
        frames.push((bytes[at] & 0x0F, payload));
        at += header + length;
    }
    (frames, bytes.len() - at)
}

fn partials(connection: &mut Connection) -> Vec<Value> {
    let (frames, rest) = take(connection);
    assert_eq!(rest, 0);
    let parsed = frames.iter().map(|(opcode, payload)| {
        assert_eq!(*opcode, 1);
        serde_json::from_slice(payload).unwrap()
    });
    parsed.collect()
}

fn close_code(connection: &mut Connection) -> Option<u16> {
    let (frames, _) = take(connection);
    let (opcode, payload) = frames.last()?;
    (*opcode == 8).then(|| u16::from_be_bytes([payload[0], payload[1]]))
}

/// A session upgraded but not started.
fn upgraded(world: &mut World) -> Connection {
    let mut connection = Connection::new();
    connection.received(0, UPGRADE, world);
    let response = connection.unwritten().to_vec();
    assert!(response.starts_with(b"HTTP/1.1 101 "));
    connection.wrote(response.len());
    connection
}

fn started(world: &mut World) -> Connection {
    let mut connection = upgraded(world);
    connection.received(0, &start(), world);
    connection
}

fn asked(path: &str, world: &mut World) -> String {
    let mut connection = Connection::new();
    let request = format!("GET {path} HTTP/1.1\r\n\r\n");
    connection.received(0, request.as_bytes(), world);
    assert_eq!(connection.fate(), Fate::Close);
    String::from_utf8(connection.unwritten().to_vec()).unwrap()
}

#[test]
fn an_honest_session_answers_the_golden_vector() {
    let world = &mut world("none", &[]);
    let mut connection = started(world);
    connection.received(20 * MS, &audio(0, 1), world);
    connection.advance(1000 * MS, world);
    assert!(connection.unwritten().is_empty());
    assert_eq!(connection.due_us(1000 * MS), Some(1075 * MS));
    assert_eq!(world.gauges.jobs_inflight, 1);
    connection.advance(1075 * MS, world);
    let partials = partials(&mut connection);
    assert_eq!(partials.len(), 1);
    assert_eq!(partials[0]["checksum"], 1_745_339_397);
    assert_eq!(partials[0]["newest_frame_seq"], 1);
    assert_eq!(world.gauges.jobs_inflight, 0);
    let metrics = asked("/metrics", world);
    for line in [
        "stt_sessions 1\n",
        "stt_frames_total 1\n",
        "stt_partials_total 1\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    connection.leave(world);
    assert!(asked("/metrics", world).contains("stt_sessions 0\n"));
}

#[test]
fn bytes_may_come_in_any_pieces() {
    let world = &mut world("none", &[]);
    let mut connection = Connection::new();
    let all = [UPGRADE, &start(), &audio(0, 1)].concat();
    for byte in all {
        connection.received(0, &[byte], world);
    }
    assert_eq!(world.counters.frames_total, 1);
}

#[test]
fn violations_close_with_their_codes() {
    let mut reserved = client_frame(2, &[0; 640]);
    reserved[0] |= 0x40;
    let mut unmasked = client_frame(2, &[0; 640]);
    unmasked[1] &= 0x7F;
    let too_long = [&[0x82, 0xFF][..], &65_537_u64.to_be_bytes(), &[0; 4]].concat();
    let cases = [
        (client_frame(2, &[0; 641]), 1003),
        (client_frame(2, &[]), 1003),
        (start(), 1002),
        (client_frame(5, &[]), 1002),
        (reserved, 1002),
        (unmasked, 1002),
        (too_long, 1009),
    ];
    for (bytes, code) in cases {
        let world = &mut world("none", &[]);
        let mut connection = started(world);
        connection.received(0, &bytes, world);
        assert_eq!(close_code(&mut connection), Some(code), "{:?}", &bytes[..2]);
        assert_eq!(world.gauges.sessions, 0);
        // The client may answer; it need not.
        assert_eq!(connection.fate(), Fate::Open);
        connection.advance(CLOSE_TIMEOUT_US, world);
        assert_eq!(connection.fate(), Fate::Close);
    }
    let world = &mut world("none", &[]);
    let mut connection = upgraded(world);
    connection.received(0, &audio(0, 1), world);
    assert_eq!(close_code(&mut connection), Some(1002));
}

#[test]
fn pings_and_closes_are_answered() {
    let world = &mut world("none", &[]);
    let mut connection = started(world);
    connection.received(0, &client_frame(9, b"x"), world);
    assert_eq!(take(&mut connection).0, [(10, b"x".to_vec())]);
    connection.received(0, &client_frame(8, &1000_u16.to_be_bytes()), world);
    assert_eq!(close_code(&mut connection), Some(1000));
    assert_eq!(connection.fate(), Fate::Close);
}

#[test]
fn draining_answers_then_goes_away() {
    let world = &mut world("none", &[]);
    let mut connection = started(world);
    connection.received(0, &audio(0, 1), world);
    connection.advance(1000 * MS, world);
    world.draining = true;
    connection.drain(1010 * MS, world);
    assert!(connection.unwritten().is_empty());
    connection.drain(1075 * MS, world);
    let (frames, _) = take(&mut connection);
    let opcodes: Vec<_> = frames.iter().map(|(opcode, _)| *opcode).collect();
    assert_eq!(opcodes, [1, 8]);
    assert_eq!(frames[1].1, 1001_u16.to_be_bytes());
    assert!(asked("/health", world).starts_with("HTTP/1.1 503 "));
}

#[test]
fn other_requests_have_their_status() {
    let world = &mut world("none", &[]);
    for (path, status) in [("/health", 200), ("/ws/stt", 426), ("/nothing", 404)] {
        assert!(asked(path, world).starts_with(&format!("HTTP/1.1 {status} ")));
    }
}

#[test]
fn never_upgrade_says_nothing_but_is_healthy() {
    let world = &mut world("never_upgrade", &[]);
    let mut connection = Connection::new();
    connection.received(0, UPGRADE, world);
    assert!(connection.unwritten().is_empty());
    assert_eq!(
        (connection.fate(), connection.due_us(0)),
        (Fate::Open, None)
    );
    assert!(asked("/health", world).starts_with("HTTP/1.1 200 "));
}

#[test]
fn never_answer_some_spares_the_rest() {
    let world = &mut world("never_answer_some", &[("LIE_SHARE", "0.5")]);
    let mut sessions: Vec<_> = (0..4).map(|_| started(world)).collect();
    let mut answered = 0;
    for connection in &mut sessions {
        connection.received(0, &audio(0, 1), world);
        connection.advance(1000 * MS, world);
        connection.advance(1075 * MS, world);
        answered += partials(connection).len();
    }
    assert_eq!(answered, 2);
    assert_eq!(world.counters.frames_total, 4);
}

#[test]
fn others_content_is_truly_another_sessions() {
    let world = &mut world("others_content", &[("LIE_EVERY", "1")]);
    let mut said = Vec::new();
    for session in 0..2 {
        let mut connection = started(world);
        connection.received(0, &audio(session, 1), world);
        connection.advance(1000 * MS, world);
        connection.advance(1075 * MS, world);
        said.extend(partials(&mut connection));
    }
    // The first has nobody to take from; the second takes the first's.
    assert_eq!(said[0]["checksum"], 1_745_339_397);
    assert_eq!(said[1]["checksum"], 1_745_339_397);
}

#[test]
fn reset_mid_frame_leaves_half_a_frame() {
    let world = &mut world("reset_mid_frame", &[("LIE_AFTER_MS", "0")]);
    let mut connection = started(world);
    connection.received(0, &audio(0, 1), world);
    connection.advance(1000 * MS, world);
    connection.advance(1075 * MS, world);
    let (frames, rest) = take(&mut connection);
    assert!(frames.is_empty() && rest > 100);
    assert_eq!(connection.fate(), Fate::Reset);
}

#[test]
fn half_close_falls_silent_and_listens() {
    let world = &mut world("half_close", &[("LIE_AFTER_MS", "500")]);
    let mut connection = started(world);
    assert_eq!(connection.due_us(0), Some(500 * MS));
    connection.advance(500 * MS, world);
    assert_eq!(connection.fate(), Fate::HalfClose);
    connection.half_closed();
    connection.received(600 * MS, &audio(0, 1), world);
    assert_eq!(world.counters.frames_total, 1);
    connection.advance(1000 * MS, world);
    connection.advance(1075 * MS, world);
    assert!(connection.unwritten().is_empty());
    assert_eq!(connection.fate(), Fate::Open);
}

#[test]
fn read_slowly_and_stop_reading_begin_after_the_start() {
    for (lie, allowed) in [("read_slowly", 648), ("stop_reading", 0)] {
        let world = &mut world(lie, &[("LIE_AFTER_MS", "100")]);
        let mut connection = upgraded(world);
        assert_eq!(connection.allowance_bytes(10_000 * MS), u64::MAX);
        connection.received(0, &start(), world);
        assert_eq!(connection.allowance_bytes(99 * MS), u64::MAX);
        assert_eq!(connection.allowance_bytes(140 * MS), allowed);
    }
}

#[test]
fn a_flood_waits_for_a_client_that_does_not_read() {
    let world = &mut world("flood", &[("LIE_AFTER_MS", "0"), ("LIE_SHARE", "1")]);
    let mut connection = started(world);
    connection.received(0, &audio(0, 1), world);
    connection.advance(1000 * MS, world);
    connection.advance(1075 * MS, world);
    connection.advance(1_000_000 * MS, world);
    let waiting = connection.unwritten().len();
    assert!((OUTBOX_BYTES..OUTBOX_BYTES + 1000).contains(&waiting));
    let tick_us = connection.due_us(1_000_000 * MS).unwrap();
    assert!(tick_us > 1_000_000 * MS, "a full outbox must not spin");
    take(&mut connection);
    connection.advance(1_000_000 * MS, world);
    assert!(!connection.unwritten().is_empty());
}

#[test]
fn leak_memory_grows_with_every_answer() {
    let world = &mut world("leak_memory", &[("LIE_BYTES", "1000")]);
    let mut connection = started(world);
    for second in 1..=3 {
        connection.received(0, &audio(0, second), world);
        connection.advance(second * 1000 * MS, world);
        connection.advance((second * 1000 + 75) * MS, world);
    }
    assert_eq!(world.process.leaked_bytes(), 3000);
}

#[test]
fn lie_in_metrics_is_seen_in_metrics_only() {
    let world = &mut world("lie_in_metrics", &[("LIE_EVERY", "1")]);
    let mut connection = started(world);
    connection.received(0, &audio(0, 1), world);
    assert_eq!(world.counters.frames_total, 1);
    assert!(asked("/metrics", world).contains("stt_frames_total 2\n"));
}
