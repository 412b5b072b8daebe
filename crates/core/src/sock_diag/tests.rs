//! The answer of a real kernel (Linux 6.18), and answers that no kernel gives.

use super::*;
use proptest::prelude::*;

/// What Linux answered for a dual-stack listener on port 41849 with two connections. One over `::1` waits to be
/// accepted. One over `127.0.0.1` was accepted and has 1,000 bytes unread. Two datagrams, on a little-endian machine.
const DUMP: &str = include_str!("inet6_dump.hex");
const FIRST_DATAGRAM: usize = 1232;
const SEQUENCE: u32 = 1;

fn dump() -> Vec<u8> {
    let digits: Vec<u8> = DUMP.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("ascii");
        u8::from_str_radix(text, 16).expect("hex")
    };
    digits.chunks(2).map(byte).collect()
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[cfg(target_endian = "little")]
#[test]
fn what_a_kernel_said_is_read() {
    let bytes = dump();
    let mut sockets = Vec::new();
    let (first, second) = bytes.split_at(FIRST_DATAGRAM);
    assert_eq!(read(first, SEQUENCE, &mut sockets), Ok(false));
    assert_eq!(read(second, SEQUENCE, &mut sockets), Ok(true));
    let expected = [
        Socket {
            state: 10,
            local: address("[::]:41849"),
            remote: address("[::]:0"),
            receive_queue: 1,
            send_queue: 5,
            retransmits: Some(0),
            bytes_acked: Some(0),
            bytes_received: Some(0),
        },
        Socket {
            state: 1,
            local: address("[::1]:41849"),
            remote: address("[::1]:48466"),
            receive_queue: 0,
            send_queue: 0,
            retransmits: Some(0),
            bytes_acked: Some(0),
            bytes_received: Some(0),
        },
        Socket {
            state: 1,
            local: address("127.0.0.1:41849"),
            remote: address("127.0.0.1:33122"),
            receive_queue: 1000,
            send_queue: 0,
            retransmits: Some(0),
            bytes_acked: Some(0),
            bytes_received: Some(1000),
        },
    ];
    assert_eq!(sockets, expected);
}

/// A message as the kernel makes it, according to the header files.
fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(
        u32::try_from(HEADER + body.len())
            .expect("short")
            .to_ne_bytes(),
    );
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(SEQUENCE.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

fn attribute_bytes(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(u16::try_from(4 + value.len()).expect("short").to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[test]
fn counters_are_those_of_the_tcp_info_among_the_attributes() {
    let mut info = vec![0; 240];
    info[TOTAL_RETRANS..TOTAL_RETRANS + 4].copy_from_slice(&7u32.to_ne_bytes());
    info[BYTES_ACKED..BYTES_ACKED + 8].copy_from_slice(&8u64.to_ne_bytes());
    info[BYTES_RECEIVED..BYTES_RECEIVED + 8].copy_from_slice(&9u64.to_ne_bytes());
    // A kernel before 4.1.
    let old = &info[..BYTES_ACKED];
    let mut body = vec![0; MESSAGE];
    body[0] = Family::V4 as u8;
    body[1] = 1;
    // An attribute of odd length before it.
    body.extend(attribute_bytes(8, &[1]));
    let without = body.clone();
    let mut less = body.clone();
    less.extend(attribute_bytes(INET_DIAG_INFO, old));
    body.extend(attribute_bytes(INET_DIAG_INFO, &info));
    let mut sockets = Vec::new();
    let datagram = [body, less, without]
        .map(|body| message(BY_FAMILY, &body))
        .concat();
    assert_eq!(read(&datagram, SEQUENCE, &mut sockets), Ok(false));
    let told = |socket: &Socket| {
        (
            socket.retransmits,
            socket.bytes_acked,
            socket.bytes_received,
        )
    };
    let told: Vec<_> = sockets.iter().map(told).collect();
    assert_eq!(
        told,
        [
            (Some(7), Some(8), Some(9)),
            (Some(7), None, None),
            (None, None, None)
        ]
    );
    assert_eq!(sockets[0].local, address("0.0.0.0:0"));
}

#[test]
fn a_refusal_carries_its_errno_and_another_answer_is_passed_over() {
    let refusal = message(NLMSG_ERROR, &(-2i32).to_ne_bytes());
    let mut sockets = Vec::new();
    assert_eq!(
        read(&refusal, SEQUENCE, &mut sockets),
        Err(DiagError::Refused(2))
    );
    assert_eq!(read(&refusal, SEQUENCE + 1, &mut sockets), Ok(false));
    assert_eq!(sockets, []);
}

#[test]
fn a_request_names_family_states_and_port() {
    let bytes = request_all(Family::V6, 0x1234, 1 << 10 | 1 << 1, 9);
    assert_eq!(bytes.len(), 72);
    assert_eq!(bytes[..4], 72u32.to_ne_bytes());
    assert_eq!(bytes[4..6], 20u16.to_ne_bytes());
    assert_eq!(bytes[6..8], 0x301u16.to_ne_bytes());
    assert_eq!(bytes[8..12], 9u32.to_ne_bytes());
    assert_eq!(bytes[16..20], [10, 6, 2, 0]);
    assert_eq!(bytes[20..24], 0x402u32.to_ne_bytes());
    assert_eq!(bytes[24..26], [0x12, 0x34]);
    assert_eq!(bytes[28..64], [0; 36]);
    assert_eq!(bytes[64..], [0xff; 8]);
}

#[test]
fn a_request_for_one_names_both_its_ends() {
    let bytes = request_one(address("127.0.0.1:1"), address("10.0.0.2:258"), 9);
    assert_eq!(bytes.len(), 72);
    assert_eq!(bytes[6..8], 1u16.to_ne_bytes());
    assert_eq!(bytes[16..24], [2, 6, 2, 0, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(bytes[24..28], [0, 1, 1, 2]);
    assert_eq!(bytes[28..34], [127, 0, 0, 1, 0, 0]);
    assert_eq!(bytes[44..50], [10, 0, 0, 2, 0, 0]);
    let bytes = request_one(address("[::1]:1"), address("[::2]:2"), 9);
    assert_eq!((bytes[16], bytes[43], bytes[59]), (10, 1, 2));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_run_for_ever(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, SEQUENCE, &mut Vec::new());
    }

    /// One wrong byte in an otherwise correct answer, which is also cut short.
    #[test]
    fn a_damaged_answer_does_not_make_it_panic(at in 0usize..1252, byte: u8, cut in 0usize..1252) {
        let mut bytes = dump();
        bytes[at] = byte;
        bytes.truncate(cut);
        let mut sockets = Vec::new();
        let _ = read(&bytes, SEQUENCE, &mut sockets);
        prop_assert!(sockets.len() <= 3);
    }
}
