//! Answers, and what becomes of them.

use http_target::metrics::Sums;
use rust_epoll_http::answer::{self, Answer, Body, Manner, Status};
use rust_epoll_http::call::{Call, Resource};
use rust_epoll_http::date::Date;
use rust_epoll_http::h1::Request;
use rust_epoll_http::output::Output;

/// How an answer is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// It is.
    Truth,
    /// 503.
    Unavailable,
    /// The second half of the body is missing, and the connection ends.
    Short,
    /// The body is of another request, or else its bytes are in another order.
    Wrong,
    /// It comes twice.
    Twice,
}

/// Writes answers.
#[derive(Debug)]
pub struct Writer {
    /// What `/bytes/N` is the beginning of.
    pub pattern: Box<[u8]>,
    /// The date.
    pub date: Date,
    scratch: Vec<u8>,
    /// The last true answers to `/json/K` and to `/sum`, for the liar.
    last_item: Vec<u8>,
    last_sum: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            pattern: http_target::routes::pattern().into(),
            date: Date::default(),
            scratch: Vec::new(),
            last_item: Vec::new(),
            last_sum: Vec::new(),
        }
    }
}

impl Writer {
    /// Writes the answer to a request. Whether the connection must end behind it.
    pub fn write(&mut self, output: &mut Output, request: Request, lie: Lie, sums: Sums) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let answer = answer::answer(request.call, &mut scratch, |text| text.extend(sums.render().bytes()));
        let closes = self.write_answer(output, &answer, request, lie);
        self.scratch = scratch;
        closes
    }

    /// Writes a status alone, with which the connection ends.
    pub fn refuse(&mut self, output: &mut Output, status: Status) {
        let manner = Manner { is_head: false, closes: true };
        answer::write(output, &self.pattern, &self.date, &Answer::status(status), manner);
    }

    fn write_answer(&mut self, output: &mut Output, answer: &Answer<'_>, request: Request, lie: Lie) -> bool {
        let manner = request.manner;
        match lie {
            Lie::Truth => self.tell(output, answer, manner),
            Lie::Unavailable => self.tell(output, &Answer::status(Status::UNAVAILABLE), manner),
            Lie::Twice => {
                self.tell(output, answer, manner);
                self.tell(output, answer, manner);
            }
            Lie::Short => {
                let mut whole = Output::default();
                self.tell(&mut whole, answer, manner);
                let bytes = whole.take(&self.pattern);
                let missing = if manner.is_head { 0 } else { answer.body.length().div_ceil(2) };
                output.make(|output| output.extend_from_slice(&bytes[..bytes.len() - missing]));
                return true;
            }
            Lie::Wrong => {
                let body = self.wrong(request.call, answer.body);
                self.tell(output, &Answer { body: Body::Own(&body), ..*answer }, manner);
            }
        }
        if let (Some(last), Body::Own(body)) = (self.last(request.call), answer.body) {
            last.clear();
            last.extend_from_slice(body);
        }
        manner.closes
    }

    fn tell(&self, output: &mut Output, answer: &Answer<'_>, manner: Manner) {
        answer::write(output, &self.pattern, &self.date, answer, manner);
    }

    /// The last answer to a call of this kind.
    fn last(&mut self, call: Call) -> Option<&mut Vec<u8>> {
        match call {
            Call::Get(Resource::Item(_)) => Some(&mut self.last_item),
            Call::Sum(..) => Some(&mut self.last_sum),
            _ => None,
        }
    }

    fn wrong(&mut self, call: Call, body: Body<'_>) -> Vec<u8> {
        let right = match body {
            Body::Own(bytes) => bytes,
            Body::Pattern(length) => &self.pattern[..length],
        }
        .to_vec();
        if let Some(last) = self.last(call)
            && !last.is_empty()
            && *last != right
        {
            return last.clone();
        }
        let mut wrong = right.clone();
        if !wrong.is_empty() {
            wrong.rotate_left(1);
        }
        if wrong == right {
            wrong.iter_mut().for_each(|byte| *byte ^= 1);
        }
        wrong
    }
}
