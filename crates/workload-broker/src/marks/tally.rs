//! What became of the messages of a trial, counted from its book.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialect::Shape;

use super::bits::{numbers_in, words_of};
use super::packed::whole;
use super::{Book, Events, FromWriter, ReaderMarks, WriterMarks, count_where};

/// Which messages are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Those that were due in the measured window.
    Measured,
    /// All of the trial.
    InAll,
}

/// What became of the messages. All counts are messages, unless they say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Due.
    pub offered: u64,
    /// Of those, wholly taken by the socket.
    pub published: u64,
    /// Of the published, confirmed by the broker.
    pub confirmed: u64,
    /// Of the measured ones, those whose confirmation came inside the window, whatever span is counted.
    pub confirmed_in_window: u64,
    /// Of the published, refused by the broker and not confirmed.
    pub refused: u64,
    /// Refusals that name no message, over the whole trial. So many of the missing messages may have been refused.
    pub refused_unnamed: u64,
    /// Of the published, neither confirmed nor refused. Without confirms, all of them.
    pub unanswered: u64,
    /// Both confirmed and refused: the broker contradicts itself.
    pub contradicted: u64,
    /// Answers of the broker for messages that were never due, over the whole trial.
    pub answers_never_due: u64,
    /// What arrived; `null` without readers.
    pub delivery: Option<Delivery>,
}

/// What arrived. In a stream every reader should get every message, so each of these counts is a sum over readers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Of the published, delivered before the window ended.
    pub in_window: u64,
    /// Of the published, delivered only after it.
    pub drained: u64,
    /// Published, not refused, and never delivered.
    pub missing: u64,
    /// Published, confirmed, and never delivered.
    pub lost: u64,
    /// Published, not answered, and delivered all the same. After a crash these were recovered without a confirm.
    pub without_confirm: u64,
    /// Published, refused, and delivered all the same.
    pub in_spite_of_refusal: u64,
    /// Arrivals of messages that had arrived before.
    pub duplicated: u64,
    /// Arrivals that the broker marked as delivered again.
    pub redelivered: u64,
    /// First arrivals at a reader after a later message of the same writer had arrived there.
    pub reordered: u64,
    /// Delivered, although the socket was not seen to take all of it: its connection ended in the middle of a write.
    pub unpublished: u64,
    /// Arrivals of messages that were never due, over the whole trial. Above 0, another client uses the broker, or the
    /// broker makes messages up.
    pub never_due: u64,
    /// Messages that readers settled, over the whole trial.
    pub settled: u64,
    /// First arrivals inside the window, whenever their messages were due: what the broker delivered in that time.
    pub arrived_in_window: u64,
    /// The same for each reader.
    pub readers: Vec<OfReader>,
}

/// What arrived at one reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfReader {
    /// The reader's number.
    pub reader: u32,
    /// Of the published, delivered to it before the window ended.
    pub in_window: u64,
    /// Of the published, delivered to it only after.
    pub drained: u64,
    /// What it should have got and did not; in a queue, where no reader has a claim to a message, `null`.
    pub missing: Option<u64>,
}

impl Book {
    /// What became of the messages of a span.
    #[must_use]
    pub fn tally(&self, span: Span) -> Tally {
        let mut tally = Tally::default();
        for writer in self.writers() {
            let sets = Sets::of(writer, span);
            tally.add_writer(writer, &sets);
        }
        tally.delivery = self.has_readers().then(|| self.delivery(span));
        tally
    }

    /// Calls `each` with writer, number and how many arrivals are missing, for each measured message that did not arrive
    /// and was not refused: also for those that were never written.
    pub fn undelivered(&self, mut each: impl FnMut(u32, u64, u64)) {
        let readers: Vec<&ReaderMarks> = self.readers().collect();
        for writer in self.writers() {
            let sets = Sets::of(writer, Span::Measured);
            let from: Vec<&FromWriter> = readers
                .iter()
                .filter_map(|reader| sets.from(reader))
                .collect();
            // A message of a queue should reach one of the readers, a message of a stream each of them.
            let groups = match self.shape() {
                Shape::Queue => vec![from.as_slice()],
                Shape::Stream => from.chunks(1).collect(),
            };
            for (at, mask) in words_of(&sets.range) {
                let open = mask & !sets.refused(at);
                let lacks = |group: &&[&FromWriter]| {
                    let came = group.iter();
                    open & !came.fold(0, |word, from| word | from.delivered.word(at))
                };
                let lacking: Vec<u64> = groups.iter().map(lacks).collect();
                let any = lacking.iter().fold(0, |word, lacks| word | lacks);
                for number in numbers_in(at, any) {
                    let bit = 1 << (number % 64);
                    let times = lacking.iter().filter(|lacks| *lacks & bit != 0).count();
                    each(writer.writer, number, whole(times));
                }
            }
        }
    }

    /// Calls `each` with writer and number of each measured message that the broker neither confirmed nor refused: also
    /// those that were never written.
    pub fn unanswered(&self, mut each: impl FnMut(u32, u64)) {
        for writer in self.writers() {
            let sets = Sets::of(writer, Span::Measured);
            for (at, mask) in words_of(&sets.range) {
                for number in numbers_in(at, mask & sets.unanswered(at)) {
                    each(writer.writer, number);
                }
            }
        }
    }

    fn delivery(&self, span: Span) -> Delivery {
        let mut delivery = Delivery::default();
        let readers: Vec<&ReaderMarks> = self.readers().collect();
        for reader in &readers {
            delivery.add_reader(reader, span);
        }
        for writer in self.writers() {
            let sets = Sets::of(writer, span);
            match self.shape() {
                Shape::Queue => delivery.add(&sets, &readers),
                Shape::Stream => {
                    for reader in &readers {
                        delivery.add(&sets, std::slice::from_ref(reader));
                    }
                }
            }
        }
        let of_reader = |reader: &&ReaderMarks| self.of_reader(reader, span);
        delivery.readers = readers.iter().map(of_reader).collect();
        delivery
    }

