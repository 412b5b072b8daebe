//! Text in, audio out: what is asked of each provider, and what becomes of it.

use plimsoll_workload_voice::marks::{ReplyMark, SpeakMark};
use plimsoll_workload_voice::script::BLOCKS_PER_CHAR;
use serde_json::Value;
use tokio::time::Instant;

use super::outage::{Cut, Wait};
use super::reply::Reply;
use super::{Fate, SILENT, Shared};
use crate::faults::Fault;
use crate::profile::{Of, Provider, What};
use crate::stats::End;
use plimsoll_mock_server::http::{Answer, Connection, Gone};
use plimsoll_mock_server::request::Request;

/// What a request must say, beside the text. The mock has no other audio than 16-bit samples at 24 kHz.
struct Form {
    /// Where the text is.
    text: &'static str,
    /// Parameters and their values.
    parameters: &'static [(&'static str, &'static str)],
    /// Places in the body, and what must be there; an empty value stands for any text.
    fields: &'static [(&'static str, &'static str)],
}

const fn form(provider: Provider) -> Form {
    match provider {
        Provider::DeepgramStt | Provider::DeepgramTts => Form {
            text: "/text",
            parameters: &[("encoding", "linear16"), ("sample_rate", "24000")],
            fields: &[],
        },
        Provider::CartesiaTts => Form {
            text: "/transcript",
            parameters: &[],
            fields: &[
                ("/model_id", ""),
                ("/voice/id", ""),
                ("/output_format/container", "raw"),
                ("/output_format/encoding", "pcm_s16le"),
                ("/output_format/sample_rate", "24000"),
            ],
        },
        Provider::ElevenlabsTts => Form {
            text: "/text",
            parameters: &[("output_format", "pcm_24000")],
            fields: &[],
        },
        Provider::OpenaiTts => Form {
            text: "/input",
            parameters: &[],
            fields: &[("/model", ""), ("/voice", ""), ("/response_format", "pcm")],
        },
    }
}

/// The text that is to be spoken, or what is wrong with the request, in a line.
fn text_of(provider: Provider, request: &Request) -> Result<String, String> {
    let form = form(provider);
    for (name, expected) in form.parameters {
        if request.parameter(name) != Some(expected) {
            return Err(format!("give {name}={expected} in the address\n"));
        }
    }
    let body: Value = serde_json::from_slice(&request.body).map_err(|_| "give a body of JSON\n")?;
    for (place, expected) in form.fields {
        let right = match body.pointer(place) {
            Some(Value::String(text)) => {
                !text.is_empty() && (expected.is_empty() || text == expected)
            }
            Some(Value::Number(number)) => number.to_string() == *expected,
            _ => false,
        };
        if !right {
            let expected = if expected.is_empty() {
                "a text"
            } else {
                expected
            };
            return Err(format!("give {expected} at {place} of the body\n"));
        }
    }
    let text = body.pointer(form.text).and_then(Value::as_str);
    match text.filter(|text| !text.is_empty()) {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!(
            "give a text that is not empty at {} of the body\n",
            form.text
        )),
    }
}

/// A request that was read then.
pub(super) struct Asked<'a> {
    pub(super) provider: Provider,
    pub(super) request: &'a Request,
    pub(super) read: Instant,
    pub(super) read_ns: u64,
}

/// How a request ended; an error if the connection ended with it.
type Ended = Result<End, End>;

