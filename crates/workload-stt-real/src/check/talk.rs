//! A session with a server, as cases have it: audio goes out in its own time, and what comes is noted meanwhile.

use std::time::{Duration, Instant};

use super::audio::Speech;
use super::heard::{Heard, seconds, told};
use super::line::{Arrival, Line, Opened};
use super::site::Server;
use crate::dialect::{Dialect, Incoming, Kind, Message, ReadyAt, Transcription};

/// So often a wait looks whether the user wants no more.
const SLICE: Duration = Duration::from_millis(200);

/// Why a session did not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotOpened {
    /// What the refusal is about, if it was one.
    pub(super) kind: Option<Kind>,
    /// In words.
    pub(super) seen: String,
}

impl From<String> for NotOpened {
    fn from(seen: String) -> Self {
        Self { kind: None, seen }
    }
}

impl From<NotOpened> for String {
    fn from(not: NotOpened) -> Self {
        format!("the session did not open: {}", not.seen)
    }
}

/// A session.
pub(super) struct Talk<'a> {
    server: &'a Server<'a>,
    dialect: &'a dyn Dialect,
    transcription: Box<dyn Transcription>,
    line: Line,
    /// A frame of silence.
    silence: Option<Vec<u8>>,
    /// When the first frame was due.
    began: Option<Instant>,
    messages: u64,
    written_ns: u64,
    pub(super) heard: Heard,
}

impl<'a> Talk<'a> {
    /// Opens a session and waits until it takes audio; a server that says nothing then is watched for a refusal.
    pub(super) fn open(
        server: &'a Server<'a>,
        dialect: &'a dyn Dialect,
    ) -> Result<Self, NotOpened> {
        let mut talk = Self::connect(server, dialect)?;
        for message in dialect.opening(server.next_number()) {
            talk.send(&message);
        }
        let limit = match dialect.facts().ready_at {
            ReadyAt::Message => server.times.patience,
            ReadyAt::Open => server.times.look,
        };
        let is_settled = |heard: &Heard| heard.is_ready || heard.is_over();
        talk.listen(limit, |heard| is_settled(heard) || !heard.errors.is_empty());
        if !talk.heard.errors.is_empty() {
            // It may leave the session open, and nothing more may come.
            talk.listen(server.times.look, is_settled);
        }
        let heard = &talk.heard;
        let is_open = heard.is_ready || dialect.facts().ready_at == ReadyAt::Open;
        if is_open && !heard.is_over() {
            return Ok(talk);
        }
        let remarks = talk.remarks();
        let seen = match remarks.strip_prefix("; ") {
            Some(remarks) => remarks.to_owned(),
            None => format!("nothing within {}", in_words(limit)),
        };
        Err(NotOpened {
            kind: talk.heard.refused,
            seen,
        })
    }

    /// A connection on which nothing was said.
    pub(super) fn connect(
        server: &'a Server<'a>,
        dialect: &'a dyn Dialect,
    ) -> Result<Self, NotOpened> {
        let mut transcription = dialect.transcription();
        let mut heard = Heard::new(dialect.facts());
        match Line::open(server, dialect.connect())? {
            Opened::Line(line) => Ok(Self {
                server,
                dialect,
                transcription,
                line,
                silence: None,
                began: None,
                messages: 0,
                written_ns: 0,
                heard,
            }),
            Opened::Refused { status, headers } => {
                let named = dialect.refusal_header();
                let is_named = |(name, _): &&(String, String)| {
                    named.is_some_and(|named| name.eq_ignore_ascii_case(named))
                };
                let reason = headers.iter().find(is_named);
                let reason = reason.map_or("", |(_, reason)| reason);
                let incoming = Incoming::Refused { status, reason };
                transcription.parse(incoming, 0, &mut |event| heard.note(event, 0));
                let kind = heard.refused.map(|kind| format!(" ({})", told(kind)));
                let reason = match reason {
                    "" => String::new(),
                    reason => format!(", {reason:?}"),
                };
                Err(NotOpened {
                    kind: heard.refused,
                    seen: format!("status {status}{reason}{}", kind.unwrap_or_default()),
                })
            }
        }
    }

    /// Sends a message. If the server takes none any more, what it said last says why.
    pub(super) fn send(&mut self, message: &Message) {
        if self.heard.over.is_some() {
            return;
        }
        if let Err(error) = self.line.write(message) {
            self.listen(self.server.times.look, |_| false);
            self.heard.over.get_or_insert(error);
        }
    }

