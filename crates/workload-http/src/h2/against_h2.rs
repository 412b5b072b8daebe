//! Both sides against an independent implementation, the crate `h2`, in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::h1::{BROWSER_FIELDS, Method, Path, RequestSpec};

/// The pipe holds so little that frames are split in many places.
const PIPE_BYTES: usize = 777;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

/// Writes all of `out` and reads at least once: both at once, or two full pipes would wait for each other. `None` when
/// the peer is gone.
async fn turn(io: &mut DuplexStream, out: &[u8], mut on_read: impl FnMut(&[u8])) -> Option<()> {
    let (mut reader, mut writer) = tokio::io::split(io);
    let (mut written, mut was_read, mut buffer) = (0, false, [0; 4096]);
    while written < out.len() || !was_read {
        tokio::select! {
            n = writer.write(&out[written..]), if written < out.len() => written += n.ok()?,
            n = reader.read(&mut buffer) => {
                let bytes = &buffer[..n.ok().filter(|n| *n > 0)?];
                on_read(bytes);
                was_read = true;
            }
        }
    }
    Some(())
}

/// Answers each request with its body, or with as many bytes as its path says.
async fn serve(io: DuplexStream, builder: h2::server::Builder) {
    let mut connection = builder.handshake::<_, Bytes>(io).await.unwrap();
    while let Some(request) = connection.accept().await {
        let Ok((request, respond)) = request else {
            break;
        };
        tokio::spawn(answer_one(request, respond));
    }
}

async fn answer_one(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
) {
    assert_eq!(
        request.headers().len(),
        11 + usize::from(request.method() == "POST")
    );
    assert_eq!(request.uri().authority().unwrap(), "127.0.0.1:80");
    let number = request
        .uri()
        .path()
        .strip_prefix("/bytes/")
        .map(|n| n.parse().unwrap());
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part.unwrap();
        body.flow_control().release_capacity(part.len()).unwrap();
        bytes.extend_from_slice(&part);
    }
    if let Some(number) = number {
        bytes = vec![b'x'; number];
    }
    let answer = http::Response::builder()
        .header("date", "Tue, 24 Nov 2026 12:00:00 GMT")
        .header("content-length", bytes.len())
        .body(())
        .unwrap();
    let mut send = respond.send_response(answer, false).unwrap();
    send_all(&mut send, bytes.into()).await;
}

async fn send_all(send: &mut h2::SendStream<Bytes>, mut bytes: Bytes) {
    while !bytes.is_empty() {
        send.reserve_capacity(bytes.len());
        let capacity = std::future::poll_fn(|context| send.poll_capacity(context)).await;
        let n = capacity.unwrap().unwrap();
        send.send_data(bytes.split_to(n), false).unwrap();
    }
    send.send_data(Bytes::new(), true).unwrap();
}

fn templates() -> Arc<[Template]> {
    let spec = |method, path, body_bytes| RequestSpec {
        method,
        path,
        host: "127.0.0.1:80",
        fields: &BROWSER_FIELDS,
        body_bytes,
        close: false,
    };
    [
        spec(Method::Post, Path::Fixed("/sum"), Some(100_000)),
        spec(Method::Get, Path::Numbered("/bytes/"), None),
        spec(Method::Get, Path::Fixed("/bytes/1048576"), None),
    ]
    .iter()
    .map(|spec| Template::new(spec).unwrap())
    .collect()
}

/// Makes `count` requests, as many at once as the server allows, and returns how many streams were open at most.
async fn ask(mut io: DuplexStream, count: usize) -> usize {
    let templates = templates();
    let mut client = Client::new(Arc::clone(&templates));
    let (mut next, mut done, mut most) = (0, 0, 0);
    let mut expected = HashMap::new();
    let mut bodies: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut out = Vec::new();
    while done < count {
        while client.is_open() && next < count && client.room() > 0 {
            let kind = next % 3;
            let stream = client.open(kind, next as u64).unwrap();
            expected.insert(
                stream,
                match kind {
                    0 => templates[0].body().unwrap().to_vec(next as u64),
                    1 => vec![b'x'; next],
                    _ => vec![b'x'; 1 << 20],
                },
            );
            next += 1;
        }
        most = most.max(client.open_streams() as usize);
        client.take_output(&mut out);
        turn(&mut io, &out, |bytes| {
            client
                .received(bytes, |event| {
                    note(event, &mut bodies, &mut expected, &mut done)
                })
                .unwrap();
        })
        .await
        .expect("the server lives");
    }
    most
}

