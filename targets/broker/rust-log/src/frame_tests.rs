//! Vectors of the protocol, and frames that break it.

use proptest::prelude::*;

use super::*;
use crate::answer::{Delivery, put_declared, put_deliver, put_error, put_frame, put_publish_ok};

/// A payload in hexadecimal, as Fibril's `clients/wire_vectors.json` has it.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().map(|digit| char::from(digit).to_digit(16).expect("hex") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn read(op: u16, payload: &[u8]) -> Result<Request<'_>, Malformed> {
    Request::read(&Frame { op, flags: 0, request: 0, payload })
}

/// The payload of the only frame in `out`.
fn payload(out: &[u8]) -> Vec<u8> {
    let (frame, length) = cut(out, 1 << 20).expect("good").expect("whole");
    assert_eq!(length, out.len());
    frame.payload.to_vec()
}

#[test]
fn requests_of_the_vectors() {
    let hello = hex("46484c3100000001630000000176000100");
    assert_eq!(read(op::HELLO, &hello), Ok(Request::Hello { version: 1 }));
    let resuming = hex(concat!(
        "46484c310000000970792d636c69656e7400000005302e312e30000101",
        "01010101010101010101010101010101",
        "02020202020202020202020202020202",
        "03030303030303030303030303030303"
    ));
    // Three ids of 16 bytes follow the mark.
    assert_eq!(resuming.len(), 4 + 13 + 9 + 2 + 1 + 48);
    assert_eq!(read(op::HELLO, &resuming), Ok(Request::Hello { version: 1 }));
    let auth = hex("4641553100000001750000000170");
    assert_eq!(read(op::AUTH, &auth), Ok(Request::Auth { user: "u", password: "p" }));
    let declare = hex("4644513100000001740000000000");
    let expected = Request::DeclareQueue { topic: "t", group: None, partitions: 1, has_extras: false };
    assert_eq!(read(op::DECLARE_QUEUE, &declare), Ok(expected));
    // Its last field is one that older clients leave out.
    assert_eq!(read(op::DECLARE_QUEUE, &declare[..declare.len() - 1]), Ok(expected));
    let extras = hex("464451310000000174010000000167010200000003646c710001000000030100000004010000000000007530");
    let expected = Request::DeclareQueue { topic: "t", group: Some("g"), partitions: 0, has_extras: true };
    assert_eq!(read(op::DECLARE_QUEUE, &extras), Ok(expected));
    let plexus = hex("46445031000000017401000000040101000000000000ea60000100000000000f42400100000002");
    let retention = Retention { age_ms: Some(60_000), bytes: None, messages: Some(1_000_000) };
    let expected = Request::DeclarePlexus { topic: "t", partitions: 4, tier: 1, retention };
    assert_eq!(read(op::DECLARE_PLEXUS, &plexus), Ok(expected));
}

#[test]
fn messages_of_the_vectors() {
    let publish = hex(concat!(
        "46504231000000066f726465727301000000016700000003010200000001000000",
        "03782d61000000013100000000499602d201000000020909000000000000000500",
        "0000040102030401000000000000ea60"
    ));
    let Ok(Request::Publish(message)) = read(op::PUBLISH, &publish) else { panic!("a message") };
    assert_eq!(read_name(message.name), Ok(Name { topic: "orders", group: Some("g"), partition: 3 }));
    assert_eq!((message.confirm, message.published_ms, message.expires), (true, 1_234_567_890, true));
    assert_eq!(message.payload, [1, 2, 3, 4]);
    let least = hex("465042310000000174000000000000000000000000000000000000000000000000000000000000000000");
    let Ok(Request::Publish(message)) = read(op::PUBLISH, &least) else { panic!("a message") };
    assert_eq!((message.confirm, message.expires, message.payload.len()), (false, false, 0));
    let ack = hex("46414b31000000017400000000000000000200000000000000010000000000000002");
    let Ok(Request::Ack { name, tags }) = read(op::ACK, &ack) else { panic!("an ack") };
    assert_eq!(name, Name { topic: "t", group: None, partition: 0 });
    assert_eq!((tags.len(), tags.iter().collect::<Vec<_>>()), (2, vec![1, 2]));
}

