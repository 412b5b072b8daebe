//! A writer: Produce, and what the broker says to it.

use std::collections::VecDeque;

use super::answer::AnswerReader;
use super::batch;
use super::errors;
use super::fields::{Malformed, length_of};
use super::greeting::{Greeting, Numbers, failed, flaw, kafka, malformed};
use super::requests::{
    self, Api, End, LIST_OFFSETS, NUMBER_AT, PRODUCE, put_list_offsets, put_produce,
    read_partitions,
};
use super::setup::{InvalidSetup, Setup};
use crate::dialect::{Dialect, Fault, Heard};

const NEEDED: &[Api] = &[LIST_OFFSETS, PRODUCE];

/// The number of requests that nobody answers.
const UNANSWERED: i32 = -1;

/// A connection that publishes to one partition of a topic.
#[derive(Debug)]
pub struct Writer {
    answers: AnswerReader,
    state: State,
    /// A Produce request and its batch, up to the records.
    begin: Vec<u8>,
    /// The batch that is being written.
    batch: Option<Batch>,
}

#[derive(Debug, Clone, Copy)]
struct Batch {
    /// Where its request begins.
    start: usize,
    records: u32,
}

#[derive(Debug)]
enum Step {
    Greeting(Greeting),
    /// It has asked for the end of its partition. Metadata may name a leader that is none yet, and only a leader answers.
    Leader,
    Ready,
}

#[derive(Debug)]
struct State {
    topic: String,
    partition: u32,
    confirms: bool,
    numbers: Numbers,
    step: Step,
    /// How many messages each open request has.
    open: VecDeque<u32>,
    /// Their tags, in order.
    tags: VecDeque<u64>,
}

impl Writer {
    /// A writer to this partition. If it `confirms`, the broker answers each batch when it has it (`acks=all`). If not, it
    /// answers none, and nobody learns of a batch that it could not store (`acks=0`).
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, partition: u32, confirms: bool) -> Result<Self, InvalidSetup> {
        setup.check()?;
        setup.check_partition(partition)?;
        let mut begin = Vec::new();
        put_produce(&mut begin, UNANSWERED, &setup.topic, partition, confirms);
        batch::put_header(&mut begin, setup.began_ms);
        Ok(Self {
            answers: AnswerReader::new(),
            state: State {
                topic: setup.topic.clone(),
                partition,
                confirms,
                numbers: Numbers::default(),
                step: Step::Greeting(Greeting::creating(setup, NEEDED)),
                open: VecDeque::new(),
                tags: VecDeque::new(),
            },
            begin,
            batch: None,
        })
    }
}

impl Dialect for Writer {
    fn open(&mut self, out: &mut Vec<u8>) {
        if let Step::Greeting(greeting) = &self.state.step {
            greeting.open(out, &mut self.state.numbers);
        }
    }

    /// Appends a message to the batch of this write, or begins one. [`Dialect::flush`] completes it.
    #[inline]
    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        let begun = Batch {
            start: out.len(),
            records: 0,
        };
        if self.batch.is_none() {
            out.extend_from_slice(&self.begin);
        }
        let batch = self.batch.get_or_insert(begun);
        batch::put_record(out, batch.records, body);
        batch.records += 1;
        if self.state.confirms {
            self.state.tags.push_back(tag);
        }
    }

    /// Nothing: a writer gets no messages.
    fn settle(&mut self, _: &mut Vec<u8>, _: &[u64]) {}

    /// Completes the batch, which must be the last thing in `out`.
    fn flush(&mut self, out: &mut Vec<u8>) {
        let Some(Batch { start, records }) = self.batch.take() else {
            return;
        };
        let Some(request) = out.get_mut(start..) else {
            return;
        };
        if self.state.confirms {
            batch::set(request, NUMBER_AT, self.state.numbers.ask().to_be_bytes());
            self.state.open.push_back(records);
        }
        requests::finish(request);
        let batch_at = self.begin.len() - batch::HEADER_BYTES;
        let batch_bytes = request.len().saturating_sub(batch_at);
        batch::set(request, batch_at - 4, length_of(batch_bytes));
        batch::finish(request.get_mut(batch_at..).unwrap_or_default(), records);
    }

    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let mut rest = bytes;
        while let Some((used, answer)) = self.answers.next(rest).map_err(flaw)? {
            self.state.numbers.answer(&answer)?;
            self.state.take(answer.body, out, heard)?;
            rest = &rest[used..];
        }
        Ok(())
    }

    /// Nothing: a client ends by closing the connection.
    fn close(&mut self, _: &mut Vec<u8>) {}

    fn held_bytes(&self) -> usize {
        self.answers.held_bytes()
    }
}

impl State {
    fn take(
        &mut self,
        answer: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        match &mut self.step {
            Step::Greeting(greeting) => {
                if greeting.take(answer, out, &mut self.numbers)?.is_some() {
                    self.ask_leader(out);
                }
                Ok(())
            }
            Step::Leader => match self.error(LIST_OFFSETS, answer)? {
                errors::NONE => {
                    self.step = Step::Ready;
                    heard(Heard::Ready);
                    Ok(())
                }
                error if errors::is_partition_coming(error) => {
                    self.ask_leader(out);
                    Ok(())
                }
                error => Err(failed(LIST_OFFSETS, error)),
            },
            Step::Ready => self.answered(answer, heard),
        }
    }

    fn ask_leader(&mut self, out: &mut Vec<u8>) {
        let partition = std::iter::once(self.partition);
        put_list_offsets(out, self.numbers.ask(), &self.topic, End::Latest, partition);
        self.step = Step::Leader;
    }

    /// What an answer says of the partition.
    fn error(&self, api: Api, answer: &[u8]) -> Result<i16, Fault> {
        let mut result = None;
        let read = read_partitions(api, answer, &self.topic, |said| {
            result = Some((said.partition, said.error));
            Ok(())
        });
        read.map_err(|Malformed| malformed(api))?;
        match result {
            Some((partition, error)) if partition == self.partition => Ok(error),
            _ => Err(malformed(api)),
        }
    }

    /// The answer to the oldest open batch: all its messages are stored, or none.
    fn answered(&mut self, answer: &[u8], heard: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault> {
        let error = self.error(PRODUCE, answer)?;
        let records = self.open.pop_front();
        let records = records.ok_or_else(|| kafka(format_args!("an answer to nothing")))?;
        let records = usize::try_from(records).unwrap_or(usize::MAX);
        let tags = self.tags.drain(..records.min(self.tags.len()));
        if error == errors::NONE {
            for tag in tags {
                heard(Heard::Confirmed { tag, up_to: false });
            }
        } else {
            let why = errors::words(error);
            for tag in tags {
                let tag = Some(tag);
                heard(Heard::Refused { tag, why: &why });
            }
        }
        Ok(())
    }
}