impl Asked<'_> {
    /// Answers it, and counts how it ended.
    pub(super) async fn answer(
        &self,
        shared: &Shared,
        connection: &mut Connection,
    ) -> Result<(), Gone> {
        shared.book().stats.request(self.provider);
        let ended = match text_of(self.provider, self.request) {
            Ok(text) => self.speak(shared, connection, &text).await,
            Err(told) => {
                shared.book().stats.bad_request(self.provider);
                let answer = Answer::line("400 Bad Request", told);
                self.refuse(connection, &answer, End::Failed).await
            }
        };
        let (Ok(end) | Err(end)) = ended;
        shared.book().stats.end(self.provider, end);
        ended.map(drop).map_err(|_| Gone)
    }

    async fn refuse(&self, connection: &mut Connection, answer: &Answer, end: End) -> Ended {
        let told = connection.answer(answer, self.request.keep_alive).await;
        told.map(|()| end).map_err(|Gone| end)
    }

    async fn speak(&self, shared: &Shared, connection: &mut Connection, text: &str) -> Ended {
        let SpeakMark { vu, turn } = SpeakMark::read(text).unwrap_or(SpeakMark { vu: 0, turn: 0 });
        let of = Of {
            provider: self.provider,
            vu,
            turn,
            attempt: shared.book().attempt(self.provider, vu, turn),
        };
        let Fate { latency, fault } = shared.fate(&of);
        let mut wait = Wait::new(shared, self.provider, connection);
        if fault == Some(Fault::Timeout) {
            wait.silence(self.read + SILENT).await;
            return reset(wait.connection, End::TimedOut);
        }
        let due = self.read + latency;
        let first = match wait.until(due).await {
            Ok(hung) => due + hung,
            Err(Cut::Refused) => {
                let answer = Answer::line("503 Service Unavailable", "out on demand\n");
                return self.refuse(wait.connection, &answer, End::Failed).await;
            }
            Err(Cut::Gone) => return Err(End::Cancelled),
            Err(Cut::Hung) => return reset(wait.connection, End::TimedOut),
        };
        if let Some((answer, end)) = refusal(fault) {
            return self.refuse(wait.connection, &answer, end).await;
        }
        let breaks_at_once = of.draw(shared.config.seed, What::Break) < 0.5;
        if fault == Some(Fault::Drop) && breaks_at_once {
            return reset(wait.connection, End::Dropped);
        }
        let mut reply = self.reply(shared, &of, text, first);
        reply.cut_after = match fault {
            Some(Fault::Drop) => Some(reply.mark.blocks / 2),
            Some(Fault::Stall) => Some(1),
            _ => None,
        };
        let spoken = reply.speak(&mut wait).await;
        match (spoken, fault) {
            (Err(Cut::Gone), _) => Err(End::Cancelled),
            (Err(Cut::Refused), _) => reset(wait.connection, End::Dropped),
            (Err(Cut::Hung), _) => reset(wait.connection, End::Stalled),
            (Ok(()), Some(Fault::Stall)) => {
                wait.silence(first + SILENT).await;
                reset(wait.connection, End::Stalled)
            }
            (Ok(()), Some(Fault::Drop)) => reset(wait.connection, End::Dropped),
            (Ok(()), _) => Ok(End::Completed),
        }
    }

    fn reply<'s>(&self, shared: &'s Shared, of: &Of, text: &str, first: Instant) -> Reply<'s> {
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        Reply {
            shared,
            provider: self.provider,
            mark: ReplyMark {
                vu: of.vu,
                turn: of.turn,
                request: of.attempt,
                block: 1,
                blocks: chars.saturating_mul(BLOCKS_PER_CHAR),
                read_ns: self.read_ns,
                handed_ns: self.read_ns,
            },
            cut_after: None,
            keep_alive: self.request.keep_alive,
            first,
            free_at: first,
        }
    }
}

/// The answer in place of audio, if the fault is one.
fn refusal(fault: Option<Fault>) -> Option<(Answer, End)> {
    match fault? {
        Fault::Fail => {
            let answer = Answer::line("500 Internal Server Error", "failed on demand\n");
            Some((answer, End::Failed))
        }
        Fault::RateLimit => {
            let answer = Answer {
                header: Some(("retry-after", "60")),
                ..Answer::line("429 Too Many Requests", "too many on demand\n")
            };
            Some((answer, End::RateLimited))
        }
        Fault::Timeout | Fault::Drop | Fault::Slow | Fault::Stall => None,
    }
}

/// The connection is closed by a reset.
fn reset(connection: &Connection, end: End) -> Ended {
    connection.reset_when_closed();
    Err(end)
}
