//! What one session has heard: results become entries of its book, and words are kept until the trial is settled.

use plimsoll_core::recorder::Recorder;
use plimsoll_speech::clip::Clip;
use plimsoll_speech::follow::Follower;
use plimsoll_speech::words::words;
use serde::{Deserialize, Serialize};

use crate::book::Book;
use crate::dialect::{Edge, Event, Kind};
use crate::script::Script;

/// The longest text that is kept of a session. Whoever speaks on is a fault, not a recogniser.
const TEXT_MAX_BYTES: usize = 1 << 20;

/// A text that will not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    /// When it came.
    pub(crate) at_ns: u64,
    /// The span that it speaks for, in the session's audio time, if the server told one.
    pub(crate) span_ns: Option<(u64, u64)>,
    /// As the server wrote it.
    pub(crate) text: String,
}

/// What a session heard beside its frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heard {
    pub(crate) said: Vec<Said>,
    /// When the server said that speech had ended, and where, in audio time.
    pub(crate) ends: Vec<(u64, u64)>,
    /// Messages of types that the dialect does not know.
    pub(crate) unknown: u64,
    /// Messages with words that may change.
    pub(crate) interims: u64,
}

/// Where a session stands after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It goes on.
    GoOn,
    /// The server takes audio.
    Ready,
    /// Nothing follows.
    Drained,
    /// The server did not take the session.
    Refused(Kind),
    /// The server ended it.
    Ended(Kind),
}

/// The ears of a session.
#[derive(Debug)]
pub(crate) struct Ears {
    heard: Heard,
    bytes: usize,
    /// For text without times: how far it has come. Made when the first such text comes.
    follower: Option<Following>,
}

/// Text that is matched to what is said.
#[derive(Debug)]
struct Following {
    follower: Follower<String>,
    /// What is said: each word, and when it is over, in audio time.
    spoken: Vec<(String, u64)>,
    /// How many of these words the text has reached.
    reached: usize,
    /// The piece of a word that came last: a piece of text may end within one.
    begun: String,
}

impl Following {
    fn new(script: &Script, clips: &[Clip]) -> Self {
        let spoken = script.audio.words(clips);
        Self {
            follower: Follower::new(spoken.iter().map(|word| word.word.to_owned()).collect()),
            spoken: spoken
                .iter()
                .map(|word| (word.word.to_owned(), word.end_ns))
                .collect(),
            reached: 0,
            begun: String::new(),
        }
    }

    /// How far a text has come, in audio time; `None` if it has no whole word. `is_whole`: no word goes on in the next one.
    fn text(&mut self, text: &str, is_whole: bool, written_ns: u64) -> Option<u64> {
        self.begun.push_str(text);
        let whole = match self.begun.rfind(char::is_whitespace) {
            _ if is_whole => self.begun.len(),
            end => end.unwrap_or(0),
        };
        let rest = self.begun.split_off(whole);
        let text = std::mem::replace(&mut self.begun, rest);
        let said = self
            .spoken
            .partition_point(|(_, end_ns)| *end_ns <= written_ns);
        let before = self.reached;
        for word in words(&text) {
            self.reached = self.follower.word(&word, said);
        }
        // The last word of an utterance has nothing behind it. If it is the one that is said next, it is whole.
        let next = self.spoken.get(self.reached).map(|(word, _)| word);
        let begun = words(&self.begun).pop();
        let is_next = begun.is_some() && begun.as_ref() == next;
        let reached = self.reached + usize::from(is_next);
        (reached > before).then(|| self.spoken[reached - 1].1)
    }
}

impl Ears {
    pub(crate) fn new() -> Self {
        Self {
            heard: Heard::default(),
            bytes: 0,
            follower: None,
        }
    }

    /// The memory that it takes by what the server said.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn into_heard(self) -> Heard {
        self.heard
    }

    /// The server says something. There is a book once the session is open.
    pub(crate) fn event<C>(
        &mut self,
        event: &Event<'_>,
        now_ns: u64,
        (book, clips): (Option<&mut Book>, &[Clip]),
        recorder: &mut Recorder<C>,
    ) -> Next {
        match event {
            Event::Ready => return Next::Ready,
            Event::Drained => {
                if let Some(book) = book {
                    self.rest_of_text(now_ns, book, recorder);
                }
                return Next::Drained;
            }
            Event::Refused { kind } => return Next::Refused(*kind),
            Event::Error { kind, fatal: true } => return Next::Ended(*kind),
            Event::Error { kind, fatal: false } => {
                recorder
                    .ledger
                    .because(&format!("error of the server: {}", kind.name()));
            }
            Event::Unknown => self.heard.unknown += 1,
            Event::Fault(fault) => recorder.protocol_fault(&fault.to_string()),
            Event::Speech {
                edge: Edge::End,
                at_ns,
            } => self.heard.ends.push((now_ns, *at_ns)),
            Event::Speech { .. } | Event::Received { .. } | Event::Ignored => {}
            Event::Interim { .. } | Event::Final { .. } | Event::Progress { .. } => match book {
                Some(book) => self.result(event, now_ns, (book, clips), recorder),
                None => recorder.protocol_fault("a result before any audio"),
            },
        }
        Next::GoOn
    }

    fn result<C>(
        &mut self,
        event: &Event<'_>,
        now_ns: u64,
        (book, clips): (&mut Book, &[Clip]),
        recorder: &mut Recorder<C>,
    ) {
        match *event {
            Event::Progress { upto_ns } => book.progress(now_ns, upto_ns, recorder),
            // A text of punctuation says nothing.
            Event::Interim { cursor_ns, text } if !words(text).is_empty() => {
                self.heard.interims += 1;
                let upto_ns = cursor_ns.unwrap_or_else(|| book.written_ns());
                book.interim(now_ns, upto_ns, recorder);
            }
            Event::Final {
                from_ns,
                to_ns: Some(to_ns),
                text,
                ..
            } => {
                let from_ns = from_ns.unwrap_or_else(|| book.cursor_ns());
                if words(text).is_empty() {
                    return book.progress(now_ns, to_ns, recorder);
                }
                book.final_text(now_ns, (from_ns, to_ns), recorder);
                self.keep(now_ns, Some((from_ns, to_ns)), text);
            }
            Event::Final { text, .. } => {
                self.keep(now_ns, None, text);
                let script = book.script();
                let following = self
                    .follower
                    .get_or_insert_with(|| Following::new(script, clips));
                if let Some(to_ns) = following.text(text, false, book.written_ns()) {
                    let from_ns = book.cursor_ns();
                    book.final_text(now_ns, (from_ns.min(to_ns), to_ns), recorder);
                }
            }
            _ => {}
        }
    }

    /// The last word of a text without times is whole when nothing follows.
    fn rest_of_text<C>(&mut self, now_ns: u64, book: &mut Book, recorder: &mut Recorder<C>) {
        let reached = self.follower.as_mut().and_then(|following| {
            let written_ns = book.written_ns();
            following.text("", true, written_ns)
        });
        if let Some(to_ns) = reached {
            let from_ns = book.cursor_ns();
            book.final_text(now_ns, (from_ns.min(to_ns), to_ns), recorder);
        }
    }

    fn keep(&mut self, at_ns: u64, span_ns: Option<(u64, u64)>, text: &str) {
        if self.bytes + text.len() > TEXT_MAX_BYTES {
            return;
        }
        self.bytes += text.len();
        self.heard.said.push(Said {
            at_ns,
            span_ns,
            text: text.to_owned(),
        });
    }
}
