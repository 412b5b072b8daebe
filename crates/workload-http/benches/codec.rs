//! What the codecs cost for each request, without system calls: `cargo bench -p plimsoll-workload-http`
//!
//! Each figure is the best of 30 rounds: what the code can do, not what the machine was busy with.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_workload_http::h1::{
    self, AnswerReader, BROWSER_FIELDS, Method, Path, RequestReader, RequestSpec,
};
use plimsoll_workload_http::h2::frame::{
    FRAME_HEADER_BYTES, append_header, append_headers, flag, kind,
};
use plimsoll_workload_http::h2::hpack::{Encoder, Indexing};
use plimsoll_workload_http::h2::{self, Answer, Client, RequestEvent, Server};

const ROUNDS: usize = 30;

fn main() {
    reading_h1();
    writing_h1();
    for streams in [1, 10, 100] {
        client_h2("minimal", &minimal(), streams, false);
    }
    client_h2(
        "browser",
        &RequestSpec {
            fields: &BROWSER_FIELDS,
            ..minimal()
        },
        10,
        false,
    );
    let numbered = RequestSpec {
        path: Path::Numbered("/json/"),
        ..minimal()
    };
    client_h2("number in the path", &numbered, 10, false);
    client_h2("every answer has other fields", &minimal(), 10, true);
    server_h2();
}

fn minimal() -> RequestSpec<'static> {
    RequestSpec {
        method: Method::Get,
        path: Path::Fixed("/"),
        host: "127.0.0.1:8080",
        fields: &[],
        body_bytes: None,
        close: false,
    }
}

/// Prints nanoseconds per request; `run` makes `requests` of them.
fn report(name: &str, requests: u32, mut run: impl FnMut()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap_or(Duration::MAX);
    println!(
        "{name:52} {:8.1} ns",
        best.as_secs_f64() * 1e9 / f64::from(requests)
    );
}

/// An answer as servers give it: a head of about 120 bytes.
fn usual_answer(body: &[u8]) -> Vec<u8> {
    let fields = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Date", "Tue, 24 Nov 2026 12:00:00 GMT"),
    ];
    h1::answer(200, "OK", &fields, body, false)
}

fn reading_h1() {
    const REQUESTS: u32 = 20_000;
    let answer = usual_answer(b"ok");
    let head_len = answer.len() - 2;
    let mut reader = AnswerReader::new();
    let mut read = |pieces: &[&[u8]]| {
        assert!(reader.ask(false));
        let mut sum = 0;
        for piece in pieces {
            let result = reader.received(black_box(piece), |event| match event {
                h1::Event::Head(head) => sum += u64::from(head.status),
                h1::Event::Body(bytes) => sum += bytes.len() as u64,
                h1::Event::End => sum += 1,
            });
            assert_eq!(result, Ok(()));
        }
        black_box(sum);
    };
    report(
        &format!("h1: read an answer, head {head_len} B, body 2 B"),
        REQUESTS,
        || {
            (0..REQUESTS).for_each(|_| read(&[&answer]));
        },
    );
    let (a, b) = answer.split_at(50);
    report("h1: the same in two reads", REQUESTS, || {
        (0..REQUESTS).for_each(|_| read(&[a, b]));
    });
    let large = usual_answer(&[b'x'; 4096]);
    report("h1: read an answer, body 4 KiB", REQUESTS, || {
        (0..REQUESTS).for_each(|_| read(&[&large]));
    });
    report("httparse: its head alone, for comparison", REQUESTS, || {
        for _ in 0..REQUESTS {
            let mut storage = [httparse::EMPTY_HEADER; 32];
            let mut response = httparse::Response::new(&mut storage);
            assert!(
                response
                    .parse(black_box(&answer))
                    .is_ok_and(|status| status.is_complete())
            );
            black_box(response.code);
        }
    });
}

fn writing_h1() {
    const REQUESTS: u32 = 20_000;
    let post = RequestSpec {
        method: Method::Post,
        path: Path::Fixed("/sum"),
        body_bytes: Some(1024),
        ..minimal()
    };
    let numbered = RequestSpec {
        path: Path::Numbered("/json/"),
        ..minimal()
    };
    let browser = RequestSpec {
        fields: &BROWSER_FIELDS,
        ..numbered
    };
    for (name, spec) in [
        ("POST, number in the body", post),
        ("number in the path", numbered),
        ("the same, browser", browser),
    ] {
        let Ok(template) = h1::Template::new(&spec) else {
            unreachable!("the specification is valid");
        };
        let mut out = Vec::new();
        report(&format!("h1: write a request, {name}"), REQUESTS, || {
            for number in 0..u64::from(REQUESTS) {
                out.clear();
                template.append(black_box(number), &mut out);
                black_box(&out);
            }
        });
    }
    let mut reader = RequestReader::new();
    let request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
    report("h1: the sink reads a request", REQUESTS, || {
        for _ in 0..REQUESTS {
            let result = reader.received(black_box(request), |event| {
                black_box(event);
            });
            assert_eq!(result, Ok(()));
        }
    });
}

