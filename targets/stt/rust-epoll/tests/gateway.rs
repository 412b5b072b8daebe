//! The whole program over real sockets, against an HTTP/2 server that others wrote. What the contract demands is
//! checked case by case by `plimsoll check`; here is what concerns this gateway's own parts.

mod support;

use std::thread;
use std::time::{Duration, Instant};

use support::{Behaviour, Gateway, Inference, Session, frame};

fn audio(frames: usize) -> Vec<u8> {
    frame(0x82, &[1; 640]).repeat(frames)
}

/// Sends frames and waits until all are named by partials.
fn talk(session: &mut Session, frames: usize) {
    session.write(&audio(frames));
    let mut named = 0;
    while named < frames as u64 {
        let partial = session.receive_json();
        assert_eq!(partial["type"], "partial", "{partial}");
        assert_eq!(partial["transcript"], "a \"word\"");
        named += partial["frames"].as_u64().expect("a number");
    }
}

#[test]
fn servers_of_every_size() {
    let generous: fn(&mut h2::server::Builder) = |builder| {
        builder.initial_window_size(1 << 20).initial_connection_window_size(1 << 24).max_frame_size(1 << 16);
    };
    let stingy: fn(&mut h2::server::Builder) = |builder| {
        // Less than a frame of audio at a time, one request at a time, no table for header fields.
        builder.initial_window_size(500).max_concurrent_streams(1).header_table_size(0);
    };
    for (name, configure) in [("generous", generous), ("usual", |_| {}), ("stingy", stingy)] {
        let inference = Inference::start(configure);
        let gateway = Gateway::start(inference.port, &[("WORKER_THREADS", "1")]);
        let mut sessions: Vec<Session> = (0..3).map(|_| Session::start(gateway.port)).collect();
        for _ in 0..3 {
            sessions.iter_mut().for_each(|session| talk(session, 60));
        }
        let metrics = gateway.http("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
        assert!(metrics.contains("stt_frames_total 540"), "{name}: {metrics}");
    }
}

#[test]
fn a_lost_connection_is_made_anew() {
    let inference = Inference::start(|_| {});
    let gateway = Gateway::start(inference.port, &[("INFERENCE_HTTP_CLIENTS", "1")]);
    let mut session = Session::start(gateway.port);
    talk(&mut session, 5);
    for (behaviour, kind) in [(Behaviour::HangUp, "connection_reset"), (Behaviour::Status(503), "http_5xx")] {
        inference.set(behaviour);
        session.write(&audio(1));
        assert_eq!(session.receive_json()["kind"], kind);
    }
    inference.set(Behaviour::Answer);
    talk(&mut session, 5);
}

#[test]
fn no_server_at_all() {
    // Nobody listens at port 1.
    let gateway = Gateway::start(1, &[]);
    let mut session = Session::start(gateway.port);
    for _ in 0..3 {
        session.write(&audio(2));
        assert_eq!(session.receive_json()["kind"], "connection_reset");
    }
}

#[test]
fn timeouts_leave_nothing_behind() {
    let inference = Inference::start(|_| {});
    let gateway = Gateway::start(inference.port, &[("INFERENCE_TIMEOUT_MS", "60")]);
    inference.set(Behaviour::Never);
    let mut session = Session::start(gateway.port);
    for _ in 0..3 {
        session.write(&audio(2));
        assert_eq!(session.receive_json()["kind"], "timeout");
    }
    inference.set(Behaviour::Answer);
    talk(&mut session, 5);
    let metrics = gateway.http("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(metrics.contains("stt_jobs_inflight 0"), "{metrics}");
}

#[test]
fn a_close_code_arrives_although_audio_is_unread() {
    let gateway = Gateway::start(1, &[]);
    let mut session = Session::start(gateway.port);
    let begun = Instant::now();
    session.write(&frame(0x82, &[0; 639]));
    // Whatever the gateway does about the violation, there is more unread behind it.
    session.write(&audio(100));
    assert_eq!(session.receive_close(), 1003);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[test]
fn requests_follow_one_another_on_a_connection() {
    let gateway = Gateway::start(1, &[]);
    let answers = gateway.http(
        "GET /health HTTP/1.1\r\n\r\nGET /nothing HTTP/1.1\r\n\r\nGET /ws/stt HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "404", "426"]);
}

#[test]
fn the_end_is_orderly() {
    let inference = Inference::start(|_| {});
    let gateway = Gateway::start(inference.port, &[("DRAIN_TIMEOUT_MS", "3000")]);
    let mut sessions: Vec<Session> = (0..4).map(|_| Session::start(gateway.port)).collect();
    sessions.iter_mut().for_each(|session| talk(session, 3));
    gateway.terminate();
    for session in &mut sessions {
        assert_eq!(session.receive_close(), 1001);
    }
    drop(sessions);
    let (status, output) = gateway.wait();
    assert_eq!(status.code(), Some(0));
    let line: serde_json::Value = serde_json::from_str(output.trim()).expect("one line of JSON");
    assert!(line["libraries"]["rustix"].is_string(), "{line}");
}

#[test]
fn reading_at_a_pace_or_at_once() {
    for pace_ms in ["0", "250"] {
        let inference = Inference::start(|_| {});
        let variables = [("READ_PACE_MS", pace_ms), ("FLUSH_INTERVAL_MS", "400")];
        let gateway = Gateway::start(inference.port, &variables);
        let mut session = Session::start(gateway.port);
        for _ in 0..30 {
            session.write(&audio(1));
            thread::sleep(Duration::from_millis(20));
        }
        session.write(&frame(0x89, b"there?"));
        let mut seen = Vec::new();
        while seen.last() != Some(&0xA) {
            seen.push(session.receive().0);
        }
        assert!(seen.starts_with(&[1]), "a partial, then the pong: {seen:?}");
    }
}
