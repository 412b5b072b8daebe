use super::*;

#[test]
fn frames_of_a_wrong_form_end_the_connection() {
    for (frames, violation) in [
        (
            vec![frame(kind::DATA, 0, 0, b"x")],
            Violation::WrongStream("DATA"),
        ),
        (
            vec![frame(kind::SETTINGS, 0, 1, b"")],
            Violation::WrongStream("SETTINGS"),
        ),
        (
            vec![frame(kind::SETTINGS, 0, 0, b"12345")],
            Violation::FrameSize("SETTINGS"),
        ),
        (
            vec![frame(kind::SETTINGS, flag::ACK, 0, b"123456")],
            Violation::FrameSize("SETTINGS"),
        ),
        (
            vec![frame(kind::PING, 0, 0, b"1234567")],
            Violation::FrameSize("PING"),
        ),
        (
            vec![frame(kind::GOAWAY, 0, 0, b"1234567")],
            Violation::FrameSize("GOAWAY"),
        ),
        (
            vec![frame(kind::RST_STREAM, 0, 1, b"123")],
            Violation::FrameSize("RST_STREAM"),
        ),
        (
            vec![frame(kind::WINDOW_UPDATE, 0, 1, b"123")],
            Violation::FrameSize("WINDOW_UPDATE"),
        ),
        (
            vec![frame(kind::DATA, flag::PADDED, 1, b"")],
            Violation::FrameSize("DATA"),
        ),
        (
            vec![
                headers(1, OK, false),
                frame(kind::DATA, flag::PADDED, 1, b"\x02ab"),
                frame(kind::DATA, flag::PADDED, 1, b"\x03ab"),
            ],
            Violation::Padding,
        ),
        (
            vec![frame(kind::HEADERS, flag::PADDED | 4, 1, b"\x02\x88")],
            Violation::Padding,
        ),
        (
            vec![frame(kind::DATA, 0, 1, &[0; FRAME_MAX_BYTES + 1])],
            Violation::FrameTooLarge,
        ),
    ] {
        assert_violates(&frames, violation);
    }
}

#[test]
fn settings_and_windows_have_limits() {
    let id = |stream: u32| stream.to_be_bytes();
    for (frames, violation) in [
        (
            vec![frame(kind::PUSH_PROMISE, 4, 1, &id(2))],
            Violation::Push,
        ),
        (
            vec![settings_frame(&[(setting::ENABLE_PUSH, 1)])],
            Violation::Setting(2),
        ),
        (
            vec![settings_frame(&[(setting::MAX_FRAME_SIZE, 16_383)])],
            Violation::Setting(5),
        ),
        (
            vec![settings_frame(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)])],
            Violation::WindowOverflow,
        ),
        (
            vec![frame(kind::WINDOW_UPDATE, 0, 0, &id(WINDOW_MAX))],
            Violation::WindowOverflow,
        ),
        (
            vec![frame(kind::WINDOW_UPDATE, 0, 1, &id(WINDOW_MAX))],
            Violation::WindowOverflow,
        ),
        (
            vec![frame(kind::WINDOW_UPDATE, 0, 0, &id(0))],
            Violation::WindowIncrement,
        ),
    ] {
        assert_violates(&frames, violation);
    }
}

#[test]
fn frames_on_wrong_streams_end_the_connection() {
    let id = |stream: u32| stream.to_be_bytes();
    for (frames, violation) in [
        (
            vec![headers(5, OK, false)],
            Violation::IdleStream("HEADERS"),
        ),
        (
            vec![headers(2, OK, false)],
            Violation::IdleStream("HEADERS"),
        ),
        (
            vec![frame(kind::RST_STREAM, 0, 5, &id(0))],
            Violation::IdleStream("RST_STREAM"),
        ),
        (
            vec![frame(kind::WINDOW_UPDATE, 0, 5, &id(1))],
            Violation::IdleStream("WINDOW_UPDATE"),
        ),
        (
            vec![
                headers(1, &[(":status", "204")], true),
                data(1, b"x", false),
            ],
            Violation::ClosedStream("DATA"),
        ),
        (
            vec![
                headers(1, &[(":status", "204")], true),
                headers(1, OK, false),
            ],
            Violation::ClosedStream("HEADERS"),
        ),
        (
            vec![frame(kind::HEADERS, 4, 1, &[0xBE])],
            Violation::Hpack(HpackFlaw::Index(62)),
        ),
        (
            vec![
                frame(kind::GOAWAY, 0, 0, &[0; 8]),
                frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]),
            ],
            Violation::GoawayRaised,
        ),
    ] {
        assert_violates(&frames, violation);
    }
    for first in [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(99, 0, 0, b""),
        frame(kind::SETTINGS, flag::ACK, 0, b""),
    ] {
        assert_eq!(read(&[GET], &first).1, Some(Violation::NotSettingsFirst));
    }
    assert_eq!(Violation::ClosedStream("DATA").name(), "unasked_answer");
    let text = read(&[GET], b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(text.1, Some(Violation::FrameTooLarge));
}

