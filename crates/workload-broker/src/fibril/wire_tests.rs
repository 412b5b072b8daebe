//! Payloads as the vectors of Fibril's clients have them (`clients/wire_vectors.json` of github.com/Axmouth/fibril).

use super::*;
use crate::Login;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .map(|digit| {
            char::from(digit)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
                .expect("hex")
        })
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn setup(shape: Shape) -> Setup {
    Setup {
        topic: "t".to_owned(),
        group: None,
        partition: 0,
        partitions: 4,
        shape,
        tier: Tier::Speculative,
        login: Login {
            user: "u".to_owned(),
            password: "p".to_owned(),
        },
    }
}

/// What one of the functions appends, without the header.
fn payload(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out);
    assert_eq!(
        out[..4],
        u32::try_from(out.len() - 20).expect("small").to_be_bytes()
    );
    out.split_off(20)
}

#[test]
fn the_greeting_is_that_of_the_vectors() {
    let auth = payload(|out| put_auth(out, 1, &setup(Shape::Queue)));
    assert_eq!(auth, hex("4641553100000001750000000170"));
    // The vector says "c", "v", version 1, and nothing to resume.
    let hello = payload(|out| put_hello(out, 1));
    assert_eq!(hello[..8], hex("46484c3100000008"));
    assert_eq!(hello[hello.len() - 3..], hex("000100"));
}

/// The vectors have other options; these are theirs with what we ask for.
#[test]
fn declarations_have_the_fields_of_the_vectors() {
    let queue = payload(|out| put_declare(out, 1, &setup(Shape::Queue)));
    // Absent: group, dead letters, retries. Four parts. Absent: time to live.
    assert_eq!(
        queue,
        hex("46445131000000017400000001000000 0400"
            .replace(' ', "")
            .as_str())
    );
    let stream = payload(|out| put_declare(out, 1, &setup(Shape::Stream)));
    // Four parts, tier 1. Absent: three bounds of retention, replicas.
    assert_eq!(stream, hex("46445031000000017401000000040100000000"));
}

#[test]
fn subscriptions_are_those_of_the_vectors() {
    let mut queue = setup(Shape::Queue);
    let least = payload(|out| put_subscribe(out, 1, &queue, &Settling::None, 0));
    assert_eq!(least, hex("46534231000000017400000000000000000001000000"));
    queue.group = Some("g".to_owned());
    queue.partition = 1;
    let settling = payload(|out| put_subscribe(out, 1, &queue, &Settling::Each, 32));
    assert_eq!(
        settling,
        hex("4653423100000001740000000101000000016700000020000000 00"
            .replace(' ', "")
            .as_str())
    );
    let stream = setup(Shape::Stream);
    let least = payload(|out| put_subscribe(out, 1, &stream, &Settling::None, 0));
    assert_eq!(
        least,
        hex("465350310000000174000000000000000000000000000001")
    );
    let cursor = Settling::Cursor("c1".to_owned());
    let named = payload(|out| put_subscribe(out, 1, &stream, &cursor, 16));
    assert_eq!(
        named,
        hex(
            "46535031000000017400000000010000000263310000000000 0000001000"
                .replace(' ', "")
                .as_str()
        )
    );
}

#[test]
fn deliveries_and_errors_of_the_vectors() {
    let deliver = hex(concat!(
        "46444c31000000000000000b000000017401000000016700000002000000000000006400000000000000050000",
        "000000000007000000000000000801000000010000000168000000013100000003030201"
    ));
    let expected = Delivery {
        subscription: 11,
        tag: 5,
        payload: &[3, 2, 1],
    };
    assert_eq!(read_delivery(&deliver), Ok(expected));
    for end in 0..deliver.len() {
        assert_eq!(read_delivery(&deliver[..end]), Err(Malformed), "{end}");
    }
    let error = hex("464552310199000000096e6f74206f776e6572");
    assert_eq!(read_error(&error), Ok((409, "not owner")));
}
