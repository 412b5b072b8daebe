//! The session machine of the streaming speech-to-text workload.

use std::sync::Arc;

use plimsoll_core::ledger::{Audit, Naming};
use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{SessionPlan, mix};
use plimsoll_core::session::{Account, NoArrivals, SessionMachines};
use serde::{Deserialize, Serialize};

use super::audio::{Audio, FRAME_HEADER};
use super::messages::{ErrorMessage, GatewayMessage, Partial, START};
use super::reference::{Scratch, compute_interleaved};
use plimsoll_protocol::connection::Endpoint;
use plimsoll_protocol::paced::{Concerned, Dialogue, FrameAccount, Message, PacedSession};

/// Time between two frames of a session.
pub const FRAME_PERIOD_NS: u64 = 20 * NS_PER_MS;

/// One partial in this many has its content recomputed, the first of every session aside: a little more than 1 %.
const AUDIT_ONE_IN: u64 = 64;

/// The most passes that the simulator computes, and so the most that an audit does.
const CPU_PASSES_MAX: u32 = 64;

/// The session machines: where sessions go and what they say.
#[derive(Debug)]
pub struct Sessions {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    audio: Arc<Audio>,
    /// What the gateway is configured to tell, where that is known.
    cpu_passes: Option<u32>,
}

impl Sessions {
    /// Sessions that go to `endpoint` and say `audio`. `cpu_passes` is what partials must echo, where that is known.
    #[must_use]
    pub fn new(endpoint: Endpoint, audio: Arc<Audio>, cpu_passes: Option<u32>) -> Self {
        Self {
            shared: Arc::new(Shared {
                endpoint,
                audio,
                cpu_passes,
            }),
        }
    }
}

impl SessionMachines for Sessions {
    type Session = PacedSession<SttDialogue>;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        let base = self.shared.audio.base(plan.id);
        let dialogue = SttDialogue {
            start: self.shared.audio.advance(base),
            audits: Audits {
                seed: plan.seed,
                base,
                newest: 0,
            },
            shared: Arc::clone(&self.shared),
        };
        PacedSession::new(&self.shared.endpoint, plan, FRAME_PERIOD_NS, dialogue)
    }

    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        account.ledger.audited(self.audit(claims));
    }
}

impl Sessions {
    /// Recomputes the content of the partials that the sessions kept.
    fn audit(&self, claims: &[Claim]) -> Audit {
        let mut scratch = Scratch::default();
        let mut audit = Audit::default();
        // In groups, so that several checksums are computed side by side and the memory stays small.
        for group in claims.chunks(32) {
            let batches: Vec<_> = group
                .iter()
                .map(|claim| {
                    self.shared
                        .audio
                        .batch(claim.base, claim.oldest, claim.newest)
                })
                .collect();
            let requests: Vec<_> = batches
                .iter()
                .zip(group)
                .map(|(pcm, claim)| (pcm.as_slice(), claim.cpu_passes))
                .collect();
            for (claim, answer) in group
                .iter()
                .zip(compute_interleaved(&requests, &mut scratch))
            {
                audit.checked += 1;
                let right = answer.is_ok_and(|answer| {
                    answer.checksum == claim.checksum
                        && answer.zero_crossings == claim.zero_crossings
                        && (answer.rms - claim.rms).abs() <= answer.rms * 1e-9
                });
                audit.wrong += u64::from(!right);
            }
        }
        audit
    }
}

/// What a partial claimed about the audio.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claim {
    base: u32,
    oldest: u64,
    newest: u64,
    cpu_passes: u32,
    checksum: u32,
    zero_crossings: u64,
    rms: f64,
}

/// What one session says, and how it takes the answers.
#[derive(Debug)]
pub struct SttDialogue {
    /// Where the next frame lies in the table.
    start: u32,
    audits: Audits,
    shared: Arc<Shared>,
}

/// Decides which partials are kept for the audit.
#[derive(Debug)]
struct Audits {
    seed: u64,
    base: u32,
    /// The newest frame of the partial that was kept last; 0: none was.
    newest: u64,
}

impl Audits {
    fn claim(&mut self, partial: &Partial<'_>) -> Option<Claim> {
        let newest = partial.newest_frame_seq;
        // Each once: a target that repeats a partial for ever must not fill the client's memory. (Repeating is a fault that the ledger counts.)
        if newest <= self.newest {
            return None;
        }
        let drawn = mix(self.seed ^ newest).is_multiple_of(AUDIT_ONE_IN);
        if self.newest > 0 && !drawn {
            return None;
        }
        self.newest = newest;
        Some(Claim {
            base: self.base,
            oldest: partial.oldest_frame_seq,
            newest: partial.newest_frame_seq,
            cpu_passes: partial.cpu_passes,
            checksum: partial.checksum,
            zero_crossings: partial.zero_crossings,
            rms: partial.rms,
        })
    }
}

impl SttDialogue {
    fn partial(
        &mut self,
        partial: &Partial<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<Claim>,
    ) {
        recorder.ledger.partials_in_all += 1;
        let (oldest, newest) = (partial.oldest_frame_seq, partial.newest_frame_seq);
        match frames.named(oldest, newest, Naming::Answered, now_ns, recorder) {
            Concerned::Measured => recorder.ledger.partials += 1,
            Concerned::Others => {}
            // There is no audio to hold it against.
            Concerned::NeverSent => return,
        }
        if !self.shared.is_configured_so(partial) || partial.cpu_passes > CPU_PASSES_MAX {
            // Nor is it recomputed: a target must not be able to choose how long that takes.
            recorder.protocol_fault("partial whose configuration is not the target's");
            return;
        }
        if !partial.sizes_and_word_are_right() {
            recorder.ledger.content_checked += 1;
            recorder.ledger.content_wrong += 1;
            recorder
                .ledger
                .because("partial whose sizes or word are wrong");
        } else if let Some(claim) = self.audits.claim(partial) {
            recorder.claims.push(claim);
        }
    }

    fn error(
        error: &ErrorMessage<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<Claim>,
    ) {
        let (oldest, newest) = (error.oldest_frame_seq, error.newest_frame_seq);
        let concerned = frames.named(oldest, newest, Naming::Errored, now_ns, recorder);
        if concerned == Concerned::Measured {
            recorder.ledger.errors += 1;
            recorder
                .ledger
                .because(&format!("error {}/{}", error.stage, error.kind));
        }
    }
}

impl Shared {
    fn is_configured_so(&self, partial: &Partial<'_>) -> bool {
        self.cpu_passes
            .is_none_or(|passes| passes == partial.cpu_passes)
    }
}

impl Dialogue for SttDialogue {
    type Claim = Claim;

    fn greeting(&self) -> Option<&'static str> {
        Some(START)
    }

    fn frame(&mut self, _seq: u64) -> (&[u8], &[u8]) {
        (&FRAME_HEADER, self.shared.audio.masked_frame(self.start))
    }

    fn frame_written(&mut self) {
        self.start = self.shared.audio.advance(self.start);
    }

    fn received(
        &mut self,
        message: Message<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<Claim>,
    ) {
        let Message::Text(text) = message else {
            return recorder.protocol_fault("binary message from the gateway");
        };
        match GatewayMessage::parse(text) {
            Ok(GatewayMessage::Partial(partial)) => {
                self.partial(&partial, now_ns, frames, recorder);
            }
            Ok(GatewayMessage::Error(error)) => Self::error(&error, now_ns, frames, recorder),
            Err(reason) => recorder.protocol_fault(reason),
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