#[test]
fn more_data_than_the_window_is_a_violation() {
    let mut bytes = after_settings(&[headers(1, &[(":status", "200")], false)]);
    let mut client = Client::new(templates());
    client.open(GET, 0);
    // As if nothing had ever been read.
    client.core.streams.get_mut(1).unwrap().receive = ReceiveWindow::new(10);
    bytes.extend(data(1, &[0; 4], false));
    bytes.extend(data(1, &[0; 11], false));
    assert_eq!(
        client.received(&bytes, |_| {}),
        Err(Violation::WindowOverrun)
    );
    assert_eq!(
        Violation::WindowOverrun.code(),
        ErrorCode::FLOW_CONTROL_ERROR
    );
}

#[test]
fn malformed_answers_end_their_stream_only() {
    let all = |fields: &[(&str, &str)]| vec![headers(1, fields, true)];
    for (frames, why) in [
        (all(&[("x", "y")]), Malformed::PseudoFields),
        (
            all(&[("x", "y"), (":status", "200")]),
            Malformed::PseudoFields,
        ),
        (
            all(&[(":status", "200"), (":status", "200")]),
            Malformed::PseudoFields,
        ),
        (
            all(&[(":status", "200"), (":path", "/")]),
            Malformed::PseudoFields,
        ),
        (
            all(&[(":path", "/"), (":status", "200")]),
            Malformed::PseudoFields,
        ),
        (all(&[(":state", "200")]), Malformed::PseudoFields),
        (all(&[(":status", "0200")]), Malformed::Status),
        (all(&[(":status", "600")]), Malformed::Status),
        (all(&[(":status", "101")]), Malformed::Status),
        (all(&[(":status", "200"), ("X", "y")]), Malformed::Field),
        (all(&[(":status", "200"), ("x", "a\nb")]), Malformed::Field),
        (
            all(&[(":status", "200"), ("connection", "close")]),
            Malformed::ConnectionField,
        ),
        (
            all(&[(":status", "200"), ("transfer-encoding", "chunked")]),
            Malformed::ConnectionField,
        ),
        (
            all(&[(":status", "200"), ("content-length", "+1")]),
            Malformed::ContentLength,
        ),
        (
            all(&[
                (":status", "200"),
                ("content-length", "0"),
                ("content-length", "0"),
            ]),
            Malformed::ContentLength,
        ),
        (
            all(&[(":status", "200"), ("content-length", "1")]),
            Malformed::Length,
        ),
        (all(&[(":status", "103")]), Malformed::InterimEnd),
        (
            vec![headers(1, &[(":status", "103")], false); 33],
            Malformed::TooManyInterim,
        ),
        (
            vec![headers(1, OK, false), headers(1, &[("x", "y")], false)],
            Malformed::Trailers,
        ),
        (
            vec![headers(1, OK, false), headers(1, OK, true)],
            Malformed::PseudoFields,
        ),
        (
            vec![headers(1, OK, false), data(1, b"o", true)],
            Malformed::Length,
        ),
        (
            vec![headers(1, OK, false), data(1, b"okay", true)],
            Malformed::Length,
        ),
        (
            vec![
                headers(1, &[(":status", "204")], false),
                data(1, b"o", true),
            ],
            Malformed::Length,
        ),
        (
            vec![headers(3, OK, false), data(3, b"ok", true)],
            Malformed::Data,
        ),
        (vec![data(1, b"ok", true)], Malformed::Data),
    ] {
        assert_malformed(&frames, why);
    }
}
