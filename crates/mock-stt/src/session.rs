//! A session without I/O: messages and the time in, messages out.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::audio::{Decoder, Encoding, Format};
use crate::config::Config;
use crate::corpus::Corpus;
use crate::dialect::{Ask, Dialect, Framing, Incoming, Out, Outgoing, Refusal};
use crate::ear::Ear;
use crate::faults::Fault;
use crate::recogniser::{Noticed, Pace, Recogniser};
use crate::scribe::{Event, Others, Scribe};
use crate::stats::Stats;

const NS_PER_MS: u64 = 1_000_000;
/// After so much audio faults `stall` and `close` begin, in ms.
const AFTER_MS: u64 = 5_000;
/// The payload of fault `huge-message`.
const HUGE_BYTES: usize = 2 << 20;
/// Finals that are remembered, so that one session can have the text of another.
const SAID_MAX: usize = 8;

/// What all sessions share.
#[derive(Debug, Default)]
pub struct Book {
    /// The clips.
    pub corpus: Corpus,
    /// The counts.
    pub stats: Stats,
    /// What sessions said last.
    said: VecDeque<(u64, Vec<Arc<str>>)>,
}

impl Book {
    /// A book of these clips.
    #[must_use]
    pub fn new(corpus: Corpus) -> Self {
        Self {
            corpus,
            ..Self::default()
        }
    }

    fn others(&self, session: u64, loaded_sessions: u64) -> Others {
        let mut said = self.said.iter().rev();
        let other = said.find(|(number, _)| *number != session);
        Others {
            text: other.map(|(_, text)| text.clone()).unwrap_or_default(),
            loaded: self.stats.counts.sessions_open >= loaded_sessions,
        }
    }

    fn remember(&mut self, session: u64, text: Vec<Arc<str>>) {
        if self.said.len() == SAID_MAX {
            self.said.pop_front();
        }
        self.said.push_back((session, text));
    }
}

/// What makes a session what it is.
#[derive(Debug)]
pub struct Opening {
    /// Its number, from 0.
    pub number: u64,
    /// What it speaks.
    pub dialect: Box<dyn Dialect>,
    /// What is wrong with it.
    pub fault: Option<Fault>,
    /// Why it is refused, if it is refused in the session.
    pub refusal: Option<Refusal>,
}

/// Results that are not handed over yet.
#[derive(Debug)]
struct Pending {
    due_ns: u64,
    events: Vec<Event>,
    goodbye: bool,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    opening: Opening,
    pace: Pace,
    delay_ns: u64,
    loaded_sessions: u64,
    recogniser: Option<(Recogniser, Encoding)>,
    decoder: Decoder,
    scribe: Scribe,
    pending: VecDeque<Pending>,
    finals: u64,
    /// Faults that have begun.
    stalled: bool,
    endless: bool,
}

impl Session {
    /// A session that is open.
    #[must_use]
    pub fn new(opening: Opening, config: &Config) -> Self {
        let pace = Pace {
            endpointing_ms: config.endpointing_ms,
            interim_ms: config.interim_ms,
            client_turns: false,
        };
        Self {
            pace,
            delay_ns: config.delay_ms * NS_PER_MS,
            loaded_sessions: config.loaded_sessions,
            recogniser: None,
            decoder: Decoder::default(),
            scribe: Scribe::new(opening.fault),
            pending: VecDeque::new(),
            finals: 0,
            stalled: false,
            endless: false,
            opening,
        }
    }

    /// What the server says first.
    pub fn open(&mut self, book: &mut Book, out: &mut Out) {
        let dialect = &mut self.opening.dialect;
        if self.opening.refusal.is_some() && !dialect.hears_before_it_refuses() {
            self.refuse("", book, out);
        } else {
            dialect.greeting(out);
        }
    }

    /// How long the session may be without a message, in ms.
    #[must_use]
    pub fn idle_ms(&self) -> Option<u64> {
        self.opening.dialect.idle_ms()
    }

    /// Nothing came for so long.
    pub fn idle(&mut self, out: &mut Out) {
        self.opening.dialect.idle(out);
    }

