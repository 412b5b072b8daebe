//! Lies of the whole process: when it stalls, dies, restarts, burns, leaks or miscounts, how fast it accepts, and who else is served.

use super::{Lie, Plan};

/// What the process must do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Neither read nor write until then.
    StallUntil(u64),
    /// Exit at once.
    Die,
    /// Drop every connection, forget everything, listen again at this time.
    RestartAt(u64),
    /// Start a thread that spins.
    BurnCore,
    /// Be loaded by somebody else too, with that many sessions.
    ForeignLoad(u64),
}

/// The state of a process-wide lie.
#[derive(Debug)]
pub struct ProcessLie {
    plan: Plan,
    chance: fastrand::Rng,
    /// When the next act is due. `None` before the first session started, and when nothing is to come.
    next_us: Option<u64>,
    seen_a_session: bool,
    upgrades: u64,
    /// `slow_accept`: when the next connection may be taken.
    accepts_at_us: u64,
    leaked: Vec<Vec<u8>>,
}

impl ProcessLie {
    /// The lie of a process; `seed` decides what is left to chance.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        Self {
            plan,
            chance: fastrand::Rng::with_seed(seed),
            next_us: None,
            seen_a_session: false,
            upgrades: 0,
            accepts_at_us: 0,
            leaked: Vec::new(),
        }
    }

    /// A session started: the first one starts the clock.
    pub fn session_started(&mut self, now_us: u64) {
        if self.seen_a_session {
            return;
        }
        self.seen_a_session = true;
        let acts = matches!(
            self.plan.lie,
            Lie::StallOnce
                | Lie::StallRarely
                | Lie::Die
                | Lie::Restart
                | Lie::BurnCore
                | Lie::ForeignLoad
        );
        if acts {
            self.next_us = now_us.checked_add(self.plan.parameters.after_us());
        }
    }

    /// When [`ProcessLie::act`] next has something to decide.
    #[must_use]
    pub fn due_us(&self) -> Option<u64> {
        self.next_us
    }

    /// What to do at `now_us`, if anything.
    pub fn act(&mut self, now_us: u64) -> Option<Act> {
        let due_us = self.next_us.filter(|due_us| *due_us <= now_us)?;
        self.next_us = None;
        let duration_us = self.plan.parameters.duration_us();
        match self.plan.lie {
            Lie::StallOnce => Some(Act::StallUntil(now_us + duration_us)),
            Lie::StallRarely => {
                // One draw at the end of each period, whatever the last one gave. A period is at least a millisecond long.
                let period_us = self.plan.parameters.after_us().max(1000);
                self.next_us = Some(due_us + period_us);
                let stalls = self.chance.f64() < self.plan.parameters.share.unwrap_or(0.0);
                stalls.then_some(Act::StallUntil(now_us + duration_us))
            }
            Lie::Die => Some(Act::Die),
            Lie::Restart => Some(Act::RestartAt(now_us + duration_us)),
            Lie::BurnCore => Some(Act::BurnCore),
            Lie::ForeignLoad => {
                let sessions = self.plan.parameters.sessions.unwrap_or(0);
                Some(Act::ForeignLoad(sessions))
            }
            _ => None,
        }
    }

    /// Whether the next upgrade request is left without an answer.
    pub fn ignores_upgrade(&mut self) -> bool {
        let number = self.upgrades;
        self.upgrades += 1;
        self.plan.lie == Lie::NeverUpgrade && self.plan.parameters.strikes_number(number)
    }

    /// When the next connection may be accepted; a time in the past: now.
    #[must_use]
    pub fn accepts_at_us(&self) -> u64 {
        self.accepts_at_us
    }

    /// A connection was accepted.
    pub fn accepted(&mut self, now_us: u64) {
        if self.plan.lie == Lie::SlowAccept {
            self.accepts_at_us = now_us.saturating_add(self.plan.parameters.duration_us());
        }
    }

    /// A session was answered: where memory leaks, it does so now. The bytes are written, so that they are resident.
    pub fn answered(&mut self) {
        if self.plan.lie == Lie::LeakMemory {
            let bytes = self.plan.parameters.bytes.unwrap_or(0);
            self.leaked
                .push(vec![0xA5; usize::try_from(bytes).unwrap_or(0)]);
        }
    }

    /// Bytes leaked so far.
    #[must_use]
    pub fn leaked_bytes(&self) -> usize {
        self.leaked.iter().map(Vec::len).sum()
    }

    /// What `stt_frames_total` says when the truth is `frames`.
    #[must_use]
    pub fn frames_total(&self, frames: u64) -> u64 {
        if self.plan.lie == Lie::LieInMetrics {
            frames + frames / self.plan.parameters.every()
        } else {
            frames
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1000;

    /// Every act of a process whose first session starts at 500 ms, looked at each time something is due, for 100 s.
    fn acts(plan: Plan, seed: u64) -> Vec<(u64, Act)> {
        let mut process = ProcessLie::new(plan, seed);
        assert_eq!(process.due_us(), None);
        process.session_started(500 * MS);
        process.session_started(700 * MS);
        let mut acts = Vec::new();
        while let Some(due_us) = process.due_us().filter(|due_us| *due_us < 100_500 * MS) {
            assert_eq!(process.act(due_us - 1), None);
            acts.extend(process.act(due_us).map(|act| (due_us, act)));
        }
        acts
    }

    #[test]
    fn honest_processes_do_nothing() {
        assert_eq!(acts(Plan::of(Lie::None), 1), []);
        assert_eq!(acts(Plan::of(Lie::SkipFlush), 1), []);
    }

    #[test]
    fn stall_once_stalls_once_after_the_first_session() {
        assert_eq!(
            acts(Plan::of(Lie::StallOnce), 1),
            [(8500 * MS, Act::StallUntil(10_500 * MS))]
        );
    }

    #[test]
    fn stall_rarely_is_a_matter_of_chance_and_seed() {
        let mut plan = Plan::of(Lie::StallRarely);
        plan.parameters.share = Some(0.0);
        assert_eq!(acts(plan, 1), []);
        plan.parameters.share = Some(1.0);
        let always = acts(plan, 1);
        assert_eq!(always.len(), 9);
        assert_eq!(always[1], (20_500 * MS, Act::StallUntil(22_500 * MS)));
        plan.parameters.share = Some(0.5);
        assert_eq!(acts(plan, 7), acts(plan, 7));
        assert!((0..50).any(|seed| acts(plan, seed) != acts(plan, seed + 1)));
    }

    #[test]
    fn die_restart_burn_core_and_foreign_load_act_once() {
        assert_eq!(acts(Plan::of(Lie::Die), 1), [(8500 * MS, Act::Die)]);
        assert_eq!(
            acts(Plan::of(Lie::Restart), 1),
            [(8500 * MS, Act::RestartAt(9000 * MS))]
        );
        assert_eq!(
            acts(Plan::of(Lie::BurnCore), 1),
            [(500 * MS, Act::BurnCore)]
        );
        assert_eq!(
            acts(Plan::of(Lie::ForeignLoad), 1),
            [(500 * MS, Act::ForeignLoad(10))]
        );
    }

    #[test]
    fn leak_memory_keeps_what_each_answer_leaves() {
        let mut process = ProcessLie::new(Plan::of(Lie::LeakMemory), 1);
        process.answered();
        process.answered();
        assert_eq!(process.leaked_bytes(), 2 * 65_536);
        let mut honest = ProcessLie::new(Plan::of(Lie::None), 1);
        honest.answered();
        assert_eq!(honest.leaked_bytes(), 0);
    }

    #[test]
    fn lie_in_metrics_counts_a_tenth_too_many() {
        let liar = ProcessLie::new(Plan::of(Lie::LieInMetrics), 1);
        assert_eq!(liar.frames_total(1000), 1100);
        assert_eq!(
            ProcessLie::new(Plan::of(Lie::None), 1).frames_total(1000),
            1000
        );
    }

    #[test]
    fn slow_accept_takes_one_connection_after_each_pause() {
        let mut process = ProcessLie::new(Plan::of(Lie::SlowAccept), 1);
        assert_eq!(process.accepts_at_us(), 0);
        process.accepted(300 * MS);
        assert_eq!(process.accepts_at_us(), 400 * MS);
        let mut honest = ProcessLie::new(Plan::of(Lie::None), 1);
        honest.accepted(300 * MS);
        assert_eq!(honest.accepts_at_us(), 0);
    }

    #[test]
    fn never_upgrade_takes_its_share() {
        let mut plan = Plan::of(Lie::NeverUpgrade);
        plan.parameters.share = Some(0.5);
        let mut process = ProcessLie::new(plan, 1);
        let ignored = (0..10).filter(|_| process.ignores_upgrade()).count();
        assert_eq!(ignored, 5);
        assert!(!ProcessLie::new(Plan::of(Lie::None), 1).ignores_upgrade());
    }
}
