//! Talks to a real server: a writer, a reader, and a check that each message arrived once and in order.
//!
//! `cargo run --example talk -- nats 127.0.0.1:4222 queue confirmed 10000`, or `resp`, `kafka`, `stream`, and
//! `unconfirmed`, `memory` (NATS), `later` (NATS, `persist_mode: async`), `fsync` (Redis, Valkey, Kafka). The server must
//! be fresh: it has no stream `s`. Not a measurement: it polls both sockets.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_workload_broker::dialect::{Dialect, Heard, Shape};
use plimsoll_workload_broker::{kafka, nats, resp};

/// How many messages may be published and not confirmed or, unconfirmed, not delivered.
const WINDOW: usize = 1024;

/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(5);

struct Side {
    socket: TcpStream,
    machine: Box<dyn Dialect>,
    out: Vec<u8>,
    is_ready: bool,
}

#[derive(Default)]
struct Seen {
    confirmed: BTreeSet<u64>,
    delivered: Vec<u64>,
    open: Vec<u64>,
    redelivered: usize,
    refused: Vec<String>,
}

impl Side {
    fn new(address: &str, machine: Box<dyn Dialect>) -> Result<Self, Box<dyn Error>> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut side = Self {
            socket,
            machine,
            out: Vec::new(),
            is_ready: false,
        };
        side.machine.open(&mut side.out);
        Ok(side)
    }

    /// Writes and reads what can be written and read now. True if something was.
    fn turn(&mut self, seen: &mut Seen) -> Result<bool, Box<dyn Error>> {
        let mut moved = false;
        while !self.out.is_empty() {
            match self.socket.write(&self.out) {
                Ok(count) => {
                    self.out.drain(..count);
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut buffer = [0; 64 * 1024];
        match self.socket.read(&mut buffer) {
            Ok(0) => Err("the server closed the connection".into()),
            Ok(count) => {
                let ready = &mut self.is_ready;
                let mut heard = |heard: Heard<'_>| note(heard, seen, ready);
                self.machine
                    .received(&buffer[..count], &mut self.out, &mut heard)
                    .map_err(|fault| fault.0)?;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(moved),
            Err(error) => Err(error.into()),
        }
    }
}

fn note(heard: Heard<'_>, seen: &mut Seen, is_ready: &mut bool) {
    match heard {
        Heard::Ready => *is_ready = true,
        Heard::Confirmed { tag, .. } => {
            assert!(seen.confirmed.insert(tag), "{tag} is confirmed twice");
        }
        Heard::Refused { tag, why } => seen.refused.push(format!("{tag:?}: {why}")),
        Heard::Delivered {
            payload,
            handle,
            redelivered,
        } => {
            let number = payload
                .first_chunk()
                .map(|bytes| u64::from_be_bytes(*bytes));
            seen.delivered.push(number.unwrap_or(u64::MAX));
            seen.open.push(handle);
            seen.redelivered += usize::from(redelivered);
        }
        Heard::Blocked(_) => {}
    }
}

type Machines = (Box<dyn Dialect>, Box<dyn Dialect>);

fn machines(protocol: &str, shape: Shape, mode: &str) -> Result<Machines, Box<dyn Error>> {
    if protocol == "nats" {
        let setup = |connection: &str| nats::Setup {
            stream: "s".to_owned(),
            subject: "s.messages".to_owned(),
            shape,
            keeping: match mode {
                "memory" => nats::Keeping::Memory,
                "later" => nats::Keeping::FileLater,
                _ => nats::Keeping::File,
            },
            connection: connection.to_owned(),
            login: None,
        };
        let reading = match shape {
            Shape::Queue => nats::Reading::Shared {
                consumer: "readers".to_owned(),
                unsettled_max: 512,
                ack_wait_ns: None,
            },
            Shape::Stream => nats::Reading::Ordered,
        };
        let writer = nats::Writer::new(setup("w"), mode != "unconfirmed")?;
        return Ok((
            Box::new(writer),
            Box::new(nats::Reader::new(setup("r"), reading, 512)?),
        ));
    }
    if protocol == "kafka" {
        return kafka_machines(shape, mode);
    }
    let setup = |version| resp::Setup {
        key: "s".to_owned(),
        version,
        login: None,
    };
    let confirm = match mode {
        "unconfirmed" => resp::Confirm::Never,
        "fsync" => resp::Confirm::Fsync,
        _ => resp::Confirm::Reply,
    };
    let reading = match shape {
        Shape::Queue => resp::Reading::Group {
            group: "g".to_owned(),
            consumer: "r".to_owned(),
            deletes: true,
        },
        Shape::Stream => resp::Reading::Own,
    };
    let writer = resp::Writer::new(setup(resp::Version::Resp2), confirm)?;
    let reader = resp::Reader::new(setup(resp::Version::Resp3), reading, 512)?;
    Ok((Box::new(writer), Box::new(reader)))
}

fn kafka_machines(shape: Shape, mode: &str) -> Result<Machines, Box<dyn Error>> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let setup = kafka::Setup {
        topic: "s".to_owned(),
        partitions: 1,
        syncs_each: mode == "fsync",
        began_ms: i64::try_from(since_1970.as_millis())?,
    };
    let reading = match shape {
        Shape::Queue => kafka::Reading::Shared {
            group: "g".to_owned(),
            number: 0,
            readers: 1,
        },
        Shape::Stream => kafka::Reading::Every,
    };
    let writer = kafka::Writer::new(setup.clone(), 0, mode != "unconfirmed")?;
    let reader = kafka::Reader::new(setup, reading, 512)?;
    Ok((Box::new(writer), Box::new(reader)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, address, shape, mode, count] = &arguments[..] else {
        return Err("wants: nats|resp|kafka ADDRESS queue|stream MODE COUNT".into());
    };
    let shape = if shape == "queue" {
        Shape::Queue
    } else {
        Shape::Stream
    };
    let count: u64 = count.parse()?;
    let confirms = mode != "unconfirmed";
    let (writer, reader) = machines(protocol, shape, mode)?;
    let mut seen = Seen::default();
    let (mut writer, mut reader) = (Side::new(address, writer)?, Side::new(address, reader)?);
    let mut next = 0;
    let mut body = vec![b'x'; 1024];
    let (begin, mut last) = (Instant::now(), Instant::now());
    let is_over = |seen: &Seen| {
        seen.delivered.len() as u64 >= count && (!confirms || seen.confirmed.len() as u64 >= count)
    };
    while !is_over(&seen) {
        let mut moved = reader.turn(&mut seen)?;
        let handles = std::mem::take(&mut seen.open);
        if !handles.is_empty() {
            reader.machine.settle(&mut reader.out, &handles);
        }
        reader.machine.flush(&mut reader.out);
        let done = if confirms {
            seen.confirmed.len()
        } else {
            seen.delivered.len()
        };
        let window_end = count.min((done + WINDOW) as u64);
        while writer.is_ready && reader.is_ready && next < window_end {
            body[..8].copy_from_slice(&next.to_be_bytes());
            writer.machine.publish(&mut writer.out, &body, next);
            next += 1;
        }
        writer.machine.flush(&mut writer.out);
        moved |= writer.turn(&mut seen)?;
        if moved {
            last = Instant::now();
        } else if last.elapsed() > PATIENCE {
            println!("nothing happens any more");
            break;
        }
    }
    let took_ms = begin.elapsed().as_millis();
    // Settlements that wait behind a read go out with its end.
    let end = Instant::now();
    while end.elapsed() < Duration::from_millis(500) {
        reader.turn(&mut seen)?;
        reader.machine.flush(&mut reader.out);
    }
    report(count, &seen, took_ms);
    Ok(())
}

fn report(count: u64, seen: &Seen, took_ms: u128) {
    let in_order = seen.delivered.iter().copied().eq(0..count);
    println!(
        "{count} published, {} confirmed, {} delivered ({}), {} redelivered, {} refused, {took_ms} ms",
        seen.confirmed.len(),
        seen.delivered.len(),
        if in_order {
            "once and in order"
        } else {
            "NOT once and in order"
        },
        seen.redelivered,
        seen.refused.len(),
    );
    for why in seen.refused.iter().take(3) {
        println!("refused {why}");
    }
}
