//! Against a broker that runs: `PLIMSOLL_AMQP=127.0.0.1:5672 cargo test -p plimsoll-workload-broker -- --ignored amqp`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Amqp, AmqpConfig, Declare, Offset, QueueKind};
use crate::dialect::{Dialect, Heard, Role};

/// What was heard, with bytes of its own.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    pub(crate) is_ready: bool,
    pub(crate) confirmed: Vec<u64>,
    pub(crate) refused: Vec<String>,
    pub(crate) delivered: Vec<Vec<u8>>,
}

/// A client with a blocking socket.
pub(crate) struct Live<D> {
    pub(crate) client: D,
    pub(crate) ears: Ears,
    socket: TcpStream,
    last_tag: u64,
}

impl<D: Dialect> Live<D> {
    /// Connects to the address in this environment variable, and waits until messages can go.
    pub(crate) fn open(variable: &str, mut client: D) -> Self {
        let address = std::env::var(variable).expect("the address of a broker");
        let socket = TcpStream::connect(address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut out = Vec::new();
        client.open(&mut out);
        let mut live = Self {
            client,
            ears: Ears::default(),
            socket,
            last_tag: 0,
        };
        live.write(&out);
        live.read_until(|it| it.ears.is_ready);
        live
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub(crate) fn publish(&mut self, body: &[u8]) {
        self.publish_all(&[body]);
    }

    /// Publishes several messages by one write.
    pub(crate) fn publish_all(&mut self, bodies: &[impl AsRef<[u8]>]) {
        let mut out = Vec::new();
        for body in bodies {
            self.last_tag += 1;
            self.client.publish(&mut out, body.as_ref(), self.last_tag);
        }
        self.client.flush(&mut out);
        self.write(&out);
    }

    /// Reads until this holds, and settles at once what arrives.
    pub(crate) fn read_until(&mut self, mut holds: impl FnMut(&Self) -> bool) {
        let mut buffer = vec![0; 65_536];
        while !holds(self) {
            let read = self.socket.read(&mut buffer).unwrap();
            assert!(read > 0, "the broker closed the connection");
            let (mut out, mut handles) = (Vec::new(), Vec::new());
            let ears = &mut self.ears;
            self.client
                .received(&buffer[..read], &mut out, &mut |heard| match heard {
                    Heard::Ready => ears.is_ready = true,
                    Heard::Confirmed { tag, up_to: true } => {
                        let from = ears.confirmed.last().map_or(1, |last| last + 1);
                        ears.confirmed.extend(from..=tag);
                    }
                    Heard::Confirmed { tag, .. } => ears.confirmed.push(tag),
                    Heard::Refused { why, .. } => ears.refused.push(why.to_owned()),
                    Heard::Delivered {
                        payload, handle, ..
                    } => {
                        ears.delivered.push(payload.to_vec());
                        handles.push(handle);
                    }
                    Heard::Blocked(_) => {}
                })
                .unwrap();
            self.client.settle(&mut out, &handles);
            self.client.flush(&mut out);
            self.write(&out);
        }
    }
}

/// Bodies of several sizes, each different.
pub(crate) fn bodies() -> Vec<Vec<u8>> {
    (0..100_u8)
        .map(|number| {
            let size = if number % 25 == 24 { 300_000 } else { 1024 };
            (0..size)
                .map(|at| number.wrapping_mul(31) ^ u8::try_from(at % 251).unwrap())
                .collect()
        })
        .collect()
}

#[test]
#[ignore = "needs a broker"]
fn amqp_carries_messages_through_every_kind_of_queue() {
    for kind in [
        QueueKind::Classic,
        QueueKind::Transient,
        QueueKind::Quorum,
        QueueKind::Stream,
    ] {
        let queue = format!("plimsoll-{kind:?}-{}", std::process::id());
        let open = |role, declare| {
            let mut config = AmqpConfig::new(role, &queue, kind);
            config.offset = Offset::First;
            config.declare = declare;
            Live::open("PLIMSOLL_AMQP", Amqp::new(config).unwrap())
        };
        let mut writer = open(Role::Writer, Declare::Make);
        println!("{kind:?}, version {:?}", writer.client.broker_version());
        for body in bodies() {
            writer.publish(&body);
        }
        writer.read_until(|it| it.ears.confirmed.len() == bodies().len());
        assert!(writer.ears.refused.is_empty());
        let depth = |prober: &mut Live<Amqp>| {
            let mut out = Vec::new();
            prober.client.ask_depth(&mut out);
            prober.write(&out);
            prober.read_until(|it| it.client.depth().is_some());
            prober.client.depth()
        };
        println!("written: {:?}", depth(&mut writer));
        let mut reader = open(Role::Reader, Declare::Check);
        reader.read_until(|it| it.ears.delivered.len() == bodies().len());
        assert!(reader.ears.delivered == bodies(), "in order and unchanged");
        println!("read: {:?}", depth(&mut writer));
        for it in [&mut reader, &mut writer] {
            let mut out = Vec::new();
            it.client.close(&mut out);
            it.write(&out);
            it.read_until(|it| it.client.is_closed());
        }
    }
}

#[test]
#[ignore = "needs a broker"]
fn amqp_says_why_a_message_or_a_connection_is_refused() {
    let queue = format!("plimsoll-none-{}", std::process::id());
    let mut config = AmqpConfig::new(Role::Writer, &queue, QueueKind::Classic);
    config.declare = Declare::Trust;
    let mut writer = Live::open("PLIMSOLL_AMQP", Amqp::new(config.clone()).unwrap());
    writer.publish(b"to nowhere");
    writer.read_until(|it| !it.ears.confirmed.is_empty());
    assert_eq!(writer.ears.refused, ["312 NO_ROUTE"]);
    config.password = "wrong".to_owned();
    let refused = std::panic::catch_unwind(|| {
        Live::open("PLIMSOLL_AMQP", Amqp::new(config).unwrap());
    });
    assert!(refused.is_err(), "the panic above quotes ACCESS_REFUSED");
}
