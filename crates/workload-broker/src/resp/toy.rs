//! A small server for tests: one stream, its groups, no files, no time. As the real one, it looks at no further command
//! of a connection while that waits.

use std::collections::BTreeMap;

use super::{Confirm, EntryId, Reader, Reading, Setup, Version, Writer};
use crate::rig::{Peer, Server};

/// The server and all its connections.
#[derive(Default)]
pub(super) struct Toy {
    pub(super) lines: Vec<Line>,
    pub(super) entries: BTreeMap<EntryId, Vec<u8>>,
    pub(super) groups: BTreeMap<String, Group>,
    pub(super) added: u64,
    /// The next command is refused with this.
    pub(super) refuse: Option<&'static str>,
    /// All commands that came, by their first words.
    pub(super) commands: Vec<String>,
}

#[derive(Default)]
pub(super) struct Line {
    held: Vec<u8>,
    out: Vec<u8>,
    is_resp3: bool,
    is_silent: bool,
    waits: Option<Wait>,
}

/// What a connection waits for.
#[derive(Clone)]
enum Wait {
    Fsync,
    Message(Vec<String>),
}

#[derive(Default)]
pub(super) struct Group {
    last: EntryId,
    /// Entries that are delivered and not settled, and to whom.
    pub(super) pending: BTreeMap<EntryId, String>,
}

impl Server for Toy {
    fn connect(&mut self) -> usize {
        self.lines.push(Line::default());
        self.lines.len() - 1
    }

    fn written(&mut self, line: usize) -> Vec<u8> {
        std::mem::take(&mut self.lines[line].out)
    }

    fn received(&mut self, line: usize, bytes: &[u8]) {
        self.lines[line].held.extend_from_slice(bytes);
        self.work();
    }
}

impl Toy {
    /// Appends raw bytes to a connection.
    pub(super) fn say(&mut self, line: usize, text: &str) {
        if !self.lines[line].is_silent {
            self.lines[line].out.extend_from_slice(text.as_bytes());
        }
    }

    /// The disk has everything.
    pub(super) fn fsync(&mut self) {
        for line in 0..self.lines.len() {
            if matches!(self.lines[line].waits, Some(Wait::Fsync)) {
                self.lines[line].waits = None;
                self.say(line, "*2\r\n:1\r\n:0\r\n");
            }
        }
        self.work();
    }

    /// Reads that wait end with nothing.
    pub(super) fn time_out(&mut self) {
        for line in 0..self.lines.len() {
            if matches!(self.lines[line].waits, Some(Wait::Message(_))) {
                self.lines[line].waits = None;
                let nothing = if self.lines[line].is_resp3 {
                    "_\r\n"
                } else {
                    "*-1\r\n"
                };
                self.say(line, nothing);
            }
        }
        self.work();
    }

