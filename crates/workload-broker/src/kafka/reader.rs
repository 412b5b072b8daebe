//! A reader: Fetch, and the commit of offsets.

use std::collections::VecDeque;

use super::answer::AnswerReader;
use super::batch::{Unread, take_batch};
use super::errors;
use super::fields::Malformed;
use super::greeting::{Greeting, Numbers, failed, flaw, kafka, malformed};
use super::requests::{
    Api, End, FETCH, FIND_COORDINATOR, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, Said, put_fetch,
    put_find_coordinator, put_list_offsets, put_offset_commit, put_offset_fetch,
    read_find_coordinator, read_partitions,
};
use super::setup::{InvalidSetup, PREFETCH_MAX, Reading, Setup};
use crate::dialect::{Dialect, Fault, Heard};

/// The most bytes that a Fetch asks for, of a partition and in all. One batch comes however long it is.
pub const FETCH_MAX_BYTES: usize = 1 << 20;

const NEEDED_TO_SHARE: &[Api] = &[
    LIST_OFFSETS,
    FIND_COORDINATOR,
    OFFSET_FETCH,
    FETCH,
    OFFSET_COMMIT,
];
const NEEDED: &[Api] = &[LIST_OFFSETS, FETCH];

/// A handle has the partition above so many bits of the offset.
const OFFSET_BITS: u32 = 48;

/// A connection that reads some partitions of a topic, or all.
#[derive(Debug)]
pub struct Reader {
    answers: AnswerReader,
    state: State,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Greeting,
    /// Where the partitions begin, or end.
    Ends,
    Coordinator,
    /// Where the group is.
    Offsets,
    /// Where the partitions end, which is no further than a group can be.
    Latest,
    Fetch,
    Commit,
}

/// A partition that it reads.
#[derive(Debug)]
struct Part {
    index: u32,
    /// The offset of the first message that did not come yet.
    next: u64,
    /// The offset of the first message that is not settled.
    settled: u64,
    /// The last one that was committed, or is being committed.
    committed: u64,
}

#[derive(Debug)]
struct State {
    topic: String,
    reading: Reading,
    prefetch: u64,
    greeting: Greeting,
    numbers: Numbers,
    /// The partitions; unknown until the greeting is over if it reads all.
    parts: Vec<Part>,
    is_ready: bool,
    /// What is not answered, in order. At most a commit and a Fetch once it is ready.
    open: VecDeque<Asked>,
    unsettled: u64,
}

impl Reader {
    /// A reader that asks for more while it has less than `prefetch` messages which it has not settled.
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, reading: Reading, prefetch: u32) -> Result<Self, InvalidSetup> {
        setup.check()?;
        reading.check(setup.partitions)?;
        if !(1..=PREFETCH_MAX).contains(&prefetch) {
            return Err(InvalidSetup::Prefetch(prefetch));
        }
        let needed = match reading {
            Reading::Shared { .. } => NEEDED_TO_SHARE,
            Reading::Every => NEEDED,
        };
        Ok(Self {
            answers: AnswerReader::new(),
            state: State {
                topic: setup.topic.clone(),
                reading,
                prefetch: prefetch.into(),
                greeting: Greeting::creating(setup, needed),
                numbers: Numbers::default(),
                parts: Vec::new(),
                is_ready: false,
                open: VecDeque::new(),
                unsettled: 0,
            },
        })
    }
}

impl Dialect for Reader {
    fn open(&mut self, out: &mut Vec<u8>) {
        let state = &mut self.state;
        state.greeting.open(out, &mut state.numbers);
        state.open.push_back(Asked::Greeting);
    }

    /// Nothing: a reader publishes no messages.
    fn publish(&mut self, _: &mut Vec<u8>, _: &[u8], _: u64) {}

    /// Notes what is settled; [`Dialect::flush`] commits it. A commit is an offset, so it also settles the messages of the
    /// partition before.
    fn settle(&mut self, _: &mut Vec<u8>, handles: &[u64]) {
        for handle in handles {
            self.state.settle(*handle);
        }
    }

    /// Appends a commit if there is something to commit, and behind it a Fetch if there is room. There is one of each at a
    /// time: the broker would not look at a second one before it has answered the first.
    fn flush(&mut self, out: &mut Vec<u8>) {
        if self.state.is_ready {
            self.state.commit(out);
            self.state.fetch(out);
        }
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
        match self.open.pop_front() {
            Some(Asked::Greeting) => self.greeted(answer, out),
            Some(Asked::Ends) => self.ends(answer, out, heard),
            Some(Asked::Coordinator) => self.coordinator(answer, out),
            Some(Asked::Offsets) => self.offsets(answer, out),
            Some(Asked::Latest) => self.latest(answer, heard),
            Some(Asked::Fetch) => self.fetched(answer, heard),
            Some(Asked::Commit) => self.committed(answer, heard),
            None => Err(kafka(format_args!("an answer to nothing"))),
        }
    }

