//! What requests cost the client: small and larger answers, requests with a body, a connection for each request, and
//! HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_workload::calibrate::{
    After, Answers, Connections, Flow, Messages, Number, Opening, Server, Sessions, Speaker,
};
use plimsoll_workload::{Job, Plan, Value, Values, Work};

use crate::check::Protocol;
use crate::expect::PATTERN;
use crate::h1::{RequestEvent, RequestReader, answer};
use crate::h2;
use crate::load::Test;
use crate::parameters::PARAMETERS;
use crate::plan::{HttpPlan, REQUESTS_PER_SECOND};

/// Connections on which the costs are measured.
const USUAL_CONNECTIONS: u32 = 100;
/// Time between two requests of a connection: long enough that its answer is there before the next one is due.
const PERIOD_NS: u64 = 2 * NS_PER_MS;
/// The same where each request has its own connection.
const CONNECT_PERIOD_NS: u64 = 50 * NS_PER_MS;
/// The same where a connection has several requests at once. So many are under way while the sink does not look, but not
/// as many as a connection takes.
const STREAMS_PERIOD_NS: u64 = NS_PER_MS / 4;
/// How long the bare loop leaves a connection open: several looks of the sink.
const LINGER: Duration = Duration::from_millis(5);
/// Where a frame of HTTP/2 has the number of its stream.
const STREAM_AT: usize = 5;
/// Time between two looks of the sink.
const PACE: Duration = Duration::from_millis(1);
/// The host of a bare loop's requests: as long as the address of a sink.
const HOST: &str = "127.0.0.1:65535";

/// All works, in the order of the report.
pub(crate) static WORKS: [&dyn Work; 5] = [&SMALL, &LARGER, &POST, &CONNECT, &STREAMS];

const SMALL: Requests = Requests {
    name: "GET 2 B",
    test: Test::Rate,
    protocol: Protocol::H1,
    body_bytes: 2,
    period_ns: PERIOD_NS,
};
const LARGER: Requests = Requests {
    name: "GET 4 KiB",
    body_bytes: 4_096,
    ..SMALL
};
const POST: Requests = Requests {
    name: "POST 1 KiB",
    test: Test::Post,
    body_bytes: 1_024,
    ..SMALL
};
const CONNECT: Requests = Requests {
    name: "connect",
    test: Test::Connect,
    period_ns: CONNECT_PERIOD_NS,
    ..SMALL
};
const STREAMS: Requests = Requests {
    name: "h2c, 10 streams",
    protocol: Protocol::H2c,
    period_ns: STREAMS_PERIOD_NS,
    ..SMALL
};

/// Requests of one kind.
#[derive(Debug)]
struct Requests {
    name: &'static str,
    test: Test,
    protocol: Protocol,
    body_bytes: u64,
    /// Time between two requests of a connection, on average.
    period_ns: u64,
}

impl Requests {
    fn plan(&self) -> HttpPlan {
        let values = Values::default()
            .with("test", Value::Word(self.test.name().to_owned()))
            .with("protocol", Value::Word(self.protocol.name().to_owned()))
            .with("body_bytes", Value::Whole(self.body_bytes));
        HttpPlan::new(values.or_usual(&PARAMETERS))
            .unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"))
    }

    /// A request of HTTP/1.1 as it goes on the wire.
    fn request(&self) -> Vec<u8> {
        let template = self.plan().template(&self.endpoint());
        let template =
            template.unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"));
        let mut request = Vec::new();
        template.append(0, &mut request);
        request.extend_from_slice(template.shared_body());
        request
    }

