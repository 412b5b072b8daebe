//! Asks the server how full a stream is, how far its groups are and how it is configured. Not part of the load.

use std::collections::VecDeque;

use super::command::command;
use super::setup::Setup;
use super::token::{Token, TokenReader};
use super::walk::{Seen, Walk};
use super::{fault, flaw, text};
use crate::dialect::Fault;

/// The most texts of an answer.
const TEXTS_MAX: usize = 4096;

/// The longest text of an answer.
const TEXT_MAX_BYTES: usize = 4096;

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Whether it answers (`PING`). A server that still loads its data answers with an error.
    Alive,
    /// How many entries the stream has (`XLEN`).
    Length,
    /// How far the stream's groups are (`XINFO GROUPS`).
    Groups,
    /// Settings, whose names may have `*` (`CONFIG GET`).
    Config(Vec<String>),
    /// Removes the stream and its groups (`DEL`).
    Delete,
}

/// How far a group is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupDepth {
    /// Its name.
    pub name: String,
    /// How many entries are delivered and not settled.
    pub pending: u64,
    /// How many entries it has not delivered yet. `None` if the server does not know: entries were deleted in between.
    pub lag: Option<u64>,
}

/// What an asker heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The answer to [`Question::Alive`].
    Alive,
    /// The answer to [`Question::Length`].
    Length(u64),
    /// The answer to [`Question::Groups`].
    Groups(Vec<GroupDepth>),
    /// The answer to [`Question::Config`]: names and values.
    Config(Vec<(String, String)>),
    /// The answer to [`Question::Delete`].
    Deleted,
    /// The server answered a question with this error.
    Failed(String),
}

/// A connection that asks. Answers come in the order of the questions.
#[derive(Debug)]
pub struct Asker {
    setup: Setup,
    reader: TokenReader,
    walk: Walk,
    asked: VecDeque<Option<Question>>,
    /// The texts and numbers of the answer so far.
    texts: Vec<String>,
    /// Where groups begin among them.
    begins: Vec<usize>,
}

impl Asker {
    /// An asker about this stream.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            reader: TokenReader::new(),
            walk: Walk::new(),
            asked: VecDeque::new(),
            texts: Vec::new(),
            begins: Vec::new(),
        }
    }

    /// Appends the first bytes of the connection. Questions may follow at once.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        let replies = self.setup.greet(out);
        self.asked.extend(std::iter::repeat_n(None, replies));
    }

    /// Appends a question.
    pub fn ask(&mut self, out: &mut Vec<u8>, question: Question) {
        let key = self.setup.key.as_bytes();
        match &question {
            Question::Alive => command(out, &[b"PING"]),
            Question::Length => command(out, &[b"XLEN", key]),
            Question::Groups => command(out, &[b"XINFO", b"GROUPS", key]),
            Question::Delete => command(out, &[b"DEL", key]),
            Question::Config(names) => {
                let mut words = vec![&b"CONFIG"[..], b"GET"];
                words.extend(names.iter().map(|name| name.as_bytes()));
                command(out, &words);
            }
        }
        self.asked.push_back(Some(question));
    }

    /// Takes what arrived, in any pieces.
    ///
    /// # Errors
    /// The connection is dead.
    pub fn received(&mut self, bytes: &[u8], told: &mut dyn FnMut(Told)) -> Result<(), Fault> {
        let mut rest = bytes;
        loop {
            let Some((used, token)) = self.reader.next(rest).map_err(flaw)? else {
                return Ok(());
            };
            if let Some(seen) = self.walk.take(token).map_err(flaw)? {
                gather(&mut self.texts, &mut self.begins, seen)?;
                if seen.ends {
                    let question = self
                        .asked
                        .pop_front()
                        .ok_or_else(|| fault("a reply to nothing"))?;
                    let error = match seen.token {
                        Token::Error(why) => Some(text(why).to_owned()),
                        _ => None,
                    };
                    let texts = std::mem::take(&mut self.texts);
                    let begins = std::mem::take(&mut self.begins);
                    match (question, error) {
                        (None, None) => {}
                        (None, Some(why)) => return Err(fault(&why)),
                        (Some(_), Some(why)) => told(Told::Failed(why)),
                        (Some(question), None) => told(answer(&question, &texts, &begins)),
                    }
                }
            }
            rest = &rest[used..];
        }
    }
}

/// Keeps a text of an answer. Arrays in the first level are groups.
fn gather(texts: &mut Vec<String>, begins: &mut Vec<usize>, seen: Seen<'_>) -> Result<(), Fault> {
    let kept = match seen.token {
        Token::Array(_) | Token::Map(_) => {
            if seen.depth == 1 {
                begins.push(texts.len());
            }
            return Ok(());
        }
        Token::Number(number) => number.to_string(),
        Token::Bulk(bytes) | Token::Simple(bytes) | Token::Other(bytes)
            if bytes.len() <= TEXT_MAX_BYTES =>
        {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Token::Null | Token::Error(_) => String::new(),
        _ => return Err(fault("an answer has a longer text than an answer has")),
    };
    if texts.len() >= TEXTS_MAX || begins.len() >= TEXTS_MAX {
        return Err(fault("an answer has more texts than an answer has"));
    }
    texts.push(kept);
    Ok(())
}

fn answer(question: &Question, texts: &[String], begins: &[usize]) -> Told {
    match question {
        Question::Alive => Told::Alive,
        Question::Delete => Told::Deleted,
        Question::Length => match texts.first().and_then(|text| text.parse().ok()) {
            Some(length) => Told::Length(length),
            None => Told::Failed("the length of the stream is no number".to_owned()),
        },
        Question::Config(_) => Told::Config(pairs(texts).collect()),
        Question::Groups => {
            let ends = begins.iter().skip(1).copied().chain([texts.len()]);
            let groups = begins.iter().zip(ends);
            Told::Groups(
                groups
                    .map(|(begin, end)| group(&texts[*begin..end]))
                    .collect(),
            )
        }
    }
}

fn pairs(texts: &[String]) -> impl Iterator<Item = (String, String)> + '_ {
    let (pairs, _) = texts.as_chunks::<2>();
    pairs
        .iter()
        .map(|[name, value]| (name.clone(), value.clone()))
}

fn group(texts: &[String]) -> GroupDepth {
    let mut depth = GroupDepth::default();
    for (name, value) in pairs(texts) {
        match name.as_str() {
            "name" => depth.name = value,
            "pending" => depth.pending = value.parse().unwrap_or_default(),
            // Empty where the server does not know.
            "lag" => depth.lag = value.parse().ok(),
            _ => {}
        }
    }
    depth
}
