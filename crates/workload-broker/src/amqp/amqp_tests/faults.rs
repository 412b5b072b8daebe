use super::super::server::{append_delivery, append_header, append_start};
use super::*;
use crate::amqp::BODY_MAX_BYTES;

#[track_caller]
fn assert_fault(client: &mut Amqp, bytes: &[u8], part: &str) {
    let (_, _, fault) = give(client, [bytes]);
    let fault = fault.expect("a fault");
    assert!(fault.0.contains(part), "{fault:?}");
}

#[test]
fn a_strange_greeting_is_a_fault() {
    let fresh = || {
        let mut client = Amqp::new(writer()).unwrap();
        client.open(&mut Vec::new());
        client
    };
    assert_fault(&mut fresh(), b"AMQP\0\x01\0\0", "another version");
    assert_fault(&mut fresh(), b"HTTP/1.1 400 Bad Request", "no AMQP 0-9-1");
    let mut bytes = Vec::new();
    append_start(&mut bytes, (8, 0), "PLAIN");
    assert_fault(&mut fresh(), &bytes, "AMQP 8-0");
    bytes.clear();
    append_start(&mut bytes, (0, 9), "EXTERNAL XPLAIN");
    assert_fault(&mut fresh(), &bytes, "only EXTERNAL XPLAIN");
    bytes.clear();
    append_empty(&mut bytes, 0, method::CONNECTION_OPEN_OK);
    assert_fault(&mut fresh(), &bytes, "no place here");
}

#[test]
fn what_breaks_the_protocol_is_a_fault() {
    let case = |part: &str, append: &dyn Fn(&mut Vec<u8>)| {
        let (mut client, _) = open(reader());
        let mut bytes = Vec::new();
        append(&mut bytes);
        assert_fault(&mut client, &bytes, part);
        assert!(client.held_bytes() < 64 * 1024);
    };
    case("ends with 0x00", &|out| {
        out.extend_from_slice(b"\x08\0\0\0\0\0\0\0");
    });
    case("numbers a delivery 2 after 0", &|out| {
        append_delivery(out, 2, false);
    });
    case("interrupts a message", &|out| {
        append_delivery(out, 1, false);
        append_delivery(out, 2, false);
    });
    case("content header that belongs to nothing", &|out| {
        append_header(out, 5);
    });
    case("message body that belongs to nothing", &|out| {
        append_delivery(out, 1, false);
        out.extend_from_slice(b"\x03\0\x01\0\0\0\x01x\xCE");
    });
    case("longer than its header says", &|out| {
        append_delivery(out, 1, false);
        append_header(out, 1);
        out.extend_from_slice(b"\x03\0\x01\0\0\0\x02xx\xCE");
    });
    case("announces a message of", &|out| {
        append_delivery(out, 1, false);
        append_header(out, u64::try_from(BODY_MAX_BYTES).unwrap() + 1);
    });
    case("over the limit", &|out| {
        out.extend_from_slice(b"\x01\0\x01\xFF\xFF\xFF\xFF");
    });
    case("on channel 2", &|out| {
        out.extend_from_slice(b"\x01\0\x02\0\0\0\x04");
    });
    case("does not wait for an answer", &|out| {
        append_confirm(out, 1, false);
    });
    case("cancelled the reader", &|out| {
        append_method(out, CHANNEL, method::BASIC_CANCEL, |out| {
            out.extend_from_slice(b"\x01c\x01");
        });
    });
    case("malformed", &|out| {
        append_method(out, CHANNEL, method::BASIC_DELIVER, |out| {
            out.extend_from_slice(b"\xFFshort");
        });
    });
    case("no place here", &|out| {
        append_empty(out, CHANNEL, method::CONNECTION_UNBLOCKED);
    });
}

#[test]
fn what_amqp_cannot_say_is_refused() {
    let refused = |change: &dyn Fn(&mut AmqpConfig)| {
        let mut config = writer();
        change(&mut config);
        Amqp::new(config).err().expect("refused")
    };
    assert!(refused(&|it| it.queue = "x".repeat(256)).contains("256 bytes"));
    assert!(refused(&|it| it.queue.clear()).contains("no name"));
    assert!(refused(&|it| it.vhost = "x".repeat(256)).contains("virtual host"));
    assert!(refused(&|it| it.prefetch = 0).contains("at least 1"));
    assert!(refused(&|it| it.password = "a\0b".to_owned()).contains("NUL"));
    assert!(refused(&|it| it.user = "x".repeat(1025)).contains("1,024"));
}