    /// What opens a connection of HTTP/2 and asks for the first time on it, and what then asks again. That is one frame:
    /// the server knows all its fields.
    fn first_and_next(&self) -> [Vec<u8>; 2] {
        let template = self.plan().h2_template(&self.endpoint());
        let template =
            template.unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"));
        let mut client = h2::Client::new(Arc::new([template]));
        [0, 1].map(|number| {
            client.open(0, number);
            let mut out = Vec::new();
            client.take_output(&mut out);
            out
        })
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            host: HOST.to_owned(),
            path: self.plan().told().path.into_owned(),
            headers: Vec::new(),
        }
    }

    /// The body of the answer to a GET.
    fn body(&self) -> Vec<u8> {
        let bytes = usize::try_from(self.body_bytes).unwrap_or_default();
        match bytes {
            2 => b"ok".to_vec(),
            _ => PATTERN.iter().copied().cycle().take(bytes).collect(),
        }
    }
}

impl Work for Requests {
    fn name(&self) -> &'static str {
        self.name
    }

    fn unit(&self) -> LoadUnit {
        REQUESTS_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        let each = u32::try_from(NS_PER_S / self.period_ns).unwrap_or(u32::MAX);
        amount.saturating_mul(each)
    }

    fn message_bytes(&self) -> Option<usize> {
        usize::try_from(self.body_bytes).ok()
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CONNECTIONS
    }

    /// Several requests at once go out on an eighth of the connections, so all kinds of requests on connections that stay
    /// open come at about the same rate.
    fn amount(&self, sessions: u32) -> u32 {
        match self.protocol {
            Protocol::H1 => sessions,
            Protocol::H2c => (sessions / 8).max(1),
        }
    }

    fn flow(&self, amount: u32) -> Flow {
        if self.test == Test::Connect {
            return Flow::Connections(Connections {
                per_s: self.load(amount),
                request: self.request(),
                // The server closes after its answer, and nobody asks it to.
                close: Vec::new(),
                linger: LINGER,
                farewell: Duration::ZERO,
            });
        }
        let (request, frame, number) = match self.protocol {
            Protocol::H1 => {
                let request = self.request();
                (request.clone(), request, None)
            }
            Protocol::H2c => {
                let [first, next] = self.first_and_next();
                let number = Number {
                    at: STREAM_AT,
                    first: 3,
                    step: 2,
                };
                (first, next, Some(number))
            }
        };
        Flow::Messages(Messages {
            connections: amount,
            period_ns: self.period_ns,
            frame,
            number,
            share_a_write: false,
            answers: Answers::Read(Opening {
                request,
                // The ends of all bodies: of `ok`, of the pattern, and of a sum.
                answer_end: match self.body_bytes {
                    2 => b"ok",
                    4_096 => b"ef",
                    _ => b"24",
                },
            }),
        })
    }

    fn server(&self) -> Server {
        if self.protocol == Protocol::H2c {
            let answers: Arc<[_]> = Arc::new([h2::Answer::new(200, &[], &self.body())]);
            return Server::new(PACE, move || H2Sink {
                server: h2::Server::new(Arc::clone(&answers)),
                complete: Vec::new(),
                out: Vec::new(),
            });
        }
        let answer = (self.test != Test::Post).then(|| Arc::from(ok(&self.body())));
        let (body_bytes, closes) = (self.body_bytes, self.test == Test::Connect);
        Server::new(PACE, move || Sink {
            reader: RequestReader::new(),
            answer: answer.clone(),
            sum: crc32fast::Hasher::new(),
            body_bytes,
            closes,
        })
    }

    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions {
        let plan = self.plan();
        let path = plan.told().path.into_owned();
        let job = Job {
            load: self.load(amount),
            seed: 0,
            to: Endpoint { path, ..to },
            started: true,
        };
        let machines = plan.machines(&job, profile);
        Sessions {
            machines: machines.unwrap_or_else(|refusal| unreachable!("{refusal}")),
            count: amount,
        }
    }
}

/// A connection of the sink.
struct Sink {
    reader: RequestReader,
    /// What it answers; `None` if that is the sum of the request's body.
    answer: Option<Arc<[u8]>>,
    sum: crc32fast::Hasher,
    body_bytes: u64,
    /// Whether it closes after an answer.
    closes: bool,
}