    fn greeted(&mut self, answer: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let Some(partitions) = self.greeting.take(answer, out, &mut self.numbers)? else {
            self.open.push_back(Asked::Greeting);
            return Ok(());
        };
        self.parts = self
            .reading
            .partitions(partitions)
            .map(|index| Part {
                index,
                next: 0,
                settled: 0,
                committed: 0,
            })
            .collect();
        self.ask_ends(out);
        Ok(())
    }

    fn ask_ends(&mut self, out: &mut Vec<u8>) {
        let end = match self.reading {
            Reading::Shared { .. } => End::Earliest,
            Reading::Every => End::Latest,
        };
        self.list_offsets(end, out);
        self.open.push_back(Asked::Ends);
    }

    fn list_offsets(&mut self, end: End, out: &mut Vec<u8>) {
        let partitions = self.parts.iter().map(|part| part.index);
        put_list_offsets(out, self.numbers.ask(), &self.topic, end, partitions);
    }

    fn ends(
        &mut self,
        answer: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let error = self.read_offsets(LIST_OFFSETS, answer, u64::max)?;
        if errors::is_partition_coming(error) {
            self.ask_ends(out);
        } else if error != errors::NONE {
            return Err(failed(LIST_OFFSETS, error));
        } else if self.reading.group().is_some() {
            self.ask_coordinator(out);
        } else {
            self.ready(heard);
        }
        Ok(())
    }

    /// Finding the coordinator is what makes the broker create the topic that keeps offsets.
    fn ask_coordinator(&mut self, out: &mut Vec<u8>) {
        let group = self.reading.group().unwrap_or_default();
        put_find_coordinator(out, self.numbers.ask(), group);
        self.open.push_back(Asked::Coordinator);
    }

    fn coordinator(&mut self, answer: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let error = read_find_coordinator(answer).map_err(|_| malformed(FIND_COORDINATOR))?;
        if errors::is_coordinator_coming(error) {
            self.ask_coordinator(out);
            return Ok(());
        }
        if error != errors::NONE {
            return Err(failed(FIND_COORDINATOR, error));
        }
        self.ask_offsets(out);
        Ok(())
    }

    fn ask_offsets(&mut self, out: &mut Vec<u8>) {
        let group = self.reading.group().unwrap_or_default();
        let partitions = self.parts.iter().map(|part| part.index);
        put_offset_fetch(out, self.numbers.ask(), group, &self.topic, partitions);
        self.open.push_back(Asked::Offsets);
    }

    fn offsets(&mut self, answer: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let error = self.read_offsets(OFFSET_FETCH, answer, u64::max)?;
        if errors::is_coordinator_coming(error) {
            self.ask_offsets(out);
        } else if error != errors::NONE {
            return Err(failed(OFFSET_FETCH, error));
        } else {
            self.list_offsets(End::Latest, out);
            self.open.push_back(Asked::Latest);
        }
        Ok(())
    }

