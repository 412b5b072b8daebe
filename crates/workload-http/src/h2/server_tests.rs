use std::sync::Arc;

use super::frame::{PREFACE, append_headers, append_settings, append_window_update, setting};
use super::*;
use crate::h1::{Method, Path, RequestSpec};

fn answers() -> Arc<[Answer]> {
    [
        Answer::new(200, &[("Content-Type", "text/plain")], b"ok"),
        Answer::new(200, &[], &[b'x'; 300_000]),
        Answer::new(404, &[], b""),
    ]
    .into()
}

fn template(method: Method, path: Path<'_>, body_bytes: Option<usize>) -> Template {
    let spec = RequestSpec {
        method,
        path,
        host: "a",
        fields: &[],
        body_bytes,
        close: false,
    };
    Template::new(&spec).unwrap()
}

/// Moves bytes in both directions, in pieces, until nobody has more to say.
fn exchange(client: &mut Client, server: &mut Server, piece: usize) -> (Vec<String>, Vec<String>) {
    let (mut heard, mut answered) = (Vec::new(), Vec::new());
    let mut bytes = Vec::new();
    while client.has_output() || server.has_output() {
        client.take_output(&mut bytes);
        for piece in bytes.chunks(piece) {
            let mut complete = Vec::new();
            server
                .received(piece, |event| match event {
                    RequestEvent::Head { method, path, .. } => heard.push(format!(
                        "{} {}",
                        String::from_utf8_lossy(method),
                        String::from_utf8_lossy(path)
                    )),
                    RequestEvent::End { stream } => complete.push(stream),
                    RequestEvent::Body { .. } | RequestEvent::Reset { .. } => {}
                })
                .unwrap();
            for stream in complete {
                server.answer(stream, (stream as usize / 2) % 3, false);
            }
        }
        server.take_output(&mut bytes);
        for piece in bytes.chunks(piece) {
            let mut body = 0;
            client
                .received(piece, |event| match event {
                    Event::Head { stream, status, .. } => {
                        answered.push(format!("{stream} {status}"))
                    }
                    Event::Body { bytes, .. } => body += bytes.len(),
                    Event::End { stream } => answered.push(format!("{stream} end")),
                    Event::Settings {
                        max_concurrent_streams,
                    } => {
                        assert_eq!(max_concurrent_streams, Some(1000));
                    }
                    other => panic!("{other:?}"),
                })
                .unwrap();
        }
    }
    (heard, answered)
}

#[test]
fn our_two_sides_understand_each_other() {
    for piece in [1, 10, 100_000] {
        let templates = [
            template(Method::Get, Path::Numbered("/json/"), None),
            template(Method::Post, Path::Fixed("/sum"), Some(1 << 20)),
        ];
        let mut client = Client::new(templates.into());
        let mut server = Server::new(answers());
        for i in 0..6 {
            client.open(i % 2, i as u64).unwrap();
        }
        let (heard, mut answered) = exchange(&mut client, &mut server, piece);
        let expected = [
            "GET /json/0",
            "POST /sum",
            "GET /json/2",
            "POST /sum",
            "GET /json/4",
            "POST /sum",
        ];
        assert_eq!(heard, expected);
        answered.sort();
        let expected = [
            "1 200", "1 end", "11 404", "11 end", "3 200", "3 end", "5 404", "5 end", "7 200",
            "7 end", "9 200", "9 end",
        ];
        assert_eq!(answered, expected);
        assert_eq!(client.open_streams(), 0);
    }
}

fn begin(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    append_settings(&mut bytes, settings);
    bytes
}

fn request(stream: u32, ends: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_headers(&mut bytes, stream, ends, |out| {
        out.extend([0x82, 0x84, 0x86])
    });
    bytes
}

#[test]
fn answers_obey_the_clients_windows() {
    let mut server = Server::new(answers());
    let mut bytes = begin(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    bytes.extend(request(1, true));
    server.received(&bytes, |_| {}).unwrap();
    let mut out = Vec::new();
    server.take_output(&mut out);
    server.answer(1, 1, false);
    server.take_output(&mut out);
    assert_eq!(out[out.len() - 19..][..9], [0, 0, 10, 0, 0, 0, 0, 0, 1]);
    let mut update = Vec::new();
    append_window_update(&mut update, 1, 5);
    server.received(&update, |_| {}).unwrap();
    server.take_output(&mut out);
    assert_eq!(out, [&[0, 0, 5, 0, 0, 0, 0, 0, 1][..], b"xxxxx"].concat());
}

#[test]
fn what_a_client_must_not_do() {
    let try_all = |bytes: &[u8]| {
        let whole = Server::new(answers()).received(bytes, |_| {}).err();
        let mut server = Server::new(answers());
        let single = bytes
            .chunks(1)
            .find_map(|piece| server.received(piece, |_| {}).err());
        assert_eq!(whole, single);
        whole
    };
    assert_eq!(try_all(b"GET / HTTP/1.1\r\n"), Some(Violation::Preface));
    let with = |frames: &[Vec<u8>]| [begin(&[]), frames.concat()].concat();
    assert_eq!(
        try_all(&with(&[request(2, true)])),
        Some(Violation::StreamId)
    );
    let falling = with(&[request(3, true), request(1, true)]);
    assert_eq!(try_all(&falling), Some(Violation::StreamId));
    let twice = with(&[request(1, true), request(1, true)]);
    assert_eq!(try_all(&twice), Some(Violation::ClosedStream("HEADERS")));
    assert_eq!(try_all(&with(&[request(1, false), request(3, true)])), None);
}
