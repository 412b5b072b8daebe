use proptest::prelude::*;

use super::*;

/// The key of RFC 6455, section 1.3.
const RFC_KEY: &[u8; 16] = b"the sample nonce";

const GOOD: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

fn feed(text: &str) -> Result<Option<Outcome>, HandshakeError> {
    Handshake::new(*RFC_KEY).feed(text.as_bytes())
}

#[test]
fn rfc_example_of_key_and_accept() {
    assert_eq!(key_text(*RFC_KEY), "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(
        accept_for("dGhlIHNhbXBsZSBub25jZQ=="),
        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    );
}

#[test]
fn request_is_written_whole() {
    let request = upgrade_request(
        "gateway:3000",
        "/ws/stt?x=1",
        *RFC_KEY,
        &[("Authorization", "Bearer secret")],
    );
    let expected = "GET /ws/stt?x=1 HTTP/1.1\r\nHost: gateway:3000\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Version: 13\r\nAuthorization: Bearer secret\r\n\r\n";
    assert_eq!(request.as_deref(), Ok(expected.as_bytes()));
}

#[test]
fn request_cannot_be_broken_by_its_parts() {
    let build = |host, path, header| upgrade_request(host, path, *RFC_KEY, &[header]);
    let plain = ("X-Fine", "yes");
    assert!(matches!(
        build("", "/", plain),
        Err(InvalidRequest::Host(_))
    ));
    assert!(matches!(
        build("a b", "/", plain),
        Err(InvalidRequest::Host(_))
    ));
    assert!(matches!(
        build("a", "ws", plain),
        Err(InvalidRequest::Path(_))
    ));
    assert!(matches!(
        build("a", "/a\r\nX: y", plain),
        Err(InvalidRequest::Path(_))
    ));
    assert!(matches!(
        build("a", "/", ("X", "a\r\nY: b")),
        Err(InvalidRequest::Header(_))
    ));
    assert!(matches!(
        build("a", "/", ("X Y", "a")),
        Err(InvalidRequest::Header(_))
    ));
    assert!(matches!(
        build("a", "/", ("sec-websocket-KEY", "a")),
        Err(InvalidRequest::OwnHeader(_))
    ));
}

#[test]
fn good_answer_with_frames_behind_it() {
    let answer = format!("{GOOD}\u{1}tail");
    assert_eq!(
        feed(&answer),
        Ok(Some(Outcome::Upgraded {
            leftover_offset: GOOD.len()
        }))
    );
}

#[test]
fn letter_case_and_lists_do_not_matter() {
    let answer = GOOD
        .replace("websocket", "WebSocket")
        .replace("Connection: Upgrade", "connection: keep-alive, UPGRADE");
    assert!(matches!(feed(&answer), Ok(Some(Outcome::Upgraded { .. }))));
}

#[test]
fn informational_answers_are_skipped() {
    let answer = format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{GOOD}");
    assert_eq!(
        feed(&answer),
        Ok(Some(Outcome::Upgraded {
            leftover_offset: answer.len()
        }))
    );
}

#[test]
fn refusal_keeps_status_fields_and_body() {
    let answer =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nfull";
    let outcome = feed(answer).expect("legal").expect("complete");
    let Outcome::Refused {
        status,
        headers,
        body_offset,
    } = outcome
    else {
        panic!("not refused: {outcome:?}");
    };
    assert_eq!(status, 503);
    assert_eq!(headers[0], ("Retry-After".to_owned(), "1".to_owned()));
    assert_eq!(&answer[body_offset..], "full");
}

#[test]
fn wrong_upgrades_are_named() {
    let missing = |name| {
        GOOD.lines()
            .filter(|l| !l.starts_with(name))
            .fold(String::new(), |all, line| all + line + "\r\n")
    };
    assert!(matches!(
        feed(&missing("Upgrade")),
        Err(HandshakeError::FieldCount {
            name: "Upgrade",
            count: 0
        })
    ));
    assert!(matches!(
        feed(&missing("Connection")),
        Err(HandshakeError::FieldValue {
            name: "Connection",
            ..
        })
    ));
    assert!(matches!(
        feed(&missing("Sec-WebSocket-Accept")),
        Err(HandshakeError::FieldCount {
            name: "Sec-WebSocket-Accept",
            count: 0
        })
    ));
    assert!(matches!(
        feed(&GOOD.replace("s3p", "S3p")),
        Err(HandshakeError::FieldValue {
            name: "Sec-WebSocket-Accept",
            ..
        })
    ));
    assert!(matches!(
        feed(&GOOD.replace("Upgrade: websocket", "Upgrade: h2c")),
        Err(HandshakeError::FieldValue {
            name: "Upgrade",
            ..
        })
    ));
    for field in [
        "Sec-WebSocket-Extensions: permessage-deflate",
        "Sec-WebSocket-Protocol: chat",
    ] {
        let answer = GOOD.replace("Connection", &format!("{field}\r\nConnection"));
        assert!(matches!(
            feed(&answer),
            Err(HandshakeError::UnaskedFor { .. })
        ));
    }
}

#[test]
fn other_protocols_and_endless_heads_are_errors() {
    assert!(matches!(
        feed("SSH-2.0-OpenSSH\r\n"),
        Err(HandshakeError::NotHttp(_))
    ));
    assert!(matches!(
        feed("HTTP/1.0 101 Switching\r\n\r\n"),
        Err(HandshakeError::NotHttp(_))
    ));
    let endless = format!("HTTP/1.1 101 x\r\nX: {}", "a".repeat(HEAD_MAX_BYTES));
    assert_eq!(feed(&endless), Err(HandshakeError::HeadTooLarge));
    let many = format!(
        "HTTP/1.1 200 x\r\n{}\r\n",
        "X: y\r\n".repeat(HEADERS_MAX + 1)
    );
    assert_eq!(feed(&many), Err(HandshakeError::HeadTooLarge));
}

#[test]
fn frames_beyond_the_limit_are_left_to_the_caller() {
    let answer = format!("{GOOD}{}", "x".repeat(HEAD_MAX_BYTES));
    assert_eq!(
        feed(&answer),
        Ok(Some(Outcome::Upgraded {
            leftover_offset: GOOD.len()
        }))
    );
}

proptest! {
    #[test]
    fn any_split_gives_the_same_outcome(cuts in prop::collection::vec(0..GOOD.len(), 0..5), tail in 0..20_usize) {
        let mut bytes = format!("HTTP/1.1 100 Continue\r\n\r\n{GOOD}").into_bytes();
        let head_len = bytes.len();
        bytes.extend(std::iter::repeat_n(0x81, tail));
        let mut cuts = cuts;
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut parser = Handshake::new(*RFC_KEY);
        let mut start = 0;
        let mut end_of_head = None;
        for cut in cuts {
            match parser.feed(&bytes[start..cut]).expect("legal") {
                Some(Outcome::Upgraded { leftover_offset }) => {
                    end_of_head = Some(start + leftover_offset);
                    break;
                }
                other => prop_assert_eq!(other, None),
            }
            start = cut;
        }
        prop_assert_eq!(end_of_head, Some(head_len));
    }

    #[test]
    fn random_bytes_never_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
        let mut parser = Handshake::new(*RFC_KEY);
        for chunk in chunks {
            if !matches!(parser.feed(&chunk), Ok(None)) {
                break;
            }
        }
    }
}