    /// When the next results are to be handed over.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        self.pending.front().map(|next| next.due_ns)
    }

    /// A message of the client, which came at this time. Returns how much audio it was, in ms.
    pub fn take(
        &mut self,
        incoming: Incoming<'_>,
        now_ns: u64,
        book: &mut Book,
        out: &mut Out,
    ) -> u64 {
        if self.opening.refusal.is_some() {
            let heard = match incoming {
                Incoming::Text(text) => text,
                Incoming::Binary(_) | Incoming::Bytes(_) => "",
            };
            self.refuse(heard, book, out);
            return 0;
        }
        let mut asks = Vec::new();
        self.opening.dialect.take(incoming, &mut asks, out);
        let before_ms = self.heard_ms();
        for ask in asks {
            self.ask(ask, now_ns, book, out);
        }
        self.heard_ms() - before_ms
    }

    fn refuse(&mut self, heard: &str, book: &mut Book, out: &mut Out) {
        let Some(refusal) = self.opening.refusal else {
            return;
        };
        if let Some(fault @ (Fault::Unauthorized | Fault::RateLimited | Fault::Capacity)) =
            self.opening.fault
        {
            book.stats.fault(fault);
        }
        self.opening.dialect.refuse(refusal, heard, out);
        if !out.closes() {
            out.drop_line();
        }
    }

    fn heard_ms(&self) -> u64 {
        let recogniser = self.recogniser.as_ref();
        recogniser.map_or(0, |(recogniser, _)| recogniser.heard_ms())
    }

    fn ask(&mut self, ask: Ask, now_ns: u64, book: &mut Book, out: &mut Out) {
        let mut noticed = Vec::new();
        match &ask {
            Ask::Audio(bytes) => self.hear(bytes, book, &mut noticed),
            Ask::Flush | Ask::End => {
                if let Some((recogniser, _)) = &mut self.recogniser {
                    recogniser.flush(&mut noticed);
                }
            }
            Ask::Leave => {}
        }
        let mut events = Vec::new();
        if !noticed.is_empty() {
            self.write_down(noticed, book, &mut events);
        }
        if matches!(ask, Ask::Flush | Ask::End) {
            events.push(Event::Flushed);
        }
        let heard_ms = self.heard_ms();
        if matches!(ask, Ask::Audio(_)) {
            events.push(Event::Message { heard_ms });
            if self.opening.fault == Some(Fault::Close) && heard_ms >= AFTER_MS && !out.closes() {
                book.stats.fault(Fault::Close);
                return self.opening.dialect.fail(out);
            }
        }
        self.later(
            now_ns,
            heard_ms,
            events,
            matches!(ask, Ask::End | Ask::Leave),
        );
    }

    fn write_down(&mut self, noticed: Vec<Noticed>, book: &mut Book, events: &mut Vec<Event>) {
        let others = book.others(self.opening.number, self.loaded_sessions);
        for noticed in noticed {
            let is_over = matches!(noticed, Noticed::Over { .. });
            self.scribe.write(noticed, &others, events);
            if is_over {
                book.remember(self.opening.number, self.scribe.heard().to_vec());
                if let Some(fault) = self.scribe.errs(&others) {
                    book.stats.fault(fault);
                }
            }
        }
    }

    fn hear(&mut self, bytes: &[u8], book: &mut Book, noticed: &mut Vec<Noticed>) {
        let dialect = &self.opening.dialect;
        let (recogniser, encoding) = self.recogniser.get_or_insert_with(|| {
            let format: Format = dialect.format();
            let ear = Ear::new(book.corpus.bank(format));
            let pace = Pace {
                client_turns: dialect.client_turns(),
                ..self.pace
            };
            let recogniser = Recogniser::new(ear, format.rate_hz, pace);
            (recogniser, format.encoding)
        });
        let mut pcm = Vec::with_capacity(bytes.len());
        self.decoder.decode(*encoding, bytes, &mut pcm);
        let (before_ms, unknown_ms) = (recogniser.heard_ms(), recogniser.unknown_ms());
        recogniser.hear(&book.corpus, &pcm, noticed);
        let counts = &mut book.stats.counts;
        counts.audio_ms += recogniser.heard_ms() - before_ms;
        // It shrinks where a block names the clip of those before.
        counts.audio_unknown_ms =
            (counts.audio_unknown_ms + recogniser.unknown_ms()).saturating_sub(unknown_ms);
    }

    /// Results are handed over in order, each after the delay.
    fn later(&mut self, now_ns: u64, heard_ms: u64, events: Vec<Event>, goodbye: bool) {
        let growing = self.opening.fault == Some(Fault::GrowingLag);
        let lag_ns = if growing {
            heard_ms * NS_PER_MS / 10
        } else {
            0
        };
        let after_ns = self.pending.back().map_or(0, |last| last.due_ns);
        self.pending.push_back(Pending {
            due_ns: after_ns.max(now_ns + self.delay_ns + lag_ns),
            events,
            goodbye,
        });
    }

    /// Hands over the results that are due.
    pub fn hand_over(&mut self, now_ns: u64, book: &mut Book, out: &mut Out) {
        while let Some(next) = self.pending.pop_front_if(|next| next.due_ns <= now_ns) {
            book.stats.late(now_ns - next.due_ns);
            for event in &next.events {
                self.tell(event, book, out);
            }
            if next.goodbye {
                self.goodbye(book, out);
            }
        }
    }

    fn tell(&mut self, event: &Event, book: &mut Book, out: &mut Out) {
        if let Event::Message { heard_ms } = event
            && self.opening.fault == Some(Fault::Stall)
            && *heard_ms >= AFTER_MS
            && !self.stalled
        {
            self.stalled = true;
            book.stats.fault(Fault::Stall);
        }
        if self.stalled || (*event == Event::Flushed && self.never_ends(book)) {
            return;
        }
        self.opening.dialect.tell(event, out);
        match event {
            Event::Interim { .. } => book.stats.counts.interims += 1,
            Event::Final(told) if !told.words.is_empty() => {
                book.stats.counts.finals += 1;
                book.stats.counts.words += told.words.len() as u64;
                self.finals += 1;
                self.after_a_final(book, out);
            }
            _ => {}
        }
    }

    fn after_a_final(&mut self, book: &mut Book, out: &mut Out) {
        let framing = self.opening.dialect.framing();
        match self.opening.fault {
            Some(Fault::BadJson) => out.0.push(broken(framing)),
            Some(Fault::HugeMessage) if self.finals == 1 => out.0.push(huge(framing)),
            Some(Fault::GrowingLag) => {}
            _ => return,
        }
        if let Some(fault) = self.opening.fault {
            book.stats.fault(fault);
        }
    }

    /// Whether the end that was asked for does not come.
    fn never_ends(&mut self, book: &mut Book) -> bool {
        let endless = self.opening.fault == Some(Fault::NoEnd);
        if endless && !std::mem::replace(&mut self.endless, true) {
            book.stats.fault(Fault::NoEnd);
        }
        endless
    }

    fn goodbye(&mut self, book: &mut Book, out: &mut Out) {
        if self.stalled || self.never_ends(book) {
            return;
        }
        book.stats.counts.sessions_ended += 1;
        let heard_ms = self.heard_ms();
        self.opening.dialect.goodbye(heard_ms, out);
    }
}

