//! Which messages were written, confirmed, refused and delivered: a bit for each.
//!
//! A message leaves on one connection and arrives on another, perhaps in another process. While a trial runs, nothing
//! is shared. A writer marks what it wrote and what the broker answered ([`WriterMarks`]); a reader marks what arrived,
//! by the numbers in the message ([`ReaderMarks`]). After the trial all marks come together in a [`Book`], which says
//! what became of each message ([`Tally`]).
//!
//! **Loss is never a difference of counts.** A broker that drops seven messages and doubles seven others delivers as many
//! as it took. So what is missing is found number by number, and a count is only taken of the result.
//!
//! | word | meaning here |
//! |---|---|
//! | offered | due in the window |
//! | published | of those, wholly taken by the socket |
//! | confirmed, refused | of those, the broker said yes, or no; if it said both, it said yes |
//! | delivered | of those, arrived: anywhere in a queue, at this reader in a stream; *in window* or *drained* after it |
//! | missing | published, not refused, and never delivered: an answer of no is an error, not a loss |
//! | lost | published, confirmed, and never delivered |
//! | duplicated | arrivals of messages that had arrived before: anywhere in a queue, at this reader in a stream |
//! | redelivered | arrivals that the broker itself marked as such, whether they repeat something or not |
//! | reordered | first arrivals at a reader after a later message of the same writer had arrived there |
//!
//! Every one of them exists for the measured messages and for the whole trial ([`Span`]).

mod bits;
mod book;
mod crossed;
mod packed;
mod tally;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use bits::{Beyond, Bits, NUMBERS_MAX, count_where};
pub use book::{Book, NotInPlan};
pub use crossed::Crossed;
pub use packed::NotASet;
pub use tally::{Delivery, Span, Tally};

/// What a session hands over when the trial is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Marks {
    /// Of a writer.
    Writer(WriterMarks),
    /// Of a reader.
    Reader(ReaderMarks),
}

/// What a mark says about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It was not marked so before.
    First,
    /// It was marked so before.
    Again,
    /// No such message was ever due, or can be in the plan: the broker, or another client, made it up. Such a mark is
    /// counted and leaves no other trace, so that a hostile broker cannot fill the client's memory.
    NeverDue,
}

/// What one writer did, and what the broker answered.
///
/// A writer numbers its messages from 0 on in the order in which they are due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterMarks {
    writer: u32,
    /// The messages below this number were due.
    due: u64,
    /// Those that were due in the window. They follow each other, for a schedule skips none.
    measured: Range<u64>,
    written: Bits,
    confirmed: Bits,
    refused: Bits,
    /// Measured messages whose confirmation came in the window.
    confirmed_in_window: u64,
    /// Answers for messages that were never due.
    never_due: u64,
    /// Refusals that name no message.
    refused_unnamed: u64,
    /// The broker answered all messages below this number, or will never answer them: a later confirmation of all up to
    /// some message does not mean them.
    answered: u64,
    /// Which message was next when the connection was lost in a crash, for the first and for the last time.
    crashed: Option<(u64, u64)>,
}

impl WriterMarks {
    /// The marks of writer `writer`, which has at most `messages_max` messages in the trial.
    #[must_use]
    pub fn new(writer: u32, messages_max: u64) -> Self {
        Self {
            writer,
            due: 0,
            measured: 0..0,
            written: Bits::new(messages_max),
            confirmed: Bits::new(messages_max),
            refused: Bits::new(messages_max),
            confirmed_in_window: 0,
            never_due: 0,
            refused_unnamed: 0,
            answered: 0,
            crashed: None,
        }
    }

    /// The writer's number.
    #[must_use]
    pub fn writer(&self) -> u32 {
        self.writer
    }

    /// The next message is due. Returns its number, or `None` if the writer has had all its messages.
    pub fn due(&mut self, measured: bool) -> Option<u64> {
        let number = self.due;
        if number >= self.written.limit() {
            return None;
        }
        self.due += 1;
        if measured {
            if self.measured.is_empty() {
                self.measured.start = number;
            }
            self.measured.end = self.due;
        }
        Some(number)
    }

    /// The socket took the message wholly.
    pub fn written(&mut self, number: u64) -> Mark {
        self.mark(number, |marks| &mut marks.written)
    }

    /// The broker confirmed the message. `in_window`: the confirmation came in the measured window.
    ///
    /// It may come before the message counts as written: if a write of several messages was cut, the broker may answer
    /// the first of them before the socket took the last.
    pub fn confirmed(&mut self, number: u64, in_window: bool) -> Mark {
        let mark = self.mark(number, |marks| &mut marks.confirmed);
        if mark == Mark::First && in_window && self.measured.contains(&number) {
            self.confirmed_in_window += 1;
        }
        mark
    }