    /// After a power cut, a partition may end before what its group has committed. New messages get those offsets again.
    fn latest(&mut self, answer: &[u8], heard: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault> {
        match self.read_offsets(LIST_OFFSETS, answer, u64::min)? {
            errors::NONE => self.ready(heard),
            error => return Err(failed(LIST_OFFSETS, error)),
        }
        Ok(())
    }

    /// Reads where partitions begin, end or go on, and returns the first error. `which` of two offsets counts: of what is
    /// known so far, and of what the answer says. A group that has committed nothing has -1, and begins where the
    /// partition does.
    fn read_offsets(
        &mut self,
        api: Api,
        answer: &[u8],
        which: fn(u64, u64) -> u64,
    ) -> Result<i16, Fault> {
        let parts = &mut self.parts;
        let (mut first, mut count) = (errors::NONE, 0);
        let read = read_partitions(api, answer, &self.topic, |said| {
            let part = find(parts, said.partition).ok_or(Malformed)?;
            count += 1;
            if first == errors::NONE {
                first = said.error;
            }
            if said.error == errors::NONE
                && let Ok(offset) = u64::try_from(said.offset)
            {
                part.next = which(part.next, offset);
                (part.settled, part.committed) = (part.next, part.next);
            }
            Ok(())
        });
        read.map_err(|Malformed| malformed(api))?;
        if count < self.parts.len() && first == errors::NONE {
            return Err(malformed(api));
        }
        Ok(first)
    }

    fn ready(&mut self, heard: &mut dyn FnMut(Heard<'_>)) {
        self.is_ready = true;
        heard(Heard::Ready);
    }

    fn settle(&mut self, handle: u64) {
        let partition = u32::try_from(handle >> OFFSET_BITS).unwrap_or(u32::MAX);
        let offset = handle & ((1 << OFFSET_BITS) - 1);
        if let Some(part) = find(&mut self.parts, partition) {
            part.settled = part.settled.max(offset + 1);
            self.unsettled = self.unsettled.saturating_sub(1);
        }
    }

    fn commit(&mut self, out: &mut Vec<u8>) {
        let Some(group) = self.reading.group() else {
            return;
        };
        let moved = |part: &&Part| part.settled > part.committed;
        let count = self.parts.iter().filter(moved).count();
        if count == 0 || self.open.contains(&Asked::Commit) {
            return;
        }
        let number = self.numbers.ask();
        let offsets = self.parts.iter().filter(moved);
        let offsets = offsets.map(|part| (part.index, part.settled));
        put_offset_commit(out, number, group, &self.topic, count, offsets);
        for part in &mut self.parts {
            part.committed = part.settled;
        }
        self.open.push_back(Asked::Commit);
    }

    /// An offset that could not be committed is committed with the next one.
    fn committed(&self, answer: &[u8], heard: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault> {
        let read = read_partitions(OFFSET_COMMIT, answer, &self.topic, |said| {
            if said.error != errors::NONE {
                let why = format!("commit: {}", errors::words(said.error));
                heard(Heard::Refused {
                    tag: None,
                    why: &why,
                });
            }
            Ok(())
        });
        read.map_err(|Malformed| malformed(OFFSET_COMMIT))
    }

    fn fetch(&mut self, out: &mut Vec<u8>) {
        if self.unsettled >= self.prefetch || self.open.contains(&Asked::Fetch) {
            return;
        }
        let offsets = self.parts.iter().map(|part| (part.index, part.next));
        put_fetch(
            out,
            self.numbers.ask(),
            &self.topic,
            FETCH_MAX_BYTES,
            offsets,
        );
        self.open.push_back(Asked::Fetch);
    }

    fn fetched(&mut self, answer: &[u8], heard: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault> {
        let (parts, unsettled) = (&mut self.parts, &mut self.unsettled);
        let read = read_partitions(FETCH, answer, &self.topic, |said| {
            if said.error != errors::NONE {
                return Err(Bad::Error(said.error));
            }
            let part = find(parts, said.partition).ok_or(Bad::Unread(Unread::Malformed))?;
            deliver(part, &said, unsettled, heard)
        });
        read.map_err(|bad| match bad {
            Bad::Error(error) => failed(FETCH, error),
            Bad::Unread(Unread::Malformed) => malformed(FETCH),
            Bad::Unread(Unread::Magic(magic)) => kafka(format_args!(
                "the topic has record batches of version {magic}, not 2"
            )),
            Bad::Unread(Unread::Compressed) => kafka(format_args!(
                "the topic compresses; set compression.type=producer"
            )),
        })
    }
}

/// Why an answer to Fetch ends the connection.
enum Bad {
    Error(i16),
    Unread(Unread),
}

impl From<Unread> for Bad {
    fn from(unread: Unread) -> Self {
        Self::Unread(unread)
    }
}

impl From<Malformed> for Bad {
    fn from(malformed: Malformed) -> Self {
        Self::Unread(malformed.into())
    }
}

/// Delivers what came of a partition, from the first message on that did not come yet: a batch comes whole, even if a part
/// of it came before.
fn deliver(
    part: &mut Part,
    said: &Said<'_>,
    unsettled: &mut u64,
    heard: &mut dyn FnMut(Heard<'_>),
) -> Result<(), Bad> {
    let mut rest = said.batches;
    let begin = part.next;
    while let Some(batch) = take_batch(&mut rest)? {
        batch.messages(|record| {
            if record.offset < part.next {
                return Ok(());
            }
            if record.offset >> OFFSET_BITS != 0 {
                return Err(Unread::Malformed);
            }
            part.next = record.offset + 1;
            *unsettled += 1;
            heard(Heard::Delivered {
                payload: record.value,
                handle: u64::from(part.index) << OFFSET_BITS | record.offset,
                redelivered: false,
            });
            Ok(())
        })?;
        part.next = part.next.max(batch.end()?);
    }
    if !said.batches.is_empty() && part.next == begin {
        // Asking again would bring the same.
        return Err(Bad::Unread(Unread::Malformed));
    }
    Ok(())
}

fn find(parts: &mut [Part], partition: u32) -> Option<&mut Part> {
    parts.iter_mut().find(|part| part.index == partition)
}