#[test]
fn subscriptions_of_the_vectors() {
    let least = hex("46534231000000017400000000000000000001000000");
    let name = Name { topic: "t", group: None, partition: 0 };
    let expected = Request::Subscribe { name, prefetch: 0, auto_ack: true, is_plain: true };
    assert_eq!(read(op::SUBSCRIBE, &least), Ok(expected));
    let stream = hex("465350310000000174000000000000000000000000000001");
    let expected = Request::SubscribeStream {
        topic: "t",
        partition: 0,
        cursor: None,
        start: Start::Latest,
        prefetch: 0,
        auto_ack: true,
    };
    assert_eq!(read(op::SUBSCRIBE_STREAM, &stream), Ok(expected));
}

#[test]
fn answers_of_the_vectors() {
    let mut out = Vec::new();
    put_publish_ok(&mut out, 7, 777);
    assert_eq!(payload(&out), hex("46504f310000000000000309"));
    out.clear();
    put_error(&mut out, op::ERROR, 7, 409, "not owner");
    assert_eq!(payload(&out), hex("464552310199000000096e6f74206f776e6572"));
    out.clear();
    put_declared(&mut out, 7, false, true, 4);
    assert_eq!(payload(&out), hex("46444b31000000076372656174656400000004"));
    out.clear();
    put_declared(&mut out, 7, true, true, 4);
    assert_eq!(payload(&out), hex("46504b31000000076372656174656400000004"));
}

/// The vector has a content type and a header, which this broker does not send; the rest is the same.
#[test]
fn a_delivery_is_that_of_the_vectors() {
    let mut name = Vec::new();
    Name { topic: "t", group: Some("g"), partition: 2 }.put(&mut name);
    let delivery =
        Delivery { subscription: 11, name: &name, offset: 100, published_ms: 7, received_ms: 8, again: true };
    let mut out = Vec::new();
    put_deliver(&mut out, &delivery, &[3, 2, 1]);
    let (frame, _) = cut(&out, 1000).expect("good").expect("whole");
    assert_eq!((frame.op, frame.flags), (op::DELIVER, REDELIVERED));
    let until_tag = "46444c31000000000000000b0000000174010000000167000000020000000000000064";
    let expected = format!("{until_tag}00000000000000640000000000000007000000000000000800{}", "0000000000000003030201");
    assert_eq!(payload(&out), hex(&expected));
}

#[test]
fn a_payload_that_is_too_long_is_refused_by_its_length_alone() {
    assert_eq!(cut(&[0, 0, 1, 1], 256), Err(Malformed));
    assert_eq!(cut(&[0, 0, 1, 0], 256), Ok(None));
    // An HTTP request is one, too.
    assert_eq!(cut(b"GET ", 1 << 28), Err(Malformed));
}

proptest! {
    #[test]
    fn a_frame_is_whole_at_its_last_byte(op: u16, flags: u32, request: u64, body in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut out = Vec::new();
        put_frame(&mut out, op, flags, request, |out| out.extend_from_slice(&body));
        for end in 0..out.len() {
            prop_assert_eq!(cut(&out[..end], 300), Ok(None));
        }
        let length = out.len();
        out.push(7);
        prop_assert_eq!(cut(&out, 300), Ok(Some((Frame { op, flags, request, payload: &body }, length))));
    }

    #[test]
    fn nothing_panics(op in prop::sample::select(vec![1_u16, 10, 20, 30, 41, 42, 60, 62, 64]), magic in 0..9_usize, rest in prop::collection::vec(any::<u8>(), 0..80)) {
        let magics = [b"FHL1", b"FAU1", b"FPB1", b"FSB1", b"FAK1", b"FNK1", b"FDQ1", b"FDP1", b"FSP1"];
        let payload = [&magics[magic][..], &rest].concat();
        let _ = read(op, &payload);
        let _ = cut(&payload, 100);
    }
}
