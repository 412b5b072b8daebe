//! What each session says, and when: a stream that plays from its own start, or one turn of a lane.
//!
//! Where a dialect's connection carries one turn, the load counts lanes. A lane says what a stream would say, and each of its
//! utterances is a session of its own: it arrives by the clock, whatever became of the turns before.

use std::sync::Arc;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile, Window, seconds_to_ns};
use plimsoll_core::schedule::{Periodic, SessionPlan, session_plan};
use plimsoll_speech::clip::Clip;
use plimsoll_speech::plan::{AudioPlan, FrameLength};

/// How long before its first frame a turn connects.
const CONNECT_BEFORE_NS: u64 = 100 * NS_PER_MS;
/// How long a turn may take to open.
const OPEN_WITHIN_NS: u64 = 10 * NS_PER_S;
/// From the last frame of an utterance to the first of the next, at least: the shortest pause is 400 ms, and frames at both ends
/// of it have up to 100 ms of silence, which may be rounded up.
const BETWEEN_MIN_NS: u64 = 100 * NS_PER_MS;
/// Speech goes on for this part of the grace after the window, so that what is owed is answered under the full load.
const TAIL_SHARE: f64 = 0.25;

/// The scripts of a trial.
#[derive(Debug)]
pub(crate) struct Scripts {
    clips: Arc<[Clip]>,
    frame: FrameLength,
    /// Streams, or lanes of turns.
    load: u32,
    /// Whether each turn is a session.
    by_turn: bool,
    /// When the last frame is due at the latest.
    until_ns: u64,
    window: Window,
}

/// What one session says.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Its frames.
    pub(crate) audio: AudioPlan,
    /// When each frame is due.
    pub(crate) due: Periodic,
    /// How many frames there are.
    pub(crate) frames: u64,
}

impl Scripts {
    pub(crate) fn new(
        clips: &Arc<[Clip]>,
        frame: FrameLength,
        (load, by_turn): (u32, bool),
        profile: &Profile,
    ) -> Self {
        let window = profile.window();
        Self {
            clips: Arc::clone(clips),
            frame,
            load,
            by_turn,
            until_ns: window.end_ns + seconds_to_ns(profile.grace_s * TAIL_SHARE),
            window,
        }
    }

    pub(crate) fn clips(&self) -> &[Clip] {
        &self.clips
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// How many sessions a load has. A lane has as many as could be said; those for which there is no time never connect.
    pub(crate) fn sessions(&self) -> u32 {
        if !self.by_turn {
            return self.load;
        }
        let lengths_ns = self.clips.iter().map(|clip| {
            let frames = clip.samples.len().div_ceil(self.frame.samples()) as u64;
            frames * self.frame.ns()
        });
        let cycle_ns = lengths_ns.min().unwrap_or(NS_PER_S) + BETWEEN_MIN_NS;
        let turns = u32::try_from(self.until_ns / cycle_ns + 1).unwrap_or(u32::MAX);
        self.load.saturating_mul(turns)
    }

    /// The lane of a session, and which of its turns it is.
    fn place(&self, id: u32) -> (u32, usize) {
        let load = self.load.max(1);
        (id % load, (id / load) as usize)
    }

    /// The stream of a session whose first frame is due at this time.
    fn stream(&self, seed: u64, first_ns: u64) -> Script {
        let period_ns = self.frame.ns();
        let due = Periodic {
            first_ns,
            period_ns,
        };
        let frames = due.due_before(self.until_ns);
        Script {
            audio: AudioPlan::new(&self.clips, self.frame, frames, seed),
            due,
            frames,
        }
    }

    /// When a session connects, and when its first frame is due.
    pub(crate) fn plan(&self, id: u32, profile: &Profile, seed: u64) -> SessionPlan {
        if !self.by_turn {
            return session_plan(id, self.load, profile, seed);
        }
        let (lane, turn) = self.place(id);
        let plan = session_plan(lane, self.load, profile, seed);
        let script = self.stream(plan.seed, plan.first_due_ns);
        let Some(said) = script.audio.utterances().get(turn) else {
            return SessionPlan {
                id,
                connect_at_ns: SessionPlan::WITH_WORK,
                open_by_ns: u64::MAX,
                ..plan
            };
        };
        let first_due_ns = script.due.first_ns + said.begin_ns;
        let connect_at_ns = first_due_ns.saturating_sub(CONNECT_BEFORE_NS);
        SessionPlan {
            id,
            connect_at_ns,
            open_by_ns: connect_at_ns + OPEN_WITHIN_NS,
            first_due_ns,
            ..plan
        }
    }

    /// What a session with this plan says, if it was open at this time. A stream begins with the next slot after it; a turn's
    /// schedule does not move.
    pub(crate) fn of(&self, plan: &SessionPlan, open_ns: u64) -> Script {
        let due = Periodic {
            first_ns: plan.first_due_ns,
            period_ns: self.frame.ns(),
        };
        if !self.by_turn {
            return self.stream(plan.seed, due.starting_at(open_ns).first_ns);
        }
        let (_, turn) = self.place(plan.id);
        // The same words whenever the lane begins: a later beginning only cuts off the last ones.
        let audio = self.stream(plan.seed, 0).audio.turn(turn);
        Script {
            frames: audio.frames(),
            audio,
            due,
        }
    }
}
