//! A caller whose connection somebody else keeps: what it says when, and what it makes of the answers.

use std::sync::Arc;

use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_protocol::websocket::{Opcode, append_client_frame};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::entry::{count, enter, is_new, never_written};
use crate::load::Leaves;
use crate::machines::Shared;
use crate::marks::{CallerMark, TranscriptMark};
use crate::reply::{Found, ReplyStream};
use crate::rest;
use crate::script::{BLOCK_NS, Script, Turn};
use crate::slow::{SlowReader, SlowSession};
use crate::turns::{self, Turns, Wrong};
use crate::wire::{self, GatewayMessage};

/// A fixed mask: RFC 6455 wants unpredictable ones against malicious pages, and a load client sends only its own bytes.
const MASK: [u8; 4] = [0x43, 0x41, 0x4C, 0x4C];

/// What is kept until the trial is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claim {
    /// A session was ready.
    Ready {
        /// From the schedule of its connection to the answer to the upgrade.
        connect_ns: u64,
        /// From that answer, after which `config` goes out at once, to `ready`.
        after_ns: u64,
    },
    /// A measured turn is over.
    Turn(turns::Claim),
    /// A measured request of a REST client is over.
    Request(rest::Claim),
    /// A session is over: what it wrote and what came in all, measured or not.
    Session(Heard),
    /// A measured turn of a slow caller is over.
    SlowTurn(turns::Claim),
    /// A slow caller's session is over, of which there is a [`Claim::Session`] too.
    SlowSession(SlowSession),
}

/// What a session wrote and what came, with the marks of the providers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Heard {
    /// Blocks of audio that were written.
    pub blocks_written: u64,
    /// Texts to be spoken that were written.
    pub speaks: u64,
    /// Final results that came.
    pub finals: u64,
    /// What these took at the provider, by their marks.
    pub finals_provider_ns: u64,
    /// Replies of which something came.
    pub replies: u64,
    /// What their first blocks took at the provider, by their marks.
    pub replies_provider_ns: u64,
    /// Blocks of replies that came whole.
    pub reply_blocks: u64,
    /// Bytes of replies that the gateway said it dropped, because a caller read too slowly.
    #[serde(default)]
    pub dropped_bytes: u64,
}

impl Heard {
    /// Adds another session's.
    pub fn add(&mut self, other: &Self) {
        self.blocks_written += other.blocks_written;
        self.speaks += other.speaks;
        self.finals += other.finals;
        self.finals_provider_ns += other.finals_provider_ns;
        self.replies += other.replies;
        self.replies_provider_ns += other.replies_provider_ns;
        self.reply_blocks += other.reply_blocks;
        self.dropped_bytes += other.dropped_bytes;
    }
}

/// Something of the load that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) at_ns: u64,
    pub(crate) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Audio,
    Speak,
    Clear,
}

/// A caller whose session is open.
#[derive(Debug)]
pub(crate) struct Caller {
    plan: SessionPlan,
    script: Script,
    shared: Arc<Shared>,
    /// When the script began, in nanoseconds since the trial began.
    base_ns: u64,
    next_chunk: u64,
    /// Blocks before that one which were not sent. What is sent has numbers without a gap.
    skipped_blocks: u64,
    /// Turns that were due while the caller had no connection.
    missed: Vec<u32>,
    /// The turn whose utterance ends next.
    hearing: Turn,
    /// The turn whose text is due next.
    speaking: Turn,
    /// The turn that is interrupted next.
    interrupting: Option<Turn>,
    turns: Turns,
    reply: ReplyStream,
    heard: Heard,
    /// Whether the block that arrives had not come before.
    block_is_new: bool,
    hangs_up_ns: u64,
    has_begun: bool,
    /// For a caller who reads slowly.
    slow: Option<SlowReader>,
}

