//! A small server with JetStream for tests: one stream, any consumers, no files, no time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::{Keeping, Reader, Reading, Setup, Writer};
use crate::dialect::Shape;
use crate::rig::{Event, Peer, Server};

/// The server and all its connections.
#[derive(Default)]
pub(super) struct Toy {
    pub(super) lines: Vec<Line>,
    pub(super) stored: Vec<Vec<u8>>,
    pub(super) stream: Option<Value>,
    pub(super) consumers: BTreeMap<String, Consumer>,
    pub(super) acked: Vec<u64>,
    /// The next message is refused with this.
    pub(super) refuse: Option<Value>,
    /// This delivery of the next consumer does not reach its reader.
    pub(super) lose_delivery: Option<u64>,
    /// Answers have 11 words, as from a later server.
    pub(super) long_replies: bool,
}

#[derive(Default)]
pub(super) struct Line {
    held: Vec<u8>,
    out: Vec<u8>,
    subs: BTreeMap<u64, String>,
}

pub(super) struct Consumer {
    pub(super) config: Value,
    next: usize,
    deliveries: u64,
    again: VecDeque<usize>,
    waiting: VecDeque<(String, u64)>,
    pending: BTreeSet<u64>,
    pub(super) pulls: u64,
}

impl Server for Toy {
    fn connect(&mut self) -> usize {
        let info = json!({"server_id": "toy", "version": "2.12.0", "headers": true, "jetstream": true, "max_payload": 8_000_000});
        self.lines.push(Line {
            out: format!("INFO {info} \r\n").into_bytes(),
            ..Line::default()
        });
        self.lines.len() - 1
    }

    fn written(&mut self, line: usize) -> Vec<u8> {
        std::mem::take(&mut self.lines[line].out)
    }

    fn received(&mut self, line: usize, bytes: &[u8]) {
        self.lines[line].held.extend_from_slice(bytes);
        while let Some((words, payload)) = command(&mut self.lines[line].held) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.command(line, &words, &payload);
        }
        self.deliver();
    }
}

impl Toy {
    /// Appends raw bytes to a connection.
    pub(super) fn say(&mut self, line: usize, text: &str) {
        self.lines[line].out.extend_from_slice(text.as_bytes());
    }

    fn command(&mut self, line: usize, words: &[&str], payload: &[u8]) {
        match words {
            ["CONNECT", ..] | ["PONG"] => {}
            ["PING"] => self.say(line, "PONG\r\n"),
            ["SUB", subject, sid] => {
                let sid = sid.parse().unwrap();
                self.lines[line].subs.insert(sid, (*subject).to_owned());
            }
            ["UNSUB", sid] => {
                self.lines[line].subs.remove(&sid.parse().unwrap());
            }
            ["PUB", subject, _] => self.publish(subject, None, payload),
            ["PUB", subject, reply, _] => self.publish(subject, Some(reply), payload),
            other => panic!("the client says {other:?}"),
        }
    }

    fn publish(&mut self, subject: &str, reply: Option<&str>, payload: &[u8]) {
        let words: Vec<&str> = subject.split('.').collect();
        match &words[..] {
            ["$JS", "API", rest @ ..] => {
                let answer = self.request(rest, payload, reply.unwrap());
                if let Some(answer) = answer {
                    self.send(reply.unwrap(), None, answer.to_string().as_bytes());
                }
            }
            ["$JS", "ACK", rest @ ..] => {
                assert_eq!(payload, b"+ACK");
                let at = if rest.len() == 7 { 0 } else { 2 };
                let seq: u64 = rest[at + 3].parse().unwrap();
                let consumer = self.consumers.get_mut(rest[at + 1]).unwrap();
                assert!(consumer.pending.remove(&seq), "{seq} was not open");
                self.acked.push(seq);
            }
            _ => self.store(reply, payload),
        }
    }

    fn store(&mut self, reply: Option<&str>, payload: &[u8]) {
        let answer = match self.refuse.take() {
            Some(error) => json!({"error": error, "stream": "S", "seq": 0}).to_string(),
            None => {
                self.stored.push(payload.to_vec());
                // As the server writes it: with a space.
                format!("{{\"stream\":\"S\", \"seq\":{}}}", self.stored.len())
            }
        };
        if let Some(reply) = reply {
            self.send(reply, None, answer.as_bytes());
        }
    }

