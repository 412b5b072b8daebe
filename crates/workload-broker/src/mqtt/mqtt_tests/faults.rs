use super::super::config::count;
use super::*;

#[track_caller]
fn assert_fault(client: &mut Mqtt, bytes: &[u8], part: &str) {
    let (_, _, fault) = give(client, [bytes]);
    let fault = fault.expect("a fault");
    assert!(fault.0.contains(part), "{fault:?}");
}

#[test]
fn a_refused_connection_says_why() {
    let fresh = |properties: &[u8], flags, reason| {
        let mut client = Mqtt::new(reader(Qos::AtLeastOnce)).unwrap();
        client.open(&mut Vec::new());
        let mut bytes = Vec::new();
        append_connack(&mut bytes, flags, reason, properties);
        give(&mut client, [&bytes[..]]).2.unwrap().0
    };
    assert_eq!(
        fresh(b"\x1F\0\x03why", 0, 0x87),
        "the broker refused the connection: not authorized (0x87): why"
    );
    assert!(fresh(b"", 1, 0).contains("resumed a session"));
    assert!(fresh(b"", 2, 0).contains("malformed"));
    assert!(
        fresh(b"\x21\0\0", 0, 0).contains("malformed"),
        "receive maximum 0"
    );
    assert!(fresh(b"\x21\0", 0, 0).contains("malformed"));
    let refused = |suback| {
        let mut server = Server {
            suback: Some(suback),
            ..Server::default()
        };
        let mut client = Mqtt::new(reader(Qos::AtLeastOnce)).unwrap();
        let (mut hello, mut answer) = (Vec::new(), Vec::new());
        client.open(&mut hello);
        server.received(&hello, &mut answer);
        let (_, subscribe, _) = give(&mut client, [&answer[..]]);
        answer.clear();
        server.received(&subscribe, &mut answer);
        give(&mut client, [&answer[..]]).2.unwrap().0
    };
    assert!(refused(0x8F).contains("topic filter invalid"));
    assert!(refused(0).contains("grants QoS 0 and not 1"));
}

#[test]
fn what_breaks_the_protocol_is_a_fault() {
    let reads = |part: &str, bytes: &[u8]| {
        let mut config = reader(Qos::ExactlyOnce);
        config.prefetch = 2;
        assert_fault(&mut open(config).0, bytes, part);
    };
    let message = |id| {
        let mut bytes = Vec::new();
        append_message(&mut bytes, QOS_2, id, b"x");
        bytes
    };
    reads("two messages at once", &[message(5), message(5)].concat());
    reads(
        "more than 2 unsettled",
        &[message(5), message(6), message(7)].concat(),
    );
    reads("malformed", &message(0));
    reads("malformed", b"\x36\x06\0\x01t\0\x01\0");
    reads("malformed", b"\x30\x03\0\0\0");
    reads("malformed", b"\x30\x04\0\x01t\x05");
    reads(
        "before we have it",
        &[&message(5)[..], b"\x62\x02\0\x05"].concat(),
    );
    reads("no place here", b"\x40\x02\0\x01");
    reads("no place here", b"\x20\x03\0\0\0");
    reads("length is malformed", b"\x30\xFF\xFF\xFF\xFF\x01");
    reads("over", b"\x30\xFF\xFF\xFF\x7F");
    reads("a further step", b"\xF0\0");
    reads(
        "server shutting down (0x8B): bye",
        b"\xE0\x08\x8B\x06\x1F\0\x03bye",
    );
    reads("ended the connection: success", b"\xE0\0");

    let writes = |part: &str, qos, bytes: &[u8]| {
        let (mut client, _) = open(writer(qos));
        client.publish(&mut Vec::new(), b"body", 1);
        assert_fault(&mut client, bytes, part);
    };
    writes("PUBACK for packet 2", Qos::AtLeastOnce, b"\x40\x02\0\x02");
    writes("PUBACK for packet 0", Qos::AtLeastOnce, b"\x40\x02\0\0");
    writes(
        "PUBACK for packet 1",
        Qos::AtLeastOnce,
        b"\x40\x02\0\x01\x40\x02\0\x01",
    );
    writes("PUBACK for packet 1", Qos::AtMostOnce, b"\x40\x02\0\x01");
    writes("PUBACK for packet 1", Qos::ExactlyOnce, b"\x40\x02\0\x01");
    writes("PUBREC for packet 1", Qos::AtLeastOnce, b"\x50\x02\0\x01");
    writes("PUBCOMP for packet 1", Qos::ExactlyOnce, b"\x70\x02\0\x01");
    writes("malformed", Qos::AtLeastOnce, b"\x40\x04\0\x01\0\x05");
    writes("no place here", Qos::AtLeastOnce, b"\x30\x04\0\x01t\0");
}

#[test]
fn the_window_is_the_callers_to_keep() {
    let mut config = writer(Qos::AtLeastOnce);
    config.window = 1;
    let (mut client, _) = open(config);
    let mut out = Vec::new();
    client.publish(&mut out, b"one", 1);
    let len = out.len();
    client.publish(&mut out, b"two", 2);
    assert_eq!(out.len(), len);
    assert_fault(&mut client, b"\x40\x02\0\x01", "more than 1 messages");
}

#[test]
fn pings_and_the_end() {
    let (mut client, mut server) = open(writer(Qos::AtMostOnce));
    let mut out = Vec::new();
    client.ping(&mut out);
    assert_eq!(talk(&mut client, &mut server, out), []);
    assert_eq!(client.pings_answered(), 1);
    let mut out = Vec::new();
    client.close(&mut out);
    assert_eq!(out, b"\xE0\0");
    assert_eq!(give(&mut client, [&b"\xD0\0"[..]]), (vec![], vec![], None));
    assert_eq!(count(b"42"), Some(42));
    assert_eq!(count(b"4 2"), None);
}

#[test]
fn what_mqtt_cannot_say_is_refused() {
    let refused = |role, change: &dyn Fn(&mut MqttConfig)| {
        let mut config = MqttConfig::new(role, "t", Qos::AtLeastOnce);
        change(&mut config);
        Mqtt::new(config).err().expect("refused")
    };
    assert!(refused(Role::Writer, &|it| it.topic = "a/+".to_owned()).contains("+ or #"));
    assert!(refused(Role::Writer, &|it| it.topic.clear()).contains("empty"));
    assert!(refused(Role::Reader, &|it| it.topic = "x".repeat(65_536)).contains("65536"));
    assert!(refused(Role::Reader, &|it| it.share = Some("a/b".to_owned())).contains("share"));
    assert!(refused(Role::Reader, &|it| it.prefetch = 0).contains("at least 1"));
    assert!(refused(Role::Reader, &|it| it.user = Some("\0".to_owned())).contains("NUL"));
    assert!(refused(Role::Writer, &|it| it.body_bytes_max = 9 << 20).contains("8388608"));
    let mut wild = reader(Qos::AtMostOnce);
    wild.topic = "t/#".to_owned();
    assert!(Mqtt::new(wild).is_ok());
}