/// A message that cannot be read.
fn broken(framing: Framing) -> Outgoing {
    let half = r#"{"type":"#;
    match framing {
        Framing::Text => Outgoing::Text(half.to_owned()),
        // A map of one pair, whose key is a text of three bytes. Two of them follow.
        Framing::MessagePack => Outgoing::Binary(vec![0x81, 0xA3, b't', b'y']),
        Framing::Stream => Outgoing::Binary(format!("{half}\n").into_bytes()),
    }
}

/// A message of 2 MiB, of a type that nobody knows.
fn huge(framing: Framing) -> Outgoing {
    let padding = "x".repeat(HUGE_BYTES);
    match framing {
        Framing::Text => Outgoing::Text(format!(
            r#"{{"type":"Padding","message":"Padding","padding":"{padding}"}}"#
        )),
        Framing::MessagePack => {
            let mut bytes = b"\x82\xA4type\xA7Padding\xA7padding\xDB".to_vec();
            let length = u32::try_from(HUGE_BYTES).unwrap_or_else(|_| unreachable!("2 MiB"));
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(padding.as_bytes());
            Outgoing::Binary(bytes)
        }
        Framing::Stream => {
            let data = format!(r#"{{"padding":"{padding}"}}"#);
            let line = format!("{{\"type\":\"padding\",\"data_length\":{}}}\n", data.len());
            Outgoing::Binary((line + &data).into_bytes())
        }
    }
}
