//! The honest broker as a process.

mod support;

use std::process::Command;
use std::time::Duration;

use support::{Client, Folder, Got, Target};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rust-log");

fn folder() -> Folder {
    Folder::new(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn it_tells_its_versions_and_its_health() {
    let folder = folder();
    let target = Target::start(PROGRAM, &folder, &[]);
    assert!(target.line.starts_with(r#"{"event":"start","target":"rust-log 0.1.0""#), "{}", target.line);
    assert!(target.line.contains(r#""crc32fast":"1."#) && target.line.contains(r#""slab":"0."#), "{}", target.line);
    for port in [target.port, target.http_port] {
        assert!(Target::http(port, "/healthz").ends_with("\r\n\r\nok\n"));
    }
    Client::new(&target).declare_queue();
    let queues = Target::http(target.http_port, "/admin/api/queues");
    assert!(queues.contains(r#"{"topic":"q","group":null,"partition":0,"kind":"queue","tier":"durable""#), "{queues}");
    assert_eq!(target.stop().code(), Some(0));
}

#[test]
fn messages_of_all_sizes_go_through_each_tier() {
    for tier in ["durable", "speculative", "cache", "memory"] {
        let folder = folder();
        let target = Target::start(PROGRAM, &folder, &[("QUEUE_TIER", tier)]);
        let (mut writer, mut reader) = (Client::new(&target), Client::new(&target));
        writer.declare_queue();
        reader.subscribe();
        for (request, size) in (0..).zip([0, 1, 1024, 65_536, 1 << 20]) {
            let payload: Vec<u8> = (0..size).map(|at: usize| (at % 251) as u8).collect();
            writer.publish("q", request, &payload);
            assert_eq!(writer.next(), Got::Confirmed(request), "{tier}");
            assert_eq!(reader.next(), Got::Delivered { offset: request, payload, again: false }, "{tier}");
        }
    }
}

#[test]
fn after_a_kill_all_is_there_that_was_not_settled() {
    let folder = folder();
    let target = Target::start(PROGRAM, &folder, &[("SEGMENT_MIB", "1")]);
    let mut client = Client::new(&target);
    client.declare_queue();
    for request in 0..3000 {
        client.publish("q", request, &[7; 1024]);
    }
    for request in 0..3000 {
        assert_eq!(client.next(), Got::Confirmed(request));
    }
    client.subscribe();
    let expected: Vec<(u64, bool)> = (0..1000).map(|offset| (offset, false)).collect();
    assert_eq!(client.delivered(1000), expected);
    client.settle(&(0..1000).collect::<Vec<u64>>());
    // What comes behind the settlement was handed over after it.
    assert_eq!(client.delivered(1024), (1000..2024).map(|offset| (offset, false)).collect::<Vec<_>>());
    target.kill();
    let target = Target::start(PROGRAM, &folder, &[]);
    let mut client = Client::new(&target);
    client.subscribe();
    let expected: Vec<(u64, bool)> = (1000..2024).map(|offset| (offset, true)).collect();
    assert_eq!(client.delivered(1024), expected);
}

#[test]
fn all_readers_of_a_stream_get_all_messages() {
    let folder = folder();
    let target = Target::start(PROGRAM, &folder, &[]);
    let mut writer = Client::new(&target);
    writer.declare_stream();
    let mut readers: Vec<Client> = (0..4).map(|_| Client::new(&target)).collect();
    readers.iter_mut().for_each(Client::subscribe_stream);
    for request in 0..2000 {
        writer.publish("s", request, &[1; 100]);
    }
    for reader in &mut readers {
        assert_eq!(reader.delivered(2000), (0..2000).map(|offset| (offset, false)).collect::<Vec<_>>());
        assert_eq!(reader.within(Duration::from_millis(50)), None);
    }
}

#[test]
fn a_bad_value_is_one_line_and_code_2() {
    let output = Command::new(PROGRAM).env("QUEUE_TIER", "paper").output().expect("run");
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.starts_with("QUEUE_TIER="), "{text}");
}
