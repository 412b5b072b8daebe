//! Which of the broken gates of a trial to report.

use crate::outright::Outright;
use crate::record::GateResult;
use crate::slo::Metric;

/// Faults that no load excuses: an answer that is wrong, duplicated or out of order.
const FAULTS_OF_ANSWERS: [Metric; 3] = [
    Metric::ContentWrong,
    Metric::FramesDuplicated,
    Metric::FramesOutOfOrder,
];

/// The broken gate that gave way first.
///
/// What fails a trial outright comes first: the rest follows from it. Then come wrong, duplicated and reordered answers:
/// a target that gives them does so at any load, and their latency is of no use. Next comes the latency that exceeds its threshold by the greatest factor, because under load answers
/// are late before anything is lost. Then comes the first of the remaining gates.
#[must_use]
pub fn first_broken(gates: &[GateResult]) -> Option<&GateResult> {
    let broken = || broken(gates);
    let excess = |gate: &GateResult| match gate.observed {
        Some(value) if gate.threshold > 0.0 => value / gate.threshold,
        _ => f64::INFINITY,
    };
    broken()
        .find(|gate| is_outright(gate))
        .or_else(|| broken().find(|gate| is_fault_of_answers(gate)))
        .or_else(|| {
            broken()
                .filter(|gate| gate.is_on_latency())
                .max_by(|a, b| excess(a).total_cmp(&excess(b)))
        })
        .or_else(|| broken().next())
}

/// Whether lateness can explain the broken gates, no matter who was late: some are broken, and none of those is about
/// wrong, duplicated or reordered answers, or fails the trial outright.
#[must_use]
pub fn by_lateness(gates: &[GateResult]) -> bool {
    broken(gates).next().is_some()
        && !broken(gates).any(|gate| is_fault_of_answers(gate) || is_outright(gate))
}

fn broken(gates: &[GateResult]) -> impl Iterator<Item = &GateResult> {
    gates.iter().filter(|gate| !gate.pass)
}

fn is_outright(gate: &GateResult) -> bool {
    Outright::of(&gate.name).is_some()
}

fn is_fault_of_answers(gate: &GateResult) -> bool {
    let mut faults = FAULTS_OF_ANSWERS.iter();
    faults.any(|metric| metric.name() == gate.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(name: &str, threshold: f64, observed: f64) -> GateResult {
        GateResult {
            name: name.to_owned(),
            threshold,
            observed: Some(observed),
            pass: observed <= threshold,
        }
    }

    fn told(gates: &[GateResult]) -> Option<&str> {
        first_broken(gates).map(|gate| gate.name.as_str())
    }

    #[test]
    fn nothing_where_all_gates_hold() {
        let gates = [gate("newest_p50_ms", 200.0, 199.0)];
        assert_eq!(told(&gates), None);
        assert!(!by_lateness(&gates));
    }

    #[test]
    fn the_latency_that_is_exceeded_most_comes_before_what_is_lost() {
        let gates = [
            gate("frames_lost", 0.0, 7.0),
            gate("newest_p50_ms", 200.0, 300.0),
            gate("newest_p95_ms", 350.0, 900.0),
            gate("oldest_p50_ms", 1_200.0, 1_100.0),
        ];
        assert_eq!(told(&gates), Some("newest_p95_ms"));
    }

    #[test]
    fn wrong_answers_come_before_late_ones() {
        let gates = [
            gate("newest_p95_ms", 350.0, 9_000.0),
            gate("error_rate", 1e-5, 0.5),
            gate("content_wrong", 0.0, 1.0),
        ];
        assert_eq!(told(&gates), Some("content_wrong"));
        assert!(!by_lateness(&gates) && by_lateness(&gates[..2]));
    }

    #[test]
    fn what_fails_outright_comes_before_everything() {
        let died = Outright::TargetDied.gate();
        let gates = [
            gate("newest_p95_ms", 350.0, 9_000.0),
            gate("content_wrong", 0.0, 1.0),
            died,
        ];
        assert_eq!(told(&gates), Some("target_died"));
        assert!(!by_lateness(&gates[2..]));
    }

    #[test]
    fn a_latency_that_was_not_observed_is_exceeded_without_end() {
        let mut never = gate("newest_p50_ms", 200.0, 0.0);
        (never.observed, never.pass) = (None, false);
        let gates = [gate("newest_p95_ms", 350.0, 9_000.0), never];
        assert_eq!(told(&gates), Some("newest_p50_ms"));
    }

    #[test]
    fn without_a_late_answer_the_first_of_the_counts() {
        let gates = [gate("error_rate", 1e-5, 0.5), gate("frames_lost", 0.0, 3.0)];
        assert_eq!(told(&gates), Some("error_rate"));
    }
}
