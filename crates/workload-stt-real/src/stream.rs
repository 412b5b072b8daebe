//! One stream, or one turn of a lane, without its connection: what it says, what it heard, and where it stands.

use std::sync::Arc;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::Disconnect;
use plimsoll_protocol::life::Life;
use plimsoll_speech::ledger::Account;
use serde::{Deserialize, Serialize};

use crate::book::Book;
use crate::dialect::{Incoming, Kind, Message, ReadyAt, Transcription};
use crate::hearing::{Ears, Heard, Next};
use crate::machines::Shared;

/// How often a session is kept alive between its last frame and its last result, where the server says no time of its own.
const KEEP_ALIVE_EVERY_NS: u64 = 5 * NS_PER_S;

/// What a session keeps until the trial is settled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The session's number.
    pub(crate) id: u32,
    /// When it was open: its script follows from that.
    pub(crate) open_ns: u64,
    /// What became of its frames and utterances.
    pub(crate) account: Account,
    /// What it heard.
    pub(crate) heard: Heard,
    /// It asked for the end of its audio's results, and the server did not say that there are no more.
    pub(crate) waits_for_end: bool,
}

/// The stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) shared: Arc<Shared>,
    pub(crate) plan: SessionPlan,
    pub(crate) life: Life,
    transcription: Box<dyn Transcription>,
    ears: Ears,
    /// When it was open.
    pub(crate) open_ns: u64,
    /// Its frames, once it is open.
    pub(crate) book: Option<Book>,
    pub(crate) end: End,
    /// Messages to be written before the next frame.
    pub(crate) out: Vec<Message>,
    /// The connection is to be closed.
    pub(crate) closes: bool,
}

/// How far the end of the audio has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Frames are still due.
    NotYet,
    /// The server was told. When something has to be written again, so that it goes on.
    Told { next_ns: u64 },
    /// The server has said everything.
    Drained,
}

impl Stream {
    pub(crate) fn new(shared: &Arc<Shared>, plan: &SessionPlan) -> Self {
        Self {
            transcription: shared.dialect.transcription(),
            shared: Arc::clone(shared),
            plan: *plan,
            life: Life::Opening,
            ears: Ears::new(),
            open_ns: 0,
            book: None,
            end: End::NotYet,
            out: Vec::new(),
            closes: false,
        }
    }

    /// Messages can be sent.
    pub(crate) fn greet(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        self.out
            .extend(self.shared.dialect.opening(u64::from(self.plan.id)));
        if self.shared.dialect.facts().ready_at == ReadyAt::Open {
            self.open(now_ns, recorder);
        }
    }

    fn open(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        if self.life != Life::Opening {
            return;
        }
        self.life = Life::Open;
        self.open_ns = now_ns;
        let script = self.shared.scripts.of(&self.plan, now_ns);
        let window = self.shared.scripts.window();
        self.book = Some(Book::new(script, window, self.shared.silence_decidable));
        recorder.session_started();
    }

    /// The connection is over. Whoever has all its results did not die.
    pub(crate) fn over(&mut self, reason: &str, recorder: &mut Recorder<Claim>) {
        if self.end == End::Drained && self.life == Life::Open {
            self.life = Life::Finished;
            recorder.session_left();
        } else {
            self.life.over(reason, recorder);
        }
    }

    fn took(&mut self, next: Next, now_ns: u64, recorder: &mut Recorder<Claim>) {
        let is_open = self.life == Life::Open;
        match next {
            Next::GoOn => {}
            Next::Ready => self.open(now_ns, recorder),
            Next::Drained if matches!(self.end, End::Told { .. }) => {
                self.end = End::Drained;
                self.closes = true;
                if is_open {
                    self.life = Life::Finished;
                    recorder.session_left();
                }
            }
            Next::Drained => self.over("the server ended the session before we did", recorder),
            Next::Refused(kind) => self.over(&reason("refused", kind), recorder),
            Next::Ended(kind) => self.over(&reason("ended by the server", kind), recorder),
        }
    }