    /// Looks at commands until all connections wait or said nothing more.
    fn work(&mut self) {
        loop {
            let mut is_idle = true;
            for line in 0..self.lines.len() {
                match self.lines[line].waits.clone() {
                    Some(Wait::Message(words)) => {
                        if let Some(reply) = self.read(line, &words) {
                            self.lines[line].waits = None;
                            self.say(line, &reply);
                            is_idle = false;
                        }
                    }
                    Some(Wait::Fsync) => {}
                    None => {
                        if let Some(words) = take(&mut self.lines[line].held) {
                            self.command(line, &words);
                            is_idle = false;
                        }
                    }
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn command(&mut self, line: usize, words: &[String]) {
        self.commands.push(words[0].clone());
        if let Some(why) = self.refuse.take() {
            return self.say(line, &format!("-{why}\r\n"));
        }
        let text: Vec<&str> = words.iter().map(String::as_str).collect();
        match &text[..] {
            ["PING"] => self.say(line, "+PONG\r\n"),
            ["AUTH", "anna", "secret"] => self.say(line, "+OK\r\n"),
            ["AUTH", ..] => self.say(
                line,
                "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
            ),
            ["HELLO", "3", ..] => {
                self.lines[line].is_resp3 = true;
                self.say(line, "%2\r\n$5\r\nproto\r\n:3\r\n$7\r\nmodules\r\n*0\r\n");
            }
            ["CLIENT", "REPLY", "OFF"] => self.lines[line].is_silent = true,
            ["XADD", "s", "*", "b", body] => {
                self.added += 1;
                let id = EntryId {
                    ms: 1_526_919_030_474,
                    seq: self.added,
                };
                self.entries.insert(id, unescape(body));
                let id = shown(id);
                self.say(line, &format!("${}\r\n{id}\r\n", id.len()));
            }
            ["WAITAOF", "1", "0", "0"] => self.lines[line].waits = Some(Wait::Fsync),
            ["CONFIG", "GET", ..] => {
                let begin = if self.lines[line].is_resp3 {
                    "%2"
                } else {
                    "*4"
                };
                self.say(line, &format!("{begin}\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n"));
            }
            ["XREADGROUP", ..] | ["XREAD", ..] => {
                self.lines[line].waits = Some(Wait::Message(words.to_vec()));
            }
            other => self.stream_command(line, other),
        }
    }

    fn stream_command(&mut self, line: usize, words: &[&str]) {
        match words {
            ["XGROUP", "CREATE", "s", group, "0", "MKSTREAM"] => {
                let reply = if self.groups.contains_key(*group) {
                    "-BUSYGROUP Consumer Group name already exists\r\n"
                } else {
                    "+OK\r\n"
                };
                self.groups.entry((*group).to_owned()).or_default();
                self.say(line, reply);
            }
            ["XREVRANGE", "s", "+", "-", "COUNT", "1"] => {
                let last: Vec<EntryId> = self
                    .entries
                    .keys()
                    .next_back()
                    .copied()
                    .into_iter()
                    .collect();
                let reply = self.entries_text(&last);
                self.say(line, &reply);
            }
            ["XACK", "s", group, ids @ ..] => {
                let group = self.groups.get_mut(*group).unwrap();
                let settled = ids
                    .iter()
                    .filter(|id| group.pending.remove(&parsed(id)).is_some())
                    .count();
                self.say(line, &format!(":{settled}\r\n"));
            }
            ["XDEL", "s", ids @ ..] => {
                let deleted = ids
                    .iter()
                    .filter(|id| self.entries.remove(&parsed(id)).is_some())
                    .count();
                self.say(line, &format!(":{deleted}\r\n"));
            }
            ["XLEN", "s"] => self.say(line, &format!(":{}\r\n", self.entries.len())),
            ["DEL", "s"] => self.say(line, ":1\r\n"),
            ["XINFO", "GROUPS", "s"] => self.groups_text(line),
            other => panic!("the client says {other:?}"),
        }
    }

    /// The reply to a read, if there is something to reply.
    fn read(&mut self, line: usize, words: &[String]) -> Option<String> {
        let text: Vec<&str> = words.iter().map(String::as_str).collect();
        let ids: Vec<EntryId> = match &text[..] {
            [
                "XREADGROUP",
                "GROUP",
                group,
                name,
                "COUNT",
                count,
                "BLOCK",
                "100",
                "STREAMS",
                "s",
                from,
            ] => {
                let count: usize = count.parse().unwrap();
                let group = self.groups.get_mut(*group).unwrap();
                if *from == ">" {
                    let new = self
                        .entries
                        .keys()
                        .filter(|id| **id > group.last)
                        .take(count);
                    let ids: Vec<EntryId> = new.copied().collect();
                    group.last = *ids.last()?;
                    group
                        .pending
                        .extend(ids.iter().map(|id| (*id, (*name).to_owned())));
                    ids
                } else {
                    let open = group
                        .pending
                        .iter()
                        .filter(|(id, of)| **id > parsed(from) && of == name);
                    open.map(|(id, _)| *id).take(count).collect()
                }
            }
            [
                "XREAD",
                "COUNT",
                count,
                "BLOCK",
                "100",
                "STREAMS",
                "s",
                from,
            ] => {
                let new = self.entries.keys().filter(|id| **id > parsed(from));
                let ids: Vec<EntryId> = new.take(count.parse().unwrap()).copied().collect();
                ids.last()?;
                ids
            }
            other => panic!("the client says {other:?}"),
        };
        let begin = if self.lines[line].is_resp3 {
            "%1\r\n"
        } else {
            "*1\r\n*2\r\n"
        };
        Some(format!("{begin}$1\r\ns\r\n{}", self.entries_text(&ids)))
    }

    fn entries_text(&self, ids: &[EntryId]) -> String {
        let mut text = format!("*{}\r\n", ids.len());
        for id in ids {
            let name = shown(*id);
            text += &format!("*2\r\n${}\r\n{name}\r\n", name.len());
            text += &match self.entries.get(id) {
                // Bodies are ASCII where they go through here.
                Some(body) => format!(
                    "*2\r\n$1\r\nb\r\n${}\r\n{}\r\n",
                    body.len(),
                    String::from_utf8(body.clone()).unwrap()
                ),
                None => "*-1\r\n".to_owned(),
            };
        }
        text
    }

    fn groups_text(&mut self, line: usize) {
        let is_resp3 = self.lines[line].is_resp3;
        let mut text = format!("*{}\r\n", self.groups.len());
        for (name, group) in &self.groups {
            text += if is_resp3 { "%4\r\n" } else { "*8\r\n" };
            let behind = self.entries.keys().filter(|id| **id > group.last).count();
            // A server that lost count says nothing.
            let lag = if group.pending.is_empty() {
                if is_resp3 {
                    "_".to_owned()
                } else {
                    "$-1".to_owned()
                }
            } else {
                format!(":{behind}")
            };
            text += &format!("$4\r\nname\r\n${}\r\n{name}\r\n", name.len());
            text += &format!(
                "$9\r\nconsumers\r\n:1\r\n$7\r\npending\r\n:{}\r\n",
                group.pending.len()
            );
            text += &format!("$3\r\nlag\r\n{lag}\r\n");
        }
        self.say(line, &text);
    }
}

fn shown(id: EntryId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn parsed(text: &str) -> EntryId {
    EntryId::parse(text.as_bytes()).unwrap()
}

fn unescape(body: &str) -> Vec<u8> {
    body.chars()
        .map(|char| u8::try_from(u32::from(char)).unwrap())
        .collect()
}

/// Takes the first whole command off the bytes. Each byte of a word becomes a character.
fn take(held: &mut Vec<u8>) -> Option<Vec<String>> {
    let mut at = 0;
    let count = size(held, &mut at, b'*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let bytes = size(held, &mut at, b'$')?;
        let word = held.get(at..at + bytes)?;
        words.push(word.iter().copied().map(char::from).collect());
        assert_eq!(held.get(at + bytes..at + bytes + 2)?, b"\r\n");
        at += bytes + 2;
    }
    held.drain(..at);
    Some(words)
}

fn size(held: &[u8], at: &mut usize, kind: u8) -> Option<usize> {
    let rest = held.get(*at..)?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    assert_eq!(rest[0], kind, "{}", String::from_utf8_lossy(rest));
    *at += end + 2;
    Some(std::str::from_utf8(&rest[1..end]).unwrap().parse().unwrap())
}

pub(super) const VERSIONS: [Version; 2] = [Version::Resp2, Version::Resp3];

pub(super) fn setup(version: Version) -> Setup {
    Setup {
        key: "s".to_owned(),
        version,
        login: None,
    }
}

pub(super) fn group(name: &str, consumer: &str, deletes: bool) -> Reading {
    Reading::Group {
        group: name.to_owned(),
        consumer: consumer.to_owned(),
        deletes,
    }
}

pub(super) fn writer(toy: &mut Toy, confirm: Confirm) -> Peer<Writer> {
    Peer::ready(toy, Writer::new(setup(Version::Resp2), confirm).unwrap())
}

pub(super) fn reader(
    toy: &mut Toy,
    version: Version,
    reading: Reading,
    prefetch: u32,
) -> Peer<Reader> {
    Peer::ready(toy, Reader::new(setup(version), reading, prefetch).unwrap())
}