/// The answers to one batch: HEADERS and DATA of 2 bytes for each stream. `age` is what differs if fields do.
fn answers_h2(
    encoder: &mut Encoder,
    first: u32,
    streams: u32,
    age: Option<u32>,
    out: &mut Vec<u8>,
) {
    for i in 0..streams {
        let stream = first + 2 * i;
        append_headers(out, stream, false, |out| {
            for (name, value) in [
                ("content-type", "text/plain"),
                ("content-length", "2"),
                ("date", "Tue, 24 Nov 2026 12:00:00 GMT"),
            ] {
                if name == "content-type" {
                    encoder.field(b":status", b"200", Indexing::Incremental, out);
                }
                encoder.field(
                    name.as_bytes(),
                    value.as_bytes(),
                    Indexing::Incremental,
                    out,
                );
            }
            if let Some(age) = age {
                let value = (age + i).to_string();
                encoder.field(b"age", value.as_bytes(), Indexing::Without, out);
            }
        });
        append_header(out, 2, kind::DATA, flag::END_STREAM, stream);
        out.extend_from_slice(b"ok");
    }
}

/// Opens streams, takes the output, reads all answers at once: the whole of a client without system calls.
fn client_h2(name: &str, spec: &RequestSpec<'_>, streams: u32, differ: bool) {
    const BATCHES: u32 = 500;
    let Ok(template) = h2::Template::new(spec) else {
        unreachable!("the specification is valid");
    };
    let mut client = Client::new(Arc::new([template]));
    let mut encoder = Encoder::new();
    let mut settings = Vec::new();
    append_header(&mut settings, 0, kind::SETTINGS, 0, 0);
    assert_eq!(client.received(&settings, |_| {}), Ok(()));
    let (mut out, mut next) = (Vec::new(), 1);
    let mut batches: Vec<Vec<u8>> = Vec::new();
    let mut per_request = 0;
    // The server's bytes are made before the clock starts.
    for _ in 0..BATCHES * (ROUNDS as u32) {
        let mut bytes = Vec::new();
        answers_h2(
            &mut encoder,
            next,
            streams,
            differ.then_some(next),
            &mut bytes,
        );
        next += 2 * streams;
        batches.push(bytes);
    }
    let mut batches = batches.iter();
    let fields = if differ { "" } else { ", indexed" };
    report(
        &format!("h2: open, answer; {name}, {streams} streams{fields}"),
        BATCHES * streams,
        || {
            for bytes in batches.by_ref().take(BATCHES as usize) {
                for number in 0..streams {
                    black_box(client.open(0, u64::from(number)));
                }
                client.take_output(&mut out);
                per_request = out.len() / streams as usize;
                black_box(&out);
                let mut ends = 0;
                let result = client.received(black_box(bytes), |event| {
                    ends += u32::from(matches!(event, h2::Event::End { .. }));
                });
                assert_eq!((result, ends), (Ok(()), streams));
            }
        },
    );
    println!("{:52} {per_request:8} B a request", "");
}

fn server_h2() {
    const STREAMS: u32 = 10;
    const BATCHES: u32 = 500;
    let fields = [
        ("Content-Type", "text/plain"),
        ("Date", "Tue, 24 Nov 2026 12:00:00 GMT"),
    ];
    let mut server = Server::new(Arc::new([Answer::new(200, &fields, b"ok")]));
    let Ok(template) = h2::Template::new(&minimal()) else {
        unreachable!("the specification is valid");
    };
    let templates: Arc<[h2::Template]> = Arc::new([template]);
    let mut client = Client::new(templates);
    let mut settings = Vec::new();
    append_header(&mut settings, 0, kind::SETTINGS, 0, 0);
    assert_eq!(client.received(&settings, |_| {}), Ok(()));
    let (mut out, mut bytes) = (Vec::new(), Vec::new());
    let mut batches = Vec::new();
    for _ in 0..BATCHES * (ROUNDS as u32) {
        let first: Vec<u32> = (0..STREAMS).filter_map(|_| client.open(0, 0)).collect();
        client.take_output(&mut out);
        batches.push(out.clone());
        first
            .into_iter()
            .for_each(|stream| client.reset(stream, h2::ErrorCode::CANCEL));
        client.take_output(&mut out);
    }
    let mut batches = batches.iter();
    let mut complete = Vec::new();
    report(
        "h2: the sink reads a request and answers, 10 streams",
        BATCHES * STREAMS,
        || {
            for batch in batches.by_ref().take(BATCHES as usize) {
                let result = server.received(black_box(batch), |event| {
                    if let RequestEvent::End { stream } = event {
                        complete.push(stream);
                    }
                });
                assert_eq!((result, complete.len()), (Ok(()), STREAMS as usize));
                complete
                    .drain(..)
                    .for_each(|stream| server.answer(stream, 0, false));
                server.take_output(&mut bytes);
                assert!(bytes.len() > STREAMS as usize * FRAME_HEADER_BYTES);
                black_box(&bytes);
            }
        },
    );
}
