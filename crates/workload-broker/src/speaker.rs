//! Asks a broker whether it is ready, and at the end what it still holds.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plimsoll_core::session::Endpoint;
use plimsoll_workload::{Findings, Speaker};

use crate::dialect::{Dialect, Heard};
use crate::link::Links;
use crate::load::{BrokerLoad, Spoken};
use crate::{nats, resp};

/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The messages that a broker still holds, in what it says at the end.
pub(crate) const MESSAGES: &str = "messages";

/// Talks to a broker over a connection of its own.
#[derive(Debug)]
pub(crate) struct Asks {
    load: BrokerLoad,
}

impl Asks {
    pub(crate) fn new(load: BrokerLoad) -> Self {
        Self { load }
    }
}

impl Speaker for Asks {
    /// A broker is ready when it lets a writer in and has made a queue or stream for it.
    fn is_ready(&self, stream: &mut TcpStream) -> Result<(), String> {
        let nowhere = Endpoint {
            host: String::new(),
            path: "/0".to_owned(),
            headers: Vec::new(),
        };
        let links = Links::new(&self.load, &nowhere, 1).map_err(|why| why.to_string())?;
        let mut writer = links.writer(0).map_err(|why| why.to_string())?;
        let mut out = Vec::new();
        writer.open(&mut out);
        exchange(stream, out, |bytes, out| {
            let mut ready = false;
            let taken = writer.received(bytes, out, &mut |heard| ready |= heard == Heard::Ready);
            taken.map_err(|fault| fault.0)?;
            if ready {
                writer.close(out);
            }
            Ok(ready.then_some(()))
        })
    }

    fn account(&self, stream: &mut TcpStream, to: &Endpoint) -> Findings {
        let Ok(links) = Links::new(&self.load, to, 1) else {
            return Findings::Null;
        };
        let held = match links.spoken() {
            Spoken::Nats => nats_messages(stream, &links),
            Spoken::Resp => resp_messages(stream, &links),
            Spoken::Amqp => amqp_messages(stream, &links),
            Spoken::Kafka => kafka_messages(stream, &links),
            // mosquitto counts only over all topics, and Fibril has no question for it.
            Spoken::Mqtt | Spoken::Fibril => return Findings::Null,
        };
        match held {
            Ok(messages) => serde_json::json!({ MESSAGES: messages }),
            Err(why) => serde_json::json!({ "failed": why }),
        }
    }
}

fn nats_messages(stream: &mut TcpStream, links: &Links) -> Result<u64, String> {
    let setup = links.nats("account");
    let asker = nats::Asker::new(&setup.connection, setup.login.clone());
    let mut asker = asker.map_err(|why| why.to_string())?;
    exchange(stream, Vec::new(), |bytes, out| {
        let (mut ready, mut found) = (false, Ok(None));
        let taken = asker.received(bytes, out, &mut |told| match told {
            nats::Told::Ready => ready = true,
            nats::Told::Stream(depth) => found = Ok(Some(depth.messages)),
            nats::Told::Failed(why) => found = Err(why),
            nats::Told::Consumer(_) | nats::Told::Done => {}
        });
        taken.map_err(|fault| fault.0)?;
        if ready {
            let question = nats::Question::Stream {
                stream: setup.stream.clone(),
            };
            asker.ask(out, question).map_err(|why| why.to_string())?;
        }
        found
    })
}

fn resp_messages(stream: &mut TcpStream, links: &Links) -> Result<u64, String> {
    let mut asker = resp::Asker::new(links.resp());
    let mut out = Vec::new();
    asker.open(&mut out);
    asker.ask(&mut out, resp::Question::Length);
    exchange(stream, out, |bytes, _| {
        let mut found = Ok(None);
        let taken = asker.received(bytes, &mut |told| match told {
            resp::Told::Length(length) => found = Ok(Some(length)),
            resp::Told::Failed(why) => found = Err(why),
            _ => {}
        });
        taken.map_err(|fault| fault.0)?;
        found
    })
}

fn amqp_messages(stream: &mut TcpStream, links: &Links) -> Result<u64, String> {
    let mut asker = links.amqp_asker().map_err(|why| why.to_string())?;
    let mut out = Vec::new();
    asker.open(&mut out);
    exchange(stream, out, |bytes, out| {
        let mut ready = false;
        let taken = asker.received(bytes, out, &mut |heard| ready |= heard == Heard::Ready);
        taken.map_err(|fault| fault.0)?;
        if !ready {
            return Ok(None);
        }
        let depth = asker
            .depth()
            .ok_or("the broker did not say the queue's depth")?;
        asker.close(out);
        Ok(Some(u64::from(depth.ready)))
    })
}

fn kafka_messages(stream: &mut TcpStream, links: &Links) -> Result<u64, String> {
    let mut asker = links.kafka_asker().map_err(|why| why.to_string())?;
    let mut out = Vec::new();
    asker.open(&mut out);
    exchange(stream, out, |bytes, out| {
        asker.received(bytes, out).map_err(|fault| fault.0)
    })
}

/// Writes, reads and lets `take` see what came, until it has found what it looks for.
fn exchange<T>(
    stream: &mut TcpStream,
    mut out: Vec<u8>,
    mut take: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Option<T>, String>,
) -> Result<T, String> {
    let until = Instant::now() + ANSWER_WITHIN;
    let mut buffer = [0; 16 << 10];
    loop {
        stream.write_all(&out).map_err(|error| error.to_string())?;
        out.clear();
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Err("the broker closed the connection".to_owned()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("no answer: {error}")),
        };
        if let Some(found) = take(&buffer[..count], &mut out)? {
            // Whether the broker hears our good-bye changes nothing.
            let _ = stream.write_all(&out);
            return Ok(found);
        }
        if Instant::now() > until {
            return Err("the broker answers, and is not ready".to_owned());
        }
    }
}
