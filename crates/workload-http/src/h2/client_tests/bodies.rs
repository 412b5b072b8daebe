use super::*;

/// What DATA frames in `bytes` hold.
fn data_bytes(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while rest.len() >= FRAME_HEADER_BYTES {
        let len = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        let (frame, behind) = rest.split_at(FRAME_HEADER_BYTES + len);
        if frame[3] == kind::DATA {
            found.extend_from_slice(&frame[FRAME_HEADER_BYTES..]);
        }
        rest = behind;
    }
    found
}

#[test]
fn bodies_wait_for_windows() {
    let mut client = Client::new(templates());
    let stream = client.open(POST, 7).unwrap();
    let (mut out, mut body) = (Vec::new(), Vec::new());
    client.take_output(&mut out);
    body.extend(data_bytes(&out[PREFACE.len()..]));
    assert_eq!(body.len(), DEFAULT_WINDOW as usize);
    assert_eq!(client.body_left(stream), 100_000 - body.len());
    let mut step = |client: &mut Client, frame: &[u8], expected: usize| {
        client.received(frame, |_| {}).unwrap();
        client.take_output(&mut out);
        body.extend(data_bytes(&out));
        assert_eq!(body.len(), expected);
        out.clone()
    };
    let update = |stream: u32, n: u32| frame(kind::WINDOW_UPDATE, 0, stream, &n.to_be_bytes());
    step(&mut client, &after_settings(&[]), 65_535);
    step(&mut client, &update(0, 1), 65_535);
    step(&mut client, &update(stream, 1), 65_536);
    step(&mut client, &update(0, 50_000), 65_536);
    // A smaller initial window makes the stream's negative; then it must be enlarged by more than that.
    step(
        &mut client,
        &settings_frame(&[(setting::INITIAL_WINDOW_SIZE, 65_000)]),
        65_536,
    );
    step(&mut client, &update(stream, 535), 65_536);
    step(&mut client, &update(stream, 10), 65_546);
    let last = step(&mut client, &update(stream, 50_000), 100_000);
    let last_header = last.len() - (100_000 - 65_546) % FRAME_MAX_BYTES - FRAME_HEADER_BYTES;
    assert_eq!(last[last_header + 4], flag::END_STREAM);
    assert_eq!(body, templates()[POST].body().unwrap().to_vec(7));
}

#[test]
fn an_answer_before_the_whole_body_ends_the_upload() {
    let mut client = Client::new(templates());
    client.open(POST, 7);
    let mut out = Vec::new();
    client.take_output(&mut out);
    let mut seen = Vec::new();
    let answer = after_settings(&[headers(1, &[(":status", "413")], true)]);
    client
        .received(&answer, |event| note(&mut seen, event))
        .unwrap();
    assert_eq!(seen[2], other(Event::End { stream: 1 }));
    client.take_output(&mut out);
    assert!(out.ends_with(&frame(kind::RST_STREAM, 0, 1, &8u32.to_be_bytes())));
    client
        .received(&frame(kind::WINDOW_UPDATE, 0, 0, &[0, 1, 0, 0]), |_| {})
        .unwrap();
    assert!(!client.has_output());
}

#[test]
fn the_output_is_limited() {
    let mut client = Client::new(templates());
    let large = settings_frame(&[(setting::INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    client.received(&large, |_| {}).unwrap();
    let window = frame(
        kind::WINDOW_UPDATE,
        0,
        0,
        &(WINDOW_MAX - DEFAULT_WINDOW).to_be_bytes(),
    );
    client.received(&window, |_| {}).unwrap();
    for i in 0..50 {
        client.open(POST, i);
    }
    let (mut out, mut body, mut takes) = (Vec::new(), 0, 0);
    let mut skip = PREFACE.len();
    while client.has_output() {
        client.take_output(&mut out);
        assert!(
            out.len() < OUTPUT_MAX_BYTES + FRAME_MAX_BYTES + 10_000,
            "{}",
            out.len()
        );
        body += data_bytes(&out[skip..]).len();
        skip = 0;
        takes += 1;
    }
    assert_eq!(body, 50 * 100_000);
    assert!(takes > 10);
}
