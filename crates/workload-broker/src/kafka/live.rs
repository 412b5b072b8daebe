//! Against a broker that runs: `PLIMSOLL_KAFKA=127.0.0.1:9092 cargo test -p plimsoll-workload-broker -- --ignored kafka`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Asker, Reader, Reading, Setup, Writer};
use crate::amqp::live::{Live, bodies};

const ADDRESS: &str = "PLIMSOLL_KAFKA";
const READERS: u32 = 2;

/// A topic that nobody else has.
fn setup(name: &str, partitions: u32) -> Setup {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Setup {
        topic: format!("plimsoll-live-{name}-{}", std::process::id()),
        partitions,
        syncs_each: name == "synced",
        began_ms: i64::try_from(since_1970.as_millis()).unwrap(),
    }
}

fn reader(setup: &Setup, number: u32) -> Live<Reader> {
    let reading = Reading::Shared {
        group: "g".to_owned(),
        number,
        readers: READERS,
    };
    Live::open(ADDRESS, Reader::new(setup.clone(), reading, 16).unwrap())
}

/// How much of the topic the group has not settled.
fn unsettled(topic: &str) -> u64 {
    let address = std::env::var(ADDRESS).expect("the address of a broker");
    let mut socket = TcpStream::connect(address).unwrap();
    let mut asker = Asker::new(topic, "g").unwrap();
    let (mut out, mut buffer) = (Vec::new(), vec![0; 65_536]);
    asker.open(&mut out);
    loop {
        socket.write_all(&std::mem::take(&mut out)).unwrap();
        let read = socket.read(&mut buffer).unwrap();
        assert!(read > 0, "the broker closed the connection");
        if let Some(messages) = asker.received(&buffer[..read], &mut out).unwrap() {
            return messages;
        }
    }
}

#[test]
#[ignore = "needs a broker"]
fn kafka_carries_messages_through_a_queue() {
    for (name, confirms) in [
        ("confirmed", true),
        ("synced", true),
        ("unconfirmed", false),
    ] {
        let setup = setup(name, READERS);
        // The second round begins where the first one ended.
        for round in 0..2 {
            for number in 0..READERS {
                let writer = Writer::new(setup.clone(), number, confirms).unwrap();
                let mut writer = Live::open(ADDRESS, writer);
                for some in bodies().chunks(7) {
                    writer.publish_all(some);
                }
                if confirms {
                    writer.read_until(|it| it.ears.confirmed.len() == bodies().len());
                }
                assert_eq!(writer.ears.refused, Vec::<String>::new());
                let mut reader = reader(&setup, number);
                reader.read_until(|it| it.ears.delivered.len() == bodies().len());
                assert!(reader.ears.delivered == bodies(), "in order and unchanged");
                assert_eq!(reader.ears.refused, Vec::<String>::new());
                let mut left = unsettled(&setup.topic);
                for _ in 0..50 {
                    std::thread::sleep(Duration::from_millis(20));
                    left = unsettled(&setup.topic);
                    if left == 0 {
                        break;
                    }
                }
                assert_eq!(left, 0, "{name}, round {round}");
            }
        }
    }
}

#[test]
#[ignore = "needs a broker"]
fn kafka_gives_everything_to_each_reader_of_a_stream() {
    let setup = setup("stream", 1);
    let mut writer = Live::open(ADDRESS, Writer::new(setup.clone(), 0, true).unwrap());
    writer.publish(b"before");
    writer.read_until(|it| it.ears.confirmed.len() == 1);
    let mut readers = [0, 1].map(|_| {
        let reader = Reader::new(setup.clone(), Reading::Every, 16).unwrap();
        Live::open(ADDRESS, reader)
    });
    for some in bodies().chunks(3) {
        writer.publish_all(some);
    }
    for reader in &mut readers {
        reader.read_until(|it| it.ears.delivered.len() == bodies().len());
        assert!(reader.ears.delivered == bodies(), "in order and unchanged");
    }
    assert_eq!(unsettled(&setup.topic), 101, "nobody commits");
}

#[test]
#[ignore = "needs a broker"]
fn kafka_takes_the_largest_message_and_refuses_a_larger_one() {
    let setup = setup("large", 1);
    let mut writer = Live::open(ADDRESS, Writer::new(setup, 0, true).unwrap());
    writer.publish(&vec![7; 4 << 20]);
    writer.publish(&vec![7; 9 << 20]);
    writer.publish(b"after it");
    writer.read_until(|it| it.ears.confirmed.len() + it.ears.refused.len() == 3);
    assert_eq!(writer.ears.confirmed, [1, 3]);
    assert_eq!(writer.ears.refused, ["MESSAGE_TOO_LARGE (10)"]);
}
