//! The streams that a client has open.

use std::collections::VecDeque;

use super::frame::WINDOW_MAX;
use super::head::Facts;
use super::violation::{Malformed, Violation};
use super::windows::{Outgoing, ReceiveWindow, STREAM_WINDOW, SendWindows};

/// How many interim answers may come before a final one.
const INTERIM_MAX: u8 = 32;

/// Of how many streams we remember that we gave them up. Frames that were on their way then are no violation.
const GIVEN_UP_MAX: usize = 1024;

/// How far the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// No final head.
    Waiting,
    /// Behind the head.
    Body,
}

/// What a frame of an answer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    Nothing,
    End,
    Malformed(Malformed),
}

/// One request and its answer.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// Its template.
    pub(super) kind: u32,
    pub(super) number: u64,
    is_head: bool,
    interim: u8,
    pub(super) progress: Progress,
    pub(super) body: Outgoing,
    pub(super) receive: ReceiveWindow,
    /// How much of the answer's body is to come, if its head says it.
    missing: Option<u64>,
}

impl Stream {
    pub(super) fn new(id: u32, kind: u32, number: u64, is_head: bool, body: Outgoing) -> Self {
        Self {
            id,
            kind,
            number,
            is_head,
            interim: 0,
            progress: Progress::Waiting,
            body,
            receive: ReceiveWindow::new(STREAM_WINDOW),
            missing: None,
        }
    }

    pub(super) fn is_in_answer(&self) -> bool {
        self.progress != Progress::Waiting || self.interim > 0
    }

    /// A header block came.
    #[inline]
    pub(super) fn head(&mut self, facts: Facts, ends: bool) -> Reaction {
        if let Some(malformed) = facts.malformed {
            return Reaction::Malformed(malformed);
        }
        if self.progress == Progress::Body {
            return self.trailers(facts, ends);
        }
        let Some(status) = facts.status else {
            return Reaction::Malformed(Malformed::PseudoFields);
        };
        if status < 200 {
            return self.interim(ends);
        }
        self.progress = Progress::Body;
        let has_no_body = self.is_head || status == 204 || status == 304;
        self.missing = if has_no_body {
            Some(0)
        } else {
            facts.content_length
        };
        self.end_if(ends)
    }

    #[cold]
    fn interim(&mut self, ends: bool) -> Reaction {
        self.interim += 1;
        if ends {
            Reaction::Malformed(Malformed::InterimEnd)
        } else if self.interim > INTERIM_MAX {
            Reaction::Malformed(Malformed::TooManyInterim)
        } else {
            Reaction::Nothing
        }
    }

    #[cold]
    fn trailers(&self, facts: Facts, ends: bool) -> Reaction {
        if facts.status.is_some() || facts.request_fields != 0 {
            Reaction::Malformed(Malformed::PseudoFields)
        } else if ends {
            self.end_if(true)
        } else {
            Reaction::Malformed(Malformed::Trailers)
        }
    }

    /// Bytes of the body came; the head was there. Returns those that the answer may have.
    #[inline]
    pub(super) fn data<'a>(&mut self, bytes: &'a [u8], ends: bool) -> (&'a [u8], Reaction) {
        if let Some(missing) = &mut self.missing {
            match missing.checked_sub(bytes.len() as u64) {
                Some(left) => *missing = left,
                None if self.is_head => return (&[], Reaction::Malformed(Malformed::Data)),
                // It fits: fewer are missing than there are.
                None => {
                    let fitting = &bytes[..*missing as usize];
                    return (fitting, Reaction::Malformed(Malformed::Length));
                }
            }
        }
        (bytes, self.end_if(ends))
    }

    fn end_if(&self, ends: bool) -> Reaction {
        match (ends, self.missing) {
            (false, _) => Reaction::Nothing,
            (true, None | Some(0)) => Reaction::End,
            (true, Some(_)) => Reaction::Malformed(Malformed::Length),
        }
    }
}

/// The open streams, and those that were given up.
///
/// A plain list: answers come about in the order of the requests, so a stream is found near the beginning.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: Vec<Stream>,
    given_up: VecDeque<u32>,
    /// How many have some of their body to send.
    pub(super) sending: u32,
}

impl Streams {
    pub(super) fn len(&self) -> u32 {
        self.open.len() as u32
    }

    pub(super) fn push(&mut self, stream: Stream) {
        self.sending += u32::from(stream.body.left > 0);
        self.open.push(stream);
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        self.open.iter().position(|stream| stream.id == id)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Stream> {
        self.place(id).map(|place| &self.open[place])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.place(id).map(|place| &mut self.open[place])
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        let stream = self.open.swap_remove(self.place(id)?);
        self.sending -= u32::from(stream.body.left > 0);
        Some(stream)
    }

    pub(super) fn give_up(&mut self, id: u32) {
        self.remove(id);
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(id);
    }

    pub(super) fn was_given_up(&self, id: u32) -> bool {
        self.given_up.contains(&id)
    }

    /// The lowest open stream above `id`.
    pub(super) fn first_above(&self, id: u32) -> Option<u32> {
        self.open
            .iter()
            .map(|stream| stream.id)
            .filter(|other| *other > id)
            .min()
    }

    pub(super) fn drain(&mut self, mut on_stream: impl FnMut(&Stream)) {
        self.open.sort_unstable_by_key(|stream| stream.id);
        self.open.iter().for_each(&mut on_stream);
        self.open.clear();
        self.sending = 0;
    }

    /// The peer's SETTINGS_INITIAL_WINDOW_SIZE: open streams change by the difference.
    pub(super) fn set_initial(
        &mut self,
        send: &mut SendWindows,
        value: u32,
    ) -> Result<(), Violation> {
        if value > WINDOW_MAX {
            return Err(Violation::WindowOverflow);
        }
        let difference = i64::from(value) - send.initial;
        send.initial = i64::from(value);
        for stream in &mut self.open {
            stream.body.window += difference;
            if stream.body.window > i64::from(WINDOW_MAX) {
                return Err(Violation::WindowOverflow);
            }
        }
        Ok(())
    }
}