    pub(crate) fn came(
        &mut self,
        incoming: Incoming<'_>,
        now_ns: u64,
        recorder: &mut Recorder<Claim>,
    ) {
        let written_ns = self.book.as_ref().map_or(0, Book::written_ns);
        let mut steps = Vec::new();
        {
            let Self {
                transcription,
                ears,
                book,
                shared,
                ..
            } = &mut *self;
            let clips = shared.scripts.clips();
            transcription.parse(incoming, written_ns, &mut |event| {
                let next = ears.event(&event, now_ns, (book.as_mut(), clips), recorder);
                if next != Next::GoOn {
                    steps.push(next);
                }
            });
        }
        for next in steps {
            self.took(next, now_ns, recorder);
        }
        if let Incoming::Closed { code, .. } = incoming {
            let code = code.map_or_else(
                || "without a code".to_owned(),
                |code| format!("with code {code}"),
            );
            self.over(&format!("closed by the target {code}"), recorder);
        }
    }

    /// A frame was written. It may have been the last one, or that of a turn of the client's.
    pub(crate) fn said(&mut self, write_ns: u64, recorder: &mut Recorder<Claim>) {
        let Some(book) = &mut self.book else {
            return;
        };
        book.wrote(write_ns, recorder);
        let written_ns = book.written_ns();
        if book.next_due_ns().is_none() {
            let end = self.transcription.end(book.written(), written_ns);
            self.out.extend(end);
            book.flushed(write_ns);
            self.end = End::Told {
                next_ns: write_ns.saturating_add(self.shared.between_ns()),
            };
        } else if book.ended_an_utterance()
            && let Some(message) = self.transcription.flush(written_ns)
        {
            self.out.push(message);
            book.flushed(write_ns);
        }
    }

    /// Silence was written so that the server goes on.
    pub(crate) fn filled(&mut self) {
        if let End::Told { next_ns } = &mut self.end {
            *next_ns = next_ns.saturating_add(self.shared.between_ns());
        }
    }

    /// The time of something between the last frame and the last result has come.
    pub(crate) fn woke(&mut self, now_ns: u64) {
        let End::Told { next_ns } = self.end else {
            return;
        };
        let silent = self.shared.dialect.facts().silence_to_drain;
        if now_ns >= next_ns
            && !silent
            && let Some(message) = self.shared.dialect.keep_alive()
        {
            self.out.push(message);
            self.end = End::Told {
                next_ns: now_ns.saturating_add(self.shared.between_ns()),
            };
        }
    }

    /// When something is due that can be written.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        if self.life != Life::Open {
            return None;
        }
        match self.end {
            End::NotYet => self.book.as_ref()?.next_due_ns(),
            End::Told { next_ns } => self.shared.goes_on().then_some(next_ns),
            End::Drained => None,
        }
    }

    /// The memory that it takes by what the server said.
    pub(crate) fn held_bytes(&self) -> usize {
        self.ears.held_bytes()
    }

    /// The socket is gone.
    pub(crate) fn disconnected(
        &mut self,
        now_ns: u64,
        how: Disconnect,
        recorder: &mut Recorder<Claim>,
    ) {
        if how == Disconnect::Closed && self.life == Life::Open {
            // To some dialects a close is the last word.
            let closed = Incoming::Closed {
                code: None,
                reason: "",
            };
            self.came(closed, now_ns, recorder);
        }
        self.over(how.reason(), recorder);
    }

    /// The trial is over.
    pub(crate) fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        let planned = self.plan.connect_at_ns <= now_ns;
        if self.life == Life::Opening && planned && now_ns >= self.plan.window.start_ns {
            recorder.session_failed(Disconnect::TimedOut.reason());
        }
        let waits_for_end = self.life == Life::Open && matches!(self.end, End::Told { .. });
        self.closes |= self.life == Life::Open;
        self.life = Life::Finished;
        if let Some(book) = self.book.take() {
            let account = book.finish(now_ns, recorder);
            let ears = std::mem::replace(&mut self.ears, Ears::new());
            recorder.claims.push(Claim {
                id: self.plan.id,
                open_ns: self.open_ns,
                account,
                heard: ears.into_heard(),
                waits_for_end,
            });
        }
    }
}

fn reason(what: &str, kind: Kind) -> String {
    format!("{what}: {}", kind.name())
}

impl Shared {
    /// Whether something is written between the last frame and the last result.
    fn goes_on(&self) -> bool {
        self.dialect.facts().silence_to_drain || self.dialect.keep_alive().is_some()
    }

    /// How long after the last message that is.
    pub(crate) fn between_ns(&self) -> u64 {
        if self.dialect.facts().silence_to_drain {
            return self.dialect.audio().frame_ns;
        }
        let idle_ms = self.dialect.limits().idle_ms;
        idle_ms.map_or(KEEP_ALIVE_EVERY_NS, |ms| ms * NS_PER_MS / 2)
    }
}
