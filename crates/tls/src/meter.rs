//! Times what TLS costs one session.

use plimsoll_core::profile::Window;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::tls_cost::Timed;

/// Reads the CPU time that the calling thread has used, in nanoseconds.
pub type CpuClock = fn() -> u64;

/// Of the writes of a session, one in so many is timed, and of what it reads too. They are drawn by count. By time, the
/// slow ones would come too often, and those that follow one another at once too rarely.
const EVERY: u32 = 64;

/// Times the handshake of a session, and some of what it encrypts and decrypts in the measured window.
#[derive(Debug)]
pub(crate) struct Meter {
    clock: CpuClock,
    window: Window,
    writes: Turn,
    reads: Turn,
    /// The handshake as far as it has come.
    handshake: Timed,
    /// The write that the socket has not wholly taken.
    writing: Timed,
}

impl Meter {
    /// The meter of the session with this plan.
    pub(crate) fn new(clock: CpuClock, plan: &SessionPlan) -> Self {
        Self {
            clock,
            window: plan.window,
            writes: Turn::of(plan.id),
            reads: Turn::of(plan.id),
            handshake: Timed::default(),
            writing: Timed::default(),
        }
    }

    /// A new connection begins: what was timed of the last one, and is not recorded, belongs to no frame.
    pub(crate) fn begin(&mut self) {
        self.handshake = Timed::default();
        self.writing = Timed::default();
    }

    /// Does a part of the handshake.
    pub(crate) fn shake<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (done, part) = timed(self.clock, work);
        self.handshake.merge(&part);
        done
    }

    /// What the handshake cost, which is done.
    pub(crate) fn shaken(&mut self) -> Timed {
        Timed {
            count: 1,
            timed: 1,
            ..std::mem::take(&mut self.handshake)
        }
    }

    /// Encrypts a write.
    pub(crate) fn write(&mut self, now_ns: u64, work: impl FnOnce()) {
        let turn = &mut self.writes;
        ((), self.writing) = drawn(self.clock, self.window, turn, now_ns, work);
    }

    /// What the write cost, which the socket has wholly taken.
    pub(crate) fn written(&mut self) -> Timed {
        std::mem::take(&mut self.writing)
    }

    /// Decrypts a piece of what came, and says what that cost.
    pub(crate) fn read<T>(&mut self, now_ns: u64, work: impl FnOnce() -> T) -> (T, Timed) {
        drawn(self.clock, self.window, &mut self.reads, now_ns, work)
    }
}

/// Does this work, and times it if its turn has come.
fn drawn<T>(
    clock: CpuClock,
    window: Window,
    turn: &mut Turn,
    now_ns: u64,
    work: impl FnOnce() -> T,
) -> (T, Timed) {
    if !window.contains(now_ns) {
        return (work(), Timed::default());
    }
    if turn.has_come() {
        return timed(clock, work);
    }
    let counted = Timed {
        count: 1,
        ..Timed::default()
    };
    (work(), counted)
}

/// Does this work, and times it. The first two readings of the clock show what a reading takes.
fn timed<T>(clock: CpuClock, work: impl FnOnce() -> T) -> (T, Timed) {
    let readings_ns = [clock(), clock()];
    let done = work();
    let end_ns = clock();
    let cost = Timed {
        count: 1,
        timed: 1,
        between_ns: end_ns.saturating_sub(readings_ns[1]),
        clock_ns: readings_ns[1].saturating_sub(readings_ns[0]),
    };
    (done, cost)
}

/// How many are left before the next one that is timed.
#[derive(Debug)]
struct Turn(u32);

impl Turn {
    /// Sessions with one number after the other begin at different places, so that not all of them time the same frame,
    /// and those with few frames have their share.
    fn of(id: u32) -> Self {
        Self(id % EVERY)
    }

    fn has_come(&mut self) -> bool {
        let come = self.0 == 0;
        self.0 = if come { EVERY - 1 } else { self.0 - 1 };
        come
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn_once_in_64() {
        for id in [0, 1, 63, 64, 1_000_003] {
            let mut turn = Turn::of(id);
            let come: Vec<usize> = (0..640).filter(|_| turn.has_come()).collect();
            let first = usize::try_from(id % 64).unwrap();
            let expected: Vec<usize> = (first..640).step_by(64).collect();
            assert_eq!(come, expected);
        }
        // Sessions with two frames each have their share, too.
        let timed = (0..6_400).map(|id| {
            let mut turn = Turn::of(id);
            u32::from(turn.has_come()) + u32::from(turn.has_come())
        });
        assert_eq!(timed.sum::<u32>(), 2 * 6_400 / 64);
    }
}
