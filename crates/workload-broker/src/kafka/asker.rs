//! Asks how much of a topic a group has not settled. Not part of the load.

use super::answer::AnswerReader;
use super::errors;
use super::fields::Malformed;
use super::greeting::{Greeting, Numbers, failed, flaw, kafka, malformed};
use super::requests::{
    Api, End, LIST_OFFSETS, OFFSET_FETCH, put_list_offsets, put_offset_fetch, read_partitions,
};
use super::setup::{InvalidSetup, check_name};
use crate::dialect::Fault;

const NEEDED: &[Api] = &[LIST_OFFSETS, OFFSET_FETCH];

/// What was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Greeting,
    Earliest,
    Latest,
    Offsets,
    /// It is answered.
    Done,
}

/// A partition. What has not been asked yet is 0.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// The offset of its first message, or of the first one that is not settled.
    from: u64,
    /// The offset behind its last message.
    end: u64,
}

/// A connection that asks once.
#[derive(Debug)]
pub struct Asker {
    answers: AnswerReader,
    state: State,
}

#[derive(Debug)]
struct State {
    topic: String,
    group: String,
    greeting: Greeting,
    numbers: Numbers,
    step: Step,
    parts: Vec<Part>,
}

impl Asker {
    /// An asker about this topic and group.
    ///
    /// # Errors
    /// A name is none that Kafka takes.
    pub fn new(topic: &str, group: &str) -> Result<Self, InvalidSetup> {
        check_name("topic", topic)?;
        check_name("group", group)?;
        Ok(Self {
            answers: AnswerReader::new(),
            state: State {
                topic: topic.to_owned(),
                group: group.to_owned(),
                greeting: Greeting::finding(topic, NEEDED),
                numbers: Numbers::default(),
                step: Step::Greeting,
                parts: Vec::new(),
            },
        })
    }

    /// Appends the first request.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        let state = &mut self.state;
        state.greeting.open(out, &mut state.numbers);
    }

    /// Takes what arrived, in any pieces. Appends the next request to `out`, or returns how many messages of the topic the
    /// group has not settled; without a group, all that the broker keeps.
    ///
    /// # Errors
    /// The connection is dead, or there is no such topic.
    pub fn received(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<u64>, Fault> {
        let mut rest = bytes;
        let mut messages = None;
        while let Some((used, answer)) = self.answers.next(rest).map_err(flaw)? {
            self.state.numbers.answer(&answer)?;
            messages = self.state.take(answer.body, out)?;
            rest = &rest[used..];
        }
        Ok(messages)
    }
}

impl State {
    fn take(&mut self, answer: &[u8], out: &mut Vec<u8>) -> Result<Option<u64>, Fault> {
        match self.step {
            Step::Greeting => {
                let partitions = self.greeting.take(answer, out, &mut self.numbers)?;
                if let Some(partitions) = partitions {
                    self.parts = (0..partitions).map(|_| Part::default()).collect();
                    self.ask(Step::Earliest, out);
                }
            }
            Step::Earliest => {
                let next = if self.list(answer, |part| &mut part.from)? {
                    Step::Latest
                } else {
                    Step::Earliest
                };
                self.ask(next, out);
            }
            Step::Latest => {
                let next = if self.list(answer, |part| &mut part.end)? {
                    Step::Offsets
                } else {
                    Step::Latest
                };
                self.ask(next, out);
            }
            Step::Offsets => {
                if self.offsets(answer)? {
                    self.step = Step::Done;
                    let messages = self.parts.iter();
                    let messages = messages.map(|part| part.end.saturating_sub(part.from));
                    return Ok(Some(messages.fold(0, u64::saturating_add)));
                }
                self.ask(Step::Offsets, out);
            }
            Step::Done => return Err(kafka(format_args!("an answer to nothing"))),
        }
        Ok(None)
    }

    fn ask(&mut self, step: Step, out: &mut Vec<u8>) {
        let number = self.numbers.ask();
        let partitions = 0..u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        match step {
            Step::Earliest => {
                put_list_offsets(out, number, &self.topic, End::Earliest, partitions);
            }
            Step::Offsets => put_offset_fetch(out, number, &self.group, &self.topic, partitions),
            Step::Latest | Step::Greeting | Step::Done => {
                put_list_offsets(out, number, &self.topic, End::Latest, partitions);
            }
        }
        self.step = step;
    }

    /// Reads ends of partitions into that place. False if they must be asked for again.
    fn list(&mut self, answer: &[u8], place: fn(&mut Part) -> &mut u64) -> Result<bool, Fault> {
        let error = self.read(LIST_OFFSETS, answer, |part, offset| *place(part) = offset)?;
        match error {
            errors::NONE => Ok(true),
            error if errors::is_partition_coming(error) => Ok(false),
            error => Err(failed(LIST_OFFSETS, error)),
        }
    }

    /// Reads what the group has committed. False if that must be asked for again.
    fn offsets(&mut self, answer: &[u8]) -> Result<bool, Fault> {
        let error = self.read(OFFSET_FETCH, answer, |part, offset| {
            part.from = part.from.max(offset);
        })?;
        match error {
            errors::COORDINATOR_LOADS => Ok(false),
            // Without a coordinator nobody has committed anything.
            errors::NONE | errors::COORDINATOR_NOT_AVAILABLE | errors::NOT_COORDINATOR => Ok(true),
            error => Err(failed(OFFSET_FETCH, error)),
        }
    }

    /// Calls `each` with the partitions that have an offset. Returns the first error.
    fn read(
        &mut self,
        api: Api,
        answer: &[u8],
        mut each: impl FnMut(&mut Part, u64),
    ) -> Result<i16, Fault> {
        let parts = &mut self.parts;
        let (mut first, mut count) = (errors::NONE, 0);
        let read = read_partitions(api, answer, &self.topic, |said| {
            let at = usize::try_from(said.partition).map_err(|_| Malformed)?;
            let part = parts.get_mut(at).ok_or(Malformed)?;
            count += 1;
            if first == errors::NONE {
                first = said.error;
            }
            if said.error == errors::NONE
                && let Ok(offset) = u64::try_from(said.offset)
            {
                each(part, offset);
            }
            Ok(())
        });
        read.map_err(|Malformed| malformed(api))?;
        if count < self.parts.len() && first == errors::NONE {
            return Err(malformed(api));
        }
        Ok(first)
    }
}
