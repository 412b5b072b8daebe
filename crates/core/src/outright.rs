//! Failures that no SLO has to name: with these, a trial fails whatever its gates say.
//!
//! Each is recorded as a gate of its own, which did not hold. A trial without them has no such gate.

use crate::record::GateResult;

/// Why a trial fails outright.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outright {
    /// The target's process ended while the trial ran.
    TargetDied,
    /// Nothing was answered in the whole warm-up. The trial ended with it.
    WarmUpUnanswered,
    /// The trial crashed the target, which did not become ready again.
    TargetNotBack,
}

impl Outright {
    const ALL: [Self; 3] = [
        Self::TargetDied,
        Self::WarmUpUnanswered,
        Self::TargetNotBack,
    ];

    /// Its name among the gates of a trial.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TargetDied => "target_died",
            Self::WarmUpUnanswered => "warm_up_unanswered",
            Self::TargetNotBack => "target_not_back",
        }
    }

    /// The failure that a gate of this name stands for.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outright| outright.name() == name)
    }

    /// The first one that a trial's gates name.
    #[must_use]
    pub fn among(gates: &[GateResult]) -> Option<Self> {
        gates.iter().find_map(|gate| Self::of(&gate.name))
    }

    /// Its gate, which did not hold: it happened once.
    #[must_use]
    pub fn gate(self) -> GateResult {
        GateResult {
            name: self.name().to_owned(),
            threshold: 0.0,
            observed: Some(1.0),
            pass: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_gate_that_is_recognised() {
        for outright in Outright::ALL {
            let gate = outright.gate();
            assert!(!gate.pass && !gate.is_on_latency());
            assert_eq!(Outright::of(&gate.name), Some(outright));
            assert_eq!(Outright::among(&[gate]), Some(outright));
        }
        assert_eq!(Outright::of("frames_lost"), None);
        assert_eq!(Outright::among(&[]), None);
    }
}
