//! What requests cost the client: small and larger answers, and requests with a body.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_workload::calibrate::{
    After, Answers, Flow, Messages, Opening, Server, Sessions, Speaker,
};
use plimsoll_workload::{Job, Plan, Value, Values, Work};

use crate::expect::PATTERN;
use crate::h1::{RequestEvent, RequestReader, answer};
use crate::parameters::PARAMETERS;
use crate::plan::{HttpPlan, REQUESTS_PER_SECOND};

/// Connections on which the costs are measured.
const USUAL_CONNECTIONS: u32 = 100;
/// Time between two requests of a connection: long enough that its answer is there before the next one is due.
const PERIOD_NS: u64 = 2 * NS_PER_MS;
/// Time between two looks of the sink.
const PACE: Duration = Duration::from_millis(1);
/// The host of a bare loop's requests: as long as the address of a sink.
const HOST: &str = "127.0.0.1:65535";

/// All works, in the order of the report.
pub(crate) static WORKS: [&dyn Work; 3] = [&SMALL, &LARGER, &POST];

const SMALL: Requests = Requests {
    name: "GET 2 B",
    test: "rate",
    body_bytes: 2,
};
const LARGER: Requests = Requests {
    name: "GET 4 KiB",
    test: "rate",
    body_bytes: 4_096,
};
const POST: Requests = Requests {
    name: "POST 1 KiB",
    test: "post",
    body_bytes: 1_024,
};

/// Requests of one kind over connections that stay open.
#[derive(Debug)]
struct Requests {
    name: &'static str,
    test: &'static str,
    body_bytes: u64,
}

impl Requests {
    fn plan(&self) -> HttpPlan {
        let values = Values::default()
            .with("test", Value::Word(self.test.to_owned()))
            .with("body_bytes", Value::Whole(self.body_bytes));
        HttpPlan::new(values.or_usual(&PARAMETERS))
            .unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"))
    }

    fn posts(&self) -> bool {
        self.test == "post"
    }

    /// A request as it goes on the wire.
    fn request(&self) -> Vec<u8> {
        let plan = self.plan();
        let to = Endpoint {
            host: HOST.to_owned(),
            path: plan.told().path.into_owned(),
            headers: Vec::new(),
        };
        let template = plan.template(&to);
        let template =
            template.unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"));
        let mut request = Vec::new();
        template.append(0, &mut request);
        request.extend_from_slice(template.shared_body());
        request
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
        let each = u32::try_from(NS_PER_S / PERIOD_NS).unwrap_or(u32::MAX);
        amount.saturating_mul(each)
    }

    fn message_bytes(&self) -> Option<usize> {
        usize::try_from(self.body_bytes).ok()
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CONNECTIONS
    }

    fn flow(&self, amount: u32) -> Flow {
        Flow::Messages(Messages {
            connections: amount,
            period_ns: PERIOD_NS,
            frame: self.request(),
            share_a_write: false,
            answers: Answers::Read(Opening {
                request: self.request(),
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
        let answer = (!self.posts()).then(|| Arc::from(ok(&self.body())));
        let body_bytes = self.body_bytes;
        Server::new(PACE, move || Sink {
            reader: RequestReader::new(),
            answer: answer.clone(),
            sum: crc32fast::Hasher::new(),
            body_bytes,
        })
    }

    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions {
        let plan = self.plan();
        let path = plan.told().path.into_owned();
        let job = Job {
            load: self.load(amount),
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
        for work in [&SMALL, &LARGER, &POST] {
            let Server { mut speakers, .. } = work.server();
            let mut out = Vec::new();
            let after = speakers().heard(&mut work.request(), &mut out);
            assert_eq!(after, After::GoOn);
            let Flow::Messages(Messages {
                answers: Answers::Read(opening),
                ..
            }) = work.flow(1)
            else {
                panic!("{} is read", work.name);
            };
            assert!(out.ends_with(opening.answer_end), "{}", work.name);
        }
    }

    #[test]
    fn a_flow_makes_its_load() {
        for work in WORKS {
            let flow = work.flow(25);
            assert!((flow.per_second() - f64::from(work.load(25))).abs() < 1e-6);
        }
    }
}