impl Caller {
    pub(crate) fn new(shared: &Arc<Shared>, plan: &SessionPlan) -> Self {
        let script = Script::new(plan.seed, plan.id, shared.load.chunk_blocks);
        let first = script.turn(0);
        let slow = shared.load.is_slow(plan.id).then(SlowReader::default);
        Self {
            plan: *plan,
            script,
            shared: Arc::clone(shared),
            base_ns: 0,
            next_chunk: 0,
            skipped_blocks: 0,
            missed: Vec::new(),
            hearing: first,
            speaking: first,
            interrupting: None,
            turns: if slow.is_some() {
                Turns::of_slow(plan.id)
            } else {
                Turns::new(plan.id)
            },
            reply: ReplyStream::default(),
            heard: Heard::default(),
            block_is_new: false,
            hangs_up_ns: u64::MAX,
            has_begun: false,
            slow,
        }
    }

    /// Whether it reads slowly.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// Whether its session was ever open.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The session is open: the script begins, or goes on where it would be without the interruption.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if std::mem::replace(&mut self.has_begun, true) {
            self.catch_up(now_ns);
        } else {
            self.base_ns = now_ns.max(self.plan.first_due_ns);
            let leaves = self.shared.leaves(self.plan.id);
            if leaves != Leaves::Never {
                self.hangs_up_ns = leaves.at_ns(self.base_ns);
                let stays_ns = self.hangs_up_ns.saturating_sub(self.base_ns);
                self.script = self.script.until(stays_ns);
                self.hearing = self.script.turn(0);
                self.speaking = self.hearing;
            }
        }
        self.skip_silence();
    }

    /// Goes on with the first utterance that begins from now on. What was due before it was missed; of an utterance that
    /// has begun nothing is said.
    fn catch_up(&mut self, now_ns: u64) {
        let chunk_ns = u64::from(self.shared.load.chunk_blocks) * BLOCK_NS;
        let mut chunk = now_ns.saturating_sub(self.base_ns).div_ceil(chunk_ns);
        while self.script.chunk_of(self.hearing.from) < chunk {
            chunk = chunk.max(self.script.chunk_of(self.hearing.to) + 1);
            self.missed.push(self.hearing.number);
            self.hearing = self.script.turn(self.hearing.number + 1);
        }
        self.speaking = self.hearing;
        self.next_chunk = self.next_chunk.max(chunk);
    }

    /// Moves on to the next message with speech in it, if the caller sends nothing else.
    fn skip_silence(&mut self) {
        let chunk = self.script.chunk_of(self.hearing.from);
        if self.shared.load.skips_silence && chunk > self.next_chunk {
            let chunks = chunk - self.next_chunk;
            self.skipped_blocks += chunks * u64::from(self.shared.load.chunk_blocks);
            self.next_chunk = chunk;
        }
    }

    /// The number that a block has on the wire.
    fn sent_as(&self, block: u32) -> u32 {
        let sent = u64::from(block).saturating_sub(self.skipped_blocks);
        u32::try_from(sent).unwrap_or(u32::MAX)
    }

    /// The connection is lost, and the caller comes back: what the gateway owed never comes.
    pub(crate) fn cut_off(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        self.give_up(now_ns, recorder);
        self.reply = ReplyStream::default();
        self.interrupting = None;
    }

    fn give_up(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        while let Some(ended) = self.turns.give_up(now_ns) {
            enter(Some(ended), self.is_slow(), recorder);
        }
    }

    /// The session of a slow caller ended before the trial did.
    pub(crate) fn slow_died(&mut self) {
        if let Some(slow) = &mut self.slow {
            slow.seen.died = true;
        }
    }

    /// When it hangs up; never if it stays.
    pub(crate) fn hangs_up_ns(&self) -> u64 {
        self.hangs_up_ns
    }

    /// What of the load is due first.
    pub(crate) fn next(&self) -> Due {
        let at = |since_ns: u64, what| Due {
            at_ns: self.base_ns + since_ns,
            what,
        };
        let audio = at(self.script.chunk_due_ns(self.next_chunk), What::Audio);
        let speak = at(self.speaking.speak_ns, What::Speak);
        let clear = self.interrupting.and_then(|turn| turn.barge_in_ns);
        let clear = clear.map(|since_ns| at(since_ns, What::Clear));
        // Audio first where two are due at once: a caller is heard before it asks.
        let others = [Some(speak), clear].into_iter().flatten();
        others.fold(audio, |first, other| {
            if other.at_ns < first.at_ns {
                other
            } else {
                first
            }
        })
    }

    /// Writes the message into `out`.
    pub(crate) fn make(&self, what: What, out: &mut Vec<u8>) {
        out.clear();
        match what {
            What::Audio => {
                let mut audio = Vec::with_capacity(self.shared.chunk_bytes());
                for block in self.script.blocks_of(self.next_chunk) {
                    let mark = self.script.mark(block);
                    let block = self.sent_as(mark.block);
                    CallerMark { block, ..mark }.append_block(&mut audio);
                }
                append_client_frame(out, true, Opcode::Binary, &audio, MASK);
            }
            What::Speak => {
                let text = wire::speak(&self.script.text(&self.speaking));
                append_client_frame(out, true, Opcode::Text, text.as_bytes(), MASK);
            }
            What::Clear => {
                append_client_frame(out, true, Opcode::Text, wire::CLEAR.as_bytes(), MASK);
            }
        }
    }

    /// The socket took it.
    pub(crate) fn wrote(&mut self, what: What, write_ns: u64, recorder: &mut Recorder<Claim>) {
        match what {
            What::Audio => self.wrote_audio(write_ns, recorder),
            What::Speak => {
                let turn = self.speaking;
                self.heard.speaks += 1;
                self.turns.spoken(turn.number, write_ns);
                if turn.barge_in_ns.is_some() {
                    self.interrupting = Some(turn);
                }
                self.speaking = self.script.turn(turn.number + 1);
            }
            What::Clear => {
                if let Some(turn) = self.interrupting.take() {
                    self.turns.cleared(turn.number);
                }
            }
        }
    }

    fn wrote_audio(&mut self, write_ns: u64, recorder: &mut Recorder<Claim>) {
        let newest = self.script.blocks_of(self.next_chunk).last().unwrap_or(0);
        self.heard.blocks_written += u64::from(self.shared.load.chunk_blocks);
        self.next_chunk += 1;
        while self.hearing.to <= newest {
            let turn = self.hearing;
            let measured = self.is_measured(&turn);
            if !self.is_slow() {
                recorder.ledger.frames_sent_in_all += 1;
                recorder.ledger.frames_sent += u64::from(measured);
            }
            let sent = Turn {
                from: self.sent_as(turn.from),
                to: self.sent_as(turn.to),
                ..turn
            };
            let given_up = self.turns.heard(sent, self.base_ns, measured, write_ns);
            self.hearing = self.script.turn(turn.number + 1);
            enter(given_up, self.is_slow(), recorder);
        }
        self.skip_silence();
    }

    /// A message came in the open session.
    pub(crate) fn heard(
        &mut self,
        message: &GatewayMessage<'_>,
        now_ns: u64,
        recorder: &mut Recorder<Claim>,
    ) {
        match message {
            GatewayMessage::Ready { .. } => recorder.protocol_fault("`ready` in an open session"),
            GatewayMessage::SttResult {
                transcript,
                is_final: true,
                is_speech_final: true,
                // A gateway ends an utterance by itself when nothing follows; there is nothing in it.
            } if !transcript.is_empty() => self.result(transcript, now_ns, recorder),
            GatewayMessage::SttResult { .. } => {}
            GatewayMessage::PlaybackComplete {
                speak,
                dropped_bytes,
            } => {
                let told = dropped_bytes.unwrap_or(0);
                self.heard.dropped_bytes += told;
                if told > 0 {
                    recorder.ledger.because("audio dropped by the gateway");
                }
                // Each turn has one text, and both are counted; texts from 1.
                if let (Some(slow), Some(number), true) =
                    (&mut self.slow, speak, dropped_bytes.is_some())
                {
                    slow.complete(&self.script.turn(number.saturating_sub(1)), told);
                }
            }
            GatewayMessage::Error { kind } => {
                recorder.ledger.because(&format!("error {kind}"));
                enter(self.turns.error(kind, now_ns), self.is_slow(), recorder);
            }
        }
    }

    fn result(&mut self, transcript: &str, now_ns: u64, recorder: &mut Recorder<Claim>) {
        let mark = TranscriptMark::read(transcript);
        let result = match &mark {
            Some(mark) => self.turns.result(mark, now_ns),
            None => self.turns.unmarked_result(now_ns),
        };
        // What came twice was handed over once.
        if let Some(mark) = mark.filter(|_| is_new(&result)) {
            self.heard.finals += 1;
            self.heard.finals_provider_ns += mark.handed_ns.saturating_sub(mark.read_ns);
        }
        match result {
            Ok(ended) => enter(ended, self.is_slow(), recorder),
            Err(wrong) => count(wrong, "result", recorder),
        }
    }

    /// Audio came.
    pub(crate) fn audio(&mut self, message: &[u8], now_ns: u64, recorder: &mut Recorder<Claim>) {
        let Self {
            reply,
            turns,
            heard,
            block_is_new,
            slow,
            ..
        } = self;
        reply.received(message, |found| match found {
            Found::Begins(mark) => {
                let begun = turns.block_begins(&mark, now_ns);
                *block_is_new = is_new(&begun);
                if mark.block == 1 && *block_is_new {
                    heard.replies += 1;
                    heard.replies_provider_ns += mark.handed_ns.saturating_sub(mark.read_ns);
                }
                match begun {
                    // What is dropped for a slow reader is told at the end of the reply.
                    Err(Wrong::Lost) if slow.is_some() => {}
                    Err(wrong) => count(wrong, "audio", recorder),
                    Ok(()) => {}
                }
            }
            Found::Complete(mark) => {
                heard.reply_blocks += u64::from(*block_is_new);
                if let Some(slow) = slow.as_mut().filter(|_| *block_is_new) {
                    slow.block(mark.turn);
                }
                enter(
                    turns.block_complete(&mark, now_ns),
                    slow.is_some(),
                    recorder,
                );
            }
            Found::Damaged => {
                recorder.ledger.content_wrong += 1;
                recorder
                    .ledger
                    .because("audio with other samples than the provider's");
            }
            Found::Unmarked => recorder.protocol_fault("audio without a mark of a mock provider"),
        });
    }

    /// When an interrupted reply has been watched for long enough; `None` if none is.
    pub(crate) fn watched_until_ns(&self) -> Option<u64> {
        self.turns.watched_until_ns()
    }

    /// Ends the turns whose interrupted replies have been watched for long enough.
    pub(crate) fn watched(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        while let Some(ended) = self.turns.watched(now_ns) {
            enter(Some(ended), self.is_slow(), recorder);
        }
    }

    /// Measured turns that were due before `now_ns` and are not written yet.
    pub(crate) fn owed(&self, now_ns: u64) -> u64 {
        if self.is_slow() {
            return 0;
        }
        let turns = (self.hearing.number..).map(|number| self.script.turn(number));
        let due = turns.take_while(|turn| self.base_ns + turn.heard_ns < now_ns);
        due.filter(|turn| self.is_measured(turn)).count() as u64
    }

    /// Whether every measured turn was begun and is over.
    pub(crate) fn settled(&self) -> bool {
        let all_begun = self.base_ns + self.hearing.heard_ns >= self.plan.window.end_ns;
        self.is_slow() || (all_begun && self.turns.settled())
    }

    /// The trial is over: accounts for every turn that was due.
    pub(crate) fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        recorder.claims.push(Claim::Session(self.heard));
        let slow = self.slow.as_ref();
        recorder
            .claims
            .extend(slow.map(|slow| Claim::SlowSession(slow.seen)));
        self.give_up(now_ns, recorder);
        let measured = |turn: &Turn| self.is_measured(turn);
        let all = (0..).map(|number| self.script.turn(number));
        let due = all.take_while(|turn| self.base_ns + turn.heard_ns <= now_ns);
        for turn in due.filter(measured) {
            recorder.ledger.frames_due += u64::from(!self.is_slow());
            if turn.number >= self.hearing.number || self.missed.contains(&turn.number) {
                let waited_ns = now_ns - (self.base_ns + turn.heard_ns);
                let claim = turns::Claim::never_written(
                    self.plan.id,
                    turn.number,
                    self.base_ns + turn.heard_ns,
                    waited_ns,
                );
                never_written(claim, self.is_slow(), recorder);
            }
        }
    }

    fn is_measured(&self, turn: &Turn) -> bool {
        self.plan.window.contains(self.base_ns + turn.heard_ns)
    }
}