    fn of_reader(&self, reader: &ReaderMarks, span: Span) -> OfReader {
        let mut sum = Delivery::default();
        for writer in self.writers() {
            sum.add(&Sets::of(writer, span), &[reader]);
        }
        OfReader {
            reader: reader.reader,
            in_window: sum.in_window,
            drained: sum.drained,
            missing: (self.shape() == Shape::Stream).then_some(sum.missing),
        }
    }
}

impl Tally {
    fn add_writer(&mut self, writer: &WriterMarks, sets: &Sets<'_>) {
        self.offered += sets.range.end - sets.range.start;
        self.published += sets.count(|at| sets.written(at));
        self.confirmed += sets.count(|at| sets.written(at) & sets.confirmed(at));
        self.refused += sets.count(|at| sets.written(at) & sets.refused(at));
        self.unanswered += sets.count(|at| sets.written(at) & sets.unanswered(at));
        self.contradicted += sets.count(|at| sets.confirmed(at) & writer.refused.word(at));
        self.confirmed_in_window += writer.confirmed_in_window;
        self.answers_never_due += writer.never_due;
        self.refused_unnamed += writer.refused_unnamed;
    }
}

impl Delivery {
    /// The least and the most messages that a reader got before the window ended. `None` without readers.
    #[must_use]
    pub fn least_and_most(&self) -> Option<(u64, u64)> {
        let in_window = || self.readers.iter().map(|of| of.in_window);
        Some((in_window().min()?, in_window().max()?))
    }

    /// What a reader counted itself.
    fn add_reader(&mut self, reader: &ReaderMarks, span: Span) {
        for from in &reader.from {
            let events = match span {
                Span::Measured => from.measured,
                Span::InAll => from.in_all,
            };
            self.add_events(events);
        }
        self.never_due += reader.never_due;
        self.settled += reader.settled;
        self.arrived_in_window += reader.arrived_in_window;
    }

    fn add_events(&mut self, events: Events) {
        self.duplicated += events.duplicated;
        self.redelivered += events.redelivered;
        self.reordered += events.reordered;
    }

    /// The messages of one writer, each of which should reach one of these readers.
    fn add(&mut self, sets: &Sets<'_>, readers: &[&ReaderMarks]) {
        let from: Vec<&FromWriter> = readers
            .iter()
            .filter_map(|reader| sets.from(reader))
            .collect();
        let delivered = |at| {
            from.iter()
                .fold(0, |word, from| word | from.delivered.word(at))
        };
        let in_time = |at| from.iter().fold(0, |word, from| word | from.in_time(at));

        self.in_window += sets.count(|at| sets.written(at) & in_time(at));
        self.drained += sets.count(|at| sets.written(at) & delivered(at) & !in_time(at));
        let owed = |at| sets.written(at) & !sets.refused(at) & !delivered(at);
        self.missing += sets.count(owed);
        self.lost += sets.count(|at| owed(at) & sets.confirmed(at));
        let came = |at| sets.written(at) & delivered(at);
        self.without_confirm += sets.count(|at| came(at) & sets.unanswered(at));
        self.in_spite_of_refusal += sets.count(|at| came(at) & sets.refused(at));
        self.unpublished += sets.count(|at| delivered(at) & !sets.written(at));
        let below = from.iter().map(|from| from.below).max().unwrap_or(0);
        self.never_due += count_where(&(sets.writer.due..below), delivered);
        // A message that reached several of the readers is duplicated at each but one.
        for (number, later) in from.iter().enumerate().skip(1) {
            let earlier = |at| {
                from[..number]
                    .iter()
                    .fold(0, |word, from| word | from.delivered.word(at))
            };
            self.duplicated += sets.count(|at| later.delivered.word(at) & earlier(at));
        }
    }
}

/// The sets of one writer, word by word, for the messages of a span.
pub(super) struct Sets<'a> {
    writer: &'a WriterMarks,
    range: Range<u64>,
}

impl<'a> Sets<'a> {
    pub(super) fn of(writer: &'a WriterMarks, span: Span) -> Self {
        let range = match span {
            Span::Measured => writer.measured.clone(),
            Span::InAll => 0..writer.due,
        };
        Self::within(writer, range)
    }

    pub(super) fn within(writer: &'a WriterMarks, range: Range<u64>) -> Self {
        Self { writer, range }
    }

    pub(super) fn count(&self, word: impl Fn(usize) -> u64) -> u64 {
        count_where(&self.range, word)
    }

    pub(super) fn written(&self, at: usize) -> u64 {
        self.writer.written.word(at)
    }

    pub(super) fn confirmed(&self, at: usize) -> u64 {
        self.writer.confirmed.word(at)
    }

    /// Refused and not confirmed. If the broker says both, its yes counts: it must not get rid of a loss by a no.
    fn refused(&self, at: usize) -> u64 {
        self.writer.refused.word(at) & !self.confirmed(at)
    }

    pub(super) fn unanswered(&self, at: usize) -> u64 {
        !(self.confirmed(at) | self.writer.refused.word(at))
    }

    pub(super) fn from<'r>(&self, reader: &'r ReaderMarks) -> Option<&'r FromWriter> {
        reader.from.get(usize::try_from(self.writer.writer).ok()?)
    }
}

impl FromWriter {
    fn in_time(&self, at: usize) -> u64 {
        self.delivered.word(at) & !self.drained.word(at)
    }
}