fn note(
    event: Event<'_>,
    bodies: &mut HashMap<u32, Vec<u8>>,
    expected: &mut HashMap<u32, Vec<u8>>,
    done: &mut usize,
) {
    match event {
        Event::Head {
            stream,
            status,
            content_length,
            fields,
        } => {
            let body = &expected[&stream];
            assert_eq!((status, content_length), (200, Some(body.len() as u64)));
            assert_eq!(
                fields.get("date"),
                Some(&b"Tue, 24 Nov 2026 12:00:00 GMT"[..])
            );
            bodies.insert(stream, Vec::new());
        }
        Event::Body { stream, bytes } => bodies.get_mut(&stream).unwrap().extend_from_slice(bytes),
        Event::End { stream } => {
            assert!(
                bodies.remove(&stream) == expected.remove(&stream),
                "stream {stream}"
            );
            *done += 1;
        }
        Event::Settings { .. } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn our_client_talks_to_h2() {
    let mut small = h2::server::Builder::new();
    small.initial_window_size(100).max_concurrent_streams(4);
    let plain = h2::server::Builder::new();
    for (builder, at_once) in [(small, 4), (plain, 30)] {
        let most = runtime().block_on(async {
            let (ours, theirs) = duplex(PIPE_BYTES);
            tokio::spawn(serve(theirs, builder));
            ask(ours, 30).await
        });
        assert_eq!(most, at_once);
    }
}

/// Our server on a pipe. It counts body bytes and answers with the kind that the path names.
async fn be_server(mut io: DuplexStream, answers: Arc<[Answer]>, total: Arc<AtomicUsize>) {
    let mut server = Server::new(answers);
    let (mut out, mut kinds) = (Vec::new(), HashMap::new());
    loop {
        server.take_output(&mut out);
        let on_read = |bytes: &[u8]| take(&mut server, bytes, &mut kinds, &total);
        if turn(&mut io, &out, on_read).await.is_none() {
            return;
        }
    }
}

fn take(server: &mut Server, bytes: &[u8], kinds: &mut HashMap<u32, usize>, total: &AtomicUsize) {
    let mut complete = Vec::new();
    server
        .received(bytes, |event| match event {
            RequestEvent::Head { stream, path, .. } => {
                let kind = std::str::from_utf8(&path[1..]).unwrap().parse().unwrap();
                kinds.insert(stream, kind);
            }
            RequestEvent::Body { bytes, .. } => {
                total.fetch_add(bytes.len(), Ordering::Relaxed);
            }
            RequestEvent::End { stream } => complete.push(stream),
            RequestEvent::Reset { stream } => panic!("stream {stream} was reset"),
        })
        .unwrap();
    for stream in complete {
        server.answer(stream, kinds[&stream], false);
    }
}

async fn ask_ours(io: DuplexStream, builder: h2::client::Builder, lengths: &[usize]) {
    let (mut sender, connection) = builder.handshake::<_, Bytes>(io).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut answers = Vec::new();
    for i in 0..30 {
        let kind = i % lengths.len();
        sender = sender.ready().await.unwrap();
        let request = http::Request::post(format!("http://a/{kind}"))
            .header("x-number", i.to_string())
            .body(())
            .unwrap();
        let (answer, mut send) = sender.send_request(request, false).unwrap();
        let upload = tokio::spawn(async move { send_all(&mut send, vec![1; 50_000].into()).await });
        answers.push((kind, upload, tokio::spawn(answer)));
    }
    for (kind, upload, answer) in answers {
        upload.await.unwrap();
        let answer = answer.await.unwrap().unwrap();
        assert_eq!(
            (
                answer.status().as_u16(),
                answer.headers()["x-kind"].as_bytes()
            ),
            (200, &b"test"[..])
        );
        let mut body = answer.into_body();
        let mut len = 0;
        while let Some(part) = body.data().await {
            let part = part.unwrap();
            body.flow_control().release_capacity(part.len()).unwrap();
            len += part.len();
        }
        assert_eq!(len, lengths[kind]);
    }
    connection.abort();
}

#[test]
fn our_server_talks_to_h2() {
    let lengths = [0, 2, 300_000];
    let answers: Arc<[Answer]> = lengths
        .iter()
        .map(|len| Answer::new(200, &[("X-Kind", "test")], &vec![b'y'; *len]))
        .collect();
    let mut small = h2::client::Builder::new();
    small.initial_window_size(1000).header_table_size(60);
    for builder in [small, h2::client::Builder::new()] {
        let total = Arc::new(AtomicUsize::new(0));
        runtime().block_on(async {
            let (ours, theirs) = duplex(PIPE_BYTES);
            tokio::spawn(be_server(ours, Arc::clone(&answers), Arc::clone(&total)));
            ask_ours(theirs, builder, &lengths).await;
        });
        assert_eq!(total.load(Ordering::Relaxed), 30 * 50_000);
    }
}