    fn request(&mut self, words: &[&str], body: &[u8], reply: &str) -> Option<Value> {
        let json = || serde_json::from_slice::<Value>(body).unwrap();
        match words {
            ["INFO"] => Some(json!({"type": "account", "memory": 0})),
            ["STREAM", "CREATE", "S"] => {
                let config = self.stream.get_or_insert_with(json);
                if *config == json() {
                    return Some(json!({"config": config, "state": {"messages": 0}}));
                }
                Some(json!({"error": {"code": 400, "err_code": 10058,
                    "description": "stream name already in use with a different configuration"}}))
            }
            ["STREAM", "INFO", "S"] => Some(json!({"config": self.stream, "state": {
                "messages": self.stored.len() - self.acked.len(), "bytes": 99, "last_seq": self.stored.len()}})),
            ["STREAM", "INFO", _] => Some(
                json!({"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}),
            ),
            ["STREAM", "DELETE", _] => Some(json!({"success": true})),
            ["CONSUMER", "CREATE", "S", name] => Some(self.create(name, &json()["config"])),
            ["CONSUMER", "INFO", "S", name] => {
                let consumer = &self.consumers[*name];
                Some(
                    json!({"num_pending": self.stored.len() - consumer.next, "num_ack_pending": consumer.pending.len(),
                    "num_redelivered": 0, "num_waiting": consumer.waiting.len()}),
                )
            }
            ["CONSUMER", "DELETE", "S", name] => {
                self.consumers.remove(*name);
                Some(json!({"success": true}))
            }
            ["CONSUMER", "MSG", "NEXT", "S", name] => {
                assert_eq!(json()["expires"], 30_000_000_000u64);
                let batch = json()["batch"].as_u64().unwrap();
                let consumer = self.consumers.get_mut(*name).unwrap();
                consumer.waiting.push_back((reply.to_owned(), batch));
                consumer.pulls += 1;
                None
            }
            other => panic!("the client asks {other:?}"),
        }
    }

    fn create(&mut self, name: &str, config: &Value) -> Value {
        let next = match config["deliver_policy"].as_str().unwrap() {
            "all" => 0,
            "new" => self.stored.len(),
            _ => usize::try_from(config["opt_start_seq"].as_u64().unwrap() - 1).unwrap(),
        };
        let consumer = self.consumers.entry(name.to_owned()).or_insert(Consumer {
            config: config.clone(),
            next,
            deliveries: 0,
            again: VecDeque::new(),
            waiting: VecDeque::new(),
            pending: BTreeSet::new(),
            pulls: 0,
        });
        assert_eq!(&consumer.config, config);
        json!({"name": name, "delivered": {"consumer_seq": consumer.deliveries, "stream_seq": consumer.next}})
    }

    /// Delivers message `seq` once more.
    pub(super) fn redeliver(&mut self, consumer: &str, seq: u64) {
        let consumer = self.consumers.get_mut(consumer).unwrap();
        consumer.again.push_back(usize::try_from(seq).unwrap());
        self.deliver();
    }

    /// Ends all pull requests, with what they still wanted.
    pub(super) fn expire(&mut self, status: &str, says_unused: bool) {
        let ended: Vec<(String, u64)> = self
            .consumers
            .values_mut()
            .flat_map(|consumer| std::mem::take(&mut consumer.waiting))
            .collect();
        for (reply, unused) in ended {
            let lines = if says_unused {
                format!("Nats-Pending-Messages: {unused}\r\nNats-Pending-Bytes: 0\r\n")
            } else {
                String::new()
            };
            self.status(&reply, &format!("{status}\r\n{lines}"));
        }
    }

    fn status(&mut self, subject: &str, lines: &str) {
        let block = format!("NATS/1.0 {lines}\r\n");
        let size = block.len();
        let (line, sid) = self.subscriber(subject).unwrap();
        self.say(
            line,
            &format!("HMSG {subject} {sid} {size} {size}\r\n{block}\r\n"),
        );
    }

    fn deliver(&mut self) {
        let mut sent = Vec::new();
        for (name, consumer) in &mut self.consumers {
            let max = consumer.config["max_ack_pending"]
                .as_u64()
                .unwrap_or(u64::MAX);
            while let Some((reply, batch)) = consumer.waiting.front_mut() {
                if consumer.pending.len() as u64 >= max && consumer.again.is_empty() {
                    break;
                }
                let (at, times) = match consumer.again.pop_front() {
                    Some(seq) => (seq - 1, 2),
                    None if consumer.next < self.stored.len() => {
                        consumer.next += 1;
                        (consumer.next - 1, 1)
                    }
                    None => break,
                };
                consumer.deliveries += 1;
                if consumer.config["ack_policy"] == "explicit" {
                    consumer.pending.insert(at as u64 + 1);
                }
                let domain = if self.long_replies { "_.hash." } else { "" };
                let end = if self.long_replies { ".more" } else { "" };
                let ack = format!(
                    "$JS.ACK.{domain}S.{name}.{times}.{}.{}.1626845015078897000.0{end}",
                    at + 1,
                    consumer.deliveries
                );
                if self.lose_delivery == Some(consumer.deliveries) {
                    self.lose_delivery = None;
                } else {
                    sent.push((reply.clone(), ack, at));
                }
                *batch -= 1;
                if *batch == 0 {
                    consumer.waiting.pop_front();
                }
            }
        }
        for (reply, ack, at) in sent {
            let payload = self.stored[at].clone();
            self.send(&reply, Some(&ack), &payload);
        }
    }

    fn subscriber(&self, subject: &str) -> Option<(usize, u64)> {
        self.lines.iter().enumerate().find_map(|(line, conn)| {
            conn.subs.iter().find_map(|(sid, pattern)| {
                let begin = pattern.strip_suffix('*').unwrap();
                let rest = subject.strip_prefix(begin)?;
                (!rest.contains('.')).then_some((line, *sid))
            })
        })
    }

    /// To whoever subscribed. A delivery has the stream's subject, not that of the subscription.
    fn send(&mut self, to: &str, reply: Option<&str>, payload: &[u8]) {
        let Some((line, sid)) = self.subscriber(to) else {
            return;
        };
        let head = match reply {
            Some(reply) => format!("MSG orders {sid} {reply} {}\r\n", payload.len()),
            None => format!("MSG {to} {sid} {}\r\n", payload.len()),
        };
        let out = &mut self.lines[line].out;
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(payload);
        out.extend_from_slice(b"\r\n");
    }
}

/// Takes the first whole command off the bytes: its words and its payload.
fn command(held: &mut Vec<u8>) -> Option<(Vec<String>, Vec<u8>)> {
    let end = held.windows(2).position(|two| two == b"\r\n")?;
    let line = String::from_utf8(held[..end].to_vec()).unwrap();
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let size: Option<usize> = match words[0].as_str() {
        "PUB" => words.last().map(|size| size.parse().unwrap()),
        _ => None,
    };
    let begin = end + 2;
    let Some(size) = size else {
        held.drain(..begin);
        return Some((words, Vec::new()));
    };
    let whole = begin + size + 2;
    if held.len() < whole {
        return None;
    }
    assert_eq!(&held[begin + size..whole], b"\r\n", "{line}");
    let payload = held[begin..begin + size].to_vec();
    held.drain(..whole);
    Some((words, payload))
}

pub(super) fn setup(shape: Shape, connection: &str) -> Setup {
    Setup {
        stream: "S".to_owned(),
        subject: "orders".to_owned(),
        shape,
        keeping: Keeping::File,
        connection: connection.to_owned(),
        login: None,
    }
}

pub(super) fn shared(unsettled_max: u32) -> Reading {
    Reading::Shared {
        consumer: "readers".to_owned(),
        unsettled_max,
        ack_wait_ns: None,
    }
}

pub(super) fn writer(toy: &mut Toy, shape: Shape, confirms: bool) -> Peer<Writer> {
    let mut peer = Peer::new(toy, Writer::new(setup(shape, "w"), confirms).unwrap());
    assert_eq!(peer.talk(toy).unwrap(), [Event::Ready]);
    peer
}

pub(super) fn reader(
    toy: &mut Toy,
    shape: Shape,
    name: &str,
    reading: Reading,
    prefetch: u32,
) -> Peer<Reader> {
    let machine = Reader::new(setup(shape, name), reading, prefetch).unwrap();
    let mut peer = Peer::new(toy, machine);
    assert_eq!(peer.talk(toy).unwrap(), [Event::Ready]);
    peer
}