    /// The broker confirmed all messages up to this one that it did not refuse. Calls `first` with the number of each
    /// that was not confirmed before, in order. A message is looked at until it is answered, and not again.
    pub fn confirmed_up_to(
        &mut self,
        number: u64,
        in_window: bool,
        mut first: impl FnMut(u64),
    ) -> Mark {
        if number >= self.due {
            self.never_due += 1;
            return Mark::NeverDue;
        }
        let open = self.answered..number + 1;
        let mut mark = Mark::Again;
        for (at, mask) in bits::words_of(&open) {
            let answered = self.confirmed.word(at) | self.refused.word(at);
            for number in bits::numbers_in(at, mask & !answered) {
                mark = self.confirmed(number, in_window);
                first(number);
            }
        }
        self.answered = self.answered.max(open.end);
        mark
    }

    /// The broker refused the message.
    pub fn refused(&mut self, number: u64) -> Mark {
        self.mark(number, |marks| &mut marks.refused)
    }

    /// The broker refused a message and did not say which. The message stays unanswered, and counts as missing if it does
    /// not arrive.
    pub fn refused_unnamed(&mut self) {
        self.refused_unnamed += 1;
    }

    fn mark(&mut self, number: u64, set: impl FnOnce(&mut Self) -> &mut Bits) -> Mark {
        let marked = if number < self.due {
            set(self).insert(number)
        } else {
            Err(Beyond)
        };
        match marked {
            Ok(true) => Mark::First,
            Ok(false) => Mark::Again,
            Err(Beyond) => {
                self.never_due += 1;
                Mark::NeverDue
            }
        }
    }
}

/// When a message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before the measured window.
    Before,
    /// In it.
    InWindow,
    /// After it: drained.
    Drained,
}

/// A message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Who wrote it.
    pub writer: u32,
    /// Its number within its writer.
    pub number: u64,
    /// Whether it was due in the measured window.
    pub measured: bool,
    /// When it arrived.
    pub when: When,
    /// Whether the broker marked it as delivered again.
    pub redelivered: bool,
}

/// Arrivals that no set can show, for each writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Events {
    duplicated: u64,
    redelivered: u64,
    reordered: u64,
}

impl Events {
    fn add(&mut self, other: Self) {
        self.duplicated += other.duplicated;
        self.redelivered += other.redelivered;
        self.reordered += other.reordered;
    }
}

/// What a reader got from one writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FromWriter {
    delivered: Bits,
    /// Of those, what arrived after the window.
    drained: Bits,
    /// All messages that arrived are below this number.
    below: u64,
    in_all: Events,
    measured: Events,
}

/// What arrived at one reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderMarks {
    reader: u32,
    from: Vec<FromWriter>,
    /// Arrivals in the window, of whichever messages, repeated ones left out.
    arrived_in_window: u64,
    settled: u64,
    never_due: u64,
}

impl ReaderMarks {
    /// The marks of reader `reader`, if `writers` writers have at most `messages_max` messages each.
    #[must_use]
    pub fn new(reader: u32, writers: u32, messages_max: u64) -> Self {
        let from = (0..writers).map(|_| FromWriter {
            delivered: Bits::new(messages_max),
            drained: Bits::new(messages_max),
            below: 0,
            in_all: Events::default(),
            measured: Events::default(),
        });
        Self {
            reader,
            from: from.collect(),
            arrived_in_window: 0,
            settled: 0,
            never_due: 0,
        }
    }

    /// The reader's number.
    #[must_use]
    pub fn reader(&self) -> u32 {
        self.reader
    }

    /// A message arrived. [`Mark::Again`] if it had arrived at this reader before.
    pub fn delivered(&mut self, arrival: &Arrival) -> Mark {
        let from = usize::try_from(arrival.writer)
            .ok()
            .and_then(|writer| self.from.get_mut(writer));
        let marked = from.map_or(Err(Beyond), |from| from.delivered(arrival));
        match marked {
            Err(Beyond) => {
                self.never_due += 1;
                Mark::NeverDue
            }
            Ok(false) => Mark::Again,
            Ok(true) => {
                self.arrived_in_window += u64::from(arrival.when == When::InWindow);
                Mark::First
            }
        }
    }

    /// So many messages were settled, one by one, as a batch or by a cursor.
    pub fn settled(&mut self, messages: u64) {
        self.settled += messages;
    }
}

impl FromWriter {
    fn delivered(&mut self, arrival: &Arrival) -> Result<bool, Beyond> {
        let first = self.delivered.insert(arrival.number)?;
        if first && arrival.when == When::Drained {
            self.drained.insert(arrival.number)?;
        }
        let events = Events {
            duplicated: u64::from(!first),
            redelivered: u64::from(arrival.redelivered),
            reordered: u64::from(first && arrival.number < self.below),
        };
        self.in_all.add(events);
        if arrival.measured {
            self.measured.add(events);
        }
        self.below = self.below.max(arrival.number + 1);
        Ok(first)
    }
}