    /// Sends frames of audio, each in its time.
    pub(super) fn say(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            let began = *self.began.get_or_insert_with(Instant::now);
            let at_ns = self.written_ns / u64::from(self.server.times.speed.max(1));
            self.listen_until(began + Duration::from_nanos(at_ns), |_| false);
            if self.heard.is_over() || self.server.is_stopped() {
                return;
            }
            let message = self.dialect.pack(frame);
            self.messages += 1;
            self.written_ns += self.dialect.audio().frame_ns;
            self.send(&message);
        }
    }

    /// Says a speech. Where the dialect drops at its end what is not final, silence follows until it was all heard.
    pub(super) fn say_all(&mut self, speech: &Speech) {
        self.say(&speech.frames);
        if !self.dialect.facts().says_drained {
            let reached = speech.reached_at_ns();
            self.say_silence(|heard| heard.reached_ns() >= reached);
        }
    }

    /// Sends silence until it is enough, or patience ends; whether it is enough.
    fn say_silence(&mut self, enough: impl Fn(&Heard) -> bool) -> bool {
        let until = Instant::now() + self.server.times.patience;
        let frame = self.silence.take().unwrap_or_else(|| {
            let audio = self.dialect.audio();
            let length = Duration::from_nanos(audio.frame_ns);
            Speech::silence(length, audio).frames.remove(0)
        });
        let frames = [frame];
        while !enough(&self.heard)
            && !self.heard.is_over()
            && !self.server.is_stopped()
            && Instant::now() < until
        {
            self.say(&frames);
        }
        let [frame] = frames;
        self.silence = Some(frame);
        enough(&self.heard)
    }

    /// Asks for the finals of all audio so far; `false` if the dialect has no message for that.
    pub(super) fn flush(&mut self) -> bool {
        let message = self.transcription.flush(self.written_ns);
        message.map(|message| self.send(&message)).is_some()
    }

    /// Asks for the end, and waits for it: how long that took.
    pub(super) fn end(&mut self) -> Result<Duration, String> {
        if self.heard.is_over() {
            return Err(format!(
                "the session was over at {} of audio, before its end was asked for{}",
                seconds(self.written_ns),
                self.remarks()
            ));
        }
        let asked = Instant::now();
        match self.transcription.end(self.messages, self.written_ns) {
            Some(message) => self.send(&message),
            None => self.line.close()?,
        }
        let drained = |heard: &Heard| heard.is_drained;
        let came = match self.dialect.facts().silence_to_drain {
            true => self.say_silence(drained),
            false => self.listen(self.server.times.patience, drained),
        };
        match came {
            true => Ok(asked.elapsed()),
            false => Err(format!(
                "asked for the end, nothing said that all is transcribed within {}{}",
                in_words(asked.elapsed()),
                self.remarks()
            )),
        }
    }

    /// Notes what comes until it is enough, the connection is over, or so much time has passed; whether it is enough.
    pub(super) fn listen(&mut self, limit: Duration, enough: impl Fn(&Heard) -> bool) -> bool {
        self.listen_until(Instant::now() + limit, enough)
    }

    fn listen_until(&mut self, until: Instant, enough: impl Fn(&Heard) -> bool) -> bool {
        loop {
            if enough(&self.heard) {
                return true;
            }
            let now = Instant::now();
            if self.heard.over.is_some() || now >= until || self.server.is_stopped() {
                return false;
            }
            if let Some(arrival) = self.line.next(until.min(now + SLICE)) {
                self.hear(&arrival);
            }
        }
    }

    fn hear(&mut self, arrival: &Arrival) {
        let (heard, written_ns) = (&mut self.heard, self.written_ns);
        let incoming = match arrival {
            Arrival::Text(text) => Incoming::Text(text),
            Arrival::Binary(bytes) => Incoming::Binary(bytes),
            Arrival::Bytes(bytes) => Incoming::Bytes(bytes),
            Arrival::Closed { code, reason } => {
                heard.over = Some(closed(*code, reason));
                Incoming::Closed {
                    code: *code,
                    reason,
                }
            }
            Arrival::Ended => {
                heard.over = Some("the connection ended without a close".to_owned());
                return;
            }
            Arrival::Broke(why) => {
                (heard.over, heard.broke) = (Some(why.clone()), true);
                return;
            }
        };
        self.transcription
            .parse(incoming, written_ns, &mut |event| {
                heard.note(event, written_ns);
            });
    }

    /// What went wrong, to end a sentence. After an error the server closes, and how it does says more.
    pub(super) fn remarks(&mut self) -> String {
        if self.heard.is_over() {
            self.listen(self.server.times.look, |_| false);
        }
        self.heard.remarks()
    }

    /// How much audio was written.
    pub(super) fn written_ns(&self) -> u64 {
        self.written_ns
    }
}

fn closed(code: Option<u16>, reason: &str) -> String {
    match (code, reason) {
        (None, _) => "the server closed without a code".to_owned(),
        (Some(code), "") => format!("the server closed with {code}"),
        (Some(code), reason) => format!("the server closed with {code} {reason:?}"),
    }
}

/// A time as a reader wants it.
pub(super) fn in_words(time: Duration) -> String {
    match time.as_millis() {
        ms if ms < 10_000 => format!("{ms} ms"),
        _ => format!("{} s", time.as_secs()),
    }
}