impl Speaker for Sink {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let (answer, sum) = (&self.answer, &mut self.sum);
        let read = self.reader.received(bytes, |event| match (event, answer) {
            (RequestEvent::Body(bytes), None) => sum.update(bytes),
            (RequestEvent::End, None) => {
                let sum = std::mem::take(sum).finalize();
                let text = format!("{sum:08x} {}", self.body_bytes);
                out.extend_from_slice(&ok(text.as_bytes()));
            }
            (RequestEvent::End, Some(answer)) => out.extend_from_slice(answer),
            _ => {}
        });
        match read {
            Ok(()) if self.closes && !out.is_empty() => After::Close,
            Ok(()) => After::GoOn,
            Err(_) => After::Close,
        }
    }
}

/// The same with HTTP/2.
struct H2Sink {
    server: h2::Server,
    /// Streams whose request is complete.
    complete: Vec<u32>,
    out: Vec<u8>,
}

impl Speaker for H2Sink {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let complete = &mut self.complete;
        let read = self.server.received(bytes, |event| {
            if let h2::RequestEvent::End { stream } = event {
                complete.push(stream);
            }
        });
        for stream in self.complete.drain(..) {
            self.server.answer(stream, 0, false);
        }
        self.server.take_output(&mut self.out);
        out.extend_from_slice(&self.out);
        match read {
            Ok(()) => After::GoOn,
            Err(_) => After::Close,
        }
    }
}

/// An answer with this body.
fn ok(body: &[u8]) -> Vec<u8> {
    answer(200, "OK", &[], body, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sink_answers_as_the_bare_loop_expects() {
        for work in [&SMALL, &LARGER, &POST, &STREAMS] {
            let Server { mut speakers, .. } = work.server();
            let Flow::Messages(Messages {
                answers: Answers::Read(opening),
                ..
            }) = work.flow(1)
            else {
                panic!("{} is read", work.name);
            };
            let mut out = Vec::new();
            let after = speakers().heard(&mut opening.request.clone(), &mut out);
            assert_eq!(after, After::GoOn);
            assert!(out.ends_with(opening.answer_end), "{}", work.name);
        }
    }

    #[test]
    fn a_connection_of_one_request_is_closed_by_the_sink() {
        let Server { mut speakers, .. } = CONNECT.server();
        let Flow::Connections(mut flow) = CONNECT.flow(1) else {
            panic!("connections");
        };
        let mut sink = speakers();
        let (begin, end) = flow.request.split_at_mut(9);
        let mut out = Vec::new();
        assert_eq!(sink.heard(begin, &mut out), After::GoOn);
        assert!(out.is_empty());
        assert_eq!(sink.heard(end, &mut out), After::Close);
        assert!(out.ends_with(b"ok"));
    }

    /// A frame that the bare loop made ready is a request to the server, with every number that the loop gives it.
    #[test]
    fn frames_with_numbers_are_requests() {
        let Server { mut speakers, .. } = STREAMS.server();
        let Flow::Messages(mut flow) = STREAMS.flow(1) else {
            panic!("messages");
        };
        let Answers::Read(mut opening) = flow.answers else {
            panic!("read");
        };
        let mut sink = speakers();
        let mut out = Vec::new();
        sink.heard(&mut opening.request, &mut out);
        let number = flow.number.expect("a stream");
        for request in 0..100 {
            let stream = (number.first + request * number.step).to_be_bytes();
            flow.frame[number.at..][..4].copy_from_slice(&stream);
            out.clear();
            assert_eq!(sink.heard(&mut flow.frame, &mut out), After::GoOn);
            // The head of the answer has the stream, and the body ends it.
            assert_eq!(out[STREAM_AT..][..4], stream);
            assert!(out.ends_with(opening.answer_end));
        }
        // Nothing but references to fields that the server knows.
        assert!(flow.frame.len() < 16, "{}", flow.frame.len());
    }

    #[test]
    fn a_flow_makes_its_load() {
        for work in WORKS {
            let flow = work.flow(25);
            assert!((flow.per_second() - f64::from(work.load(25))).abs() < 1e-6);
        }
    }
}
