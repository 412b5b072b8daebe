//! The CPU quota of a target that gets less than a vCPU: its period, and whether the gates leave room for its stops.
//!
//! Of each period, a busy target runs for its share and is stopped for the rest. A request that comes at the beginning of
//! a stop waits for all of it. So a gate that is hardly longer than a stop says more about the period than about the
//! target.

use plimsoll_core::slo::{Gate, Metric, Slo};
use plimsoll_workload::Plan;

use crate::args::Where;
use crate::failure::Failure;

/// A latency gate must be at least so many times the stop.
const STOPS_IN_A_GATE: f64 = 2.0;

/// The quota's period, in µs: as requested, otherwise the plan's usual one. It is longer if the quota would otherwise be
/// below the millisecond that the kernel demands.
pub(super) fn period_us(place: &Where, plan: &dyn Plan) -> u64 {
    let given_us = place.quota_period_ms.map(|ms| ms * 1_000);
    let wanted_us = given_us.unwrap_or_else(|| plan.quota_period_us());
    wanted_us.max(least_period_us(place.vcpu))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds of a period; the placement refuses a vCPU below 0.01"
)]
fn least_period_us(vcpu: f64) -> u64 {
    (1_000.0 / vcpu).ceil() as u64
}

/// Refuses a gate on the newest or on the confirm latency that is below twice the stop of this quota: an answer and a
/// confirmation both wait until the target runs again.
///
/// # Errors
/// One line with the shorter period, or with more vCPU if no period is short enough.
pub(super) fn must_leave_room(vcpu: f64, period_us: u64, slos: &[Slo]) -> Result<(), Failure> {
    // A whole vCPU has no quota, and the placement refuses what is too little or no number.
    if !(0.01..1.0).contains(&vcpu) {
        return Ok(());
    }
    let waits = |gate: &&Gate| {
        matches!(
            gate.metric,
            Metric::Newest(_) | Metric::Confirm(_) | Metric::WorstSecond
        )
    };
    let gates = slos
        .iter()
        .flat_map(|slo| slo.gates.iter().filter(waits).map(move |gate| (slo, gate)));
    let tightest = gates.min_by(|(_, a), (_, b)| a.threshold.total_cmp(&b.threshold));
    let Some((slo, gate)) = tightest else {
        return Ok(());
    };
    let stop_ms = |period_us: u64| float(period_us) / 1e3 * (1.0 - vcpu);
    let leaves_room = |period_us| gate.threshold >= STOPS_IN_A_GATE * stop_ms(period_us);
    if leaves_room(period_us) {
        return Ok(());
    }
    let limit_ms = gate.threshold;
    let what = format!(
        "more than half of the gate {} {limit_ms} of SLO {}",
        gate.metric.name(),
        slo.name
    );
    let most_ms = (limit_ms / STOPS_IN_A_GATE / (1.0 - vcpu)).floor();
    Err(Failure::Usage(if leaves_room(least_period_us(vcpu)) {
        format!(
            "--quota-period-ms {}: at --vcpu {vcpu} the quota stops the target for {:.1} ms at a time, {what}; give at most --quota-period-ms {}, or a whole --vcpu",
            float(period_us) / 1e3,
            stop_ms(period_us),
            most_ms.max(1.0)
        )
    } else {
        // The least period is 1/v ms, so its stop is (1 - v)/v ms.
        let least_vcpu = STOPS_IN_A_GATE / (limit_ms + STOPS_IN_A_GATE);
        format!(
            "--vcpu {vcpu}: the shortest quota stops the target for {:.1} ms at a time, {what}; give at least --vcpu {}, best a whole one, or another --slo",
            stop_ms(least_period_us(vcpu)),
            (least_vcpu * 100.0).ceil() / 100.0
        )
    }))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of a period are far below 2^53"
)]
fn float(us: u64) -> f64 {
    us as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use crate::setup::plan::plan;
    use clap::Parser;
    use plimsoll_core::slo::Percentile;

    /// The period of this call, and what is said of its gates.
    fn quota(line: &str) -> (u64, Result<(), String>) {
        let words = format!("plimsoll run x --sessions 5 {line}");
        let args = Args::try_parse_from(words.split_whitespace()).expect("a call");
        let Command::Run(run) = args.command else {
            panic!("{line}");
        };
        let plan = plan(&run.which, &run.load, None).expect("a plan");
        let mut slos = vec![plan.slo()];
        slos.extend(plan.further_slos());
        let period_us = period_us(&run.place, &*plan);
        let room = must_leave_room(run.place.vcpu, period_us, &slos);
        (period_us, room.map_err(|refused| refused.to_string()))
    }

    #[test]
    fn a_period_is_as_given_or_usual_but_its_quota_is_a_millisecond() {
        for (line, period_us) in [
            ("--workload stt --vcpu 0.5", 10_000),
            ("--workload stt --vcpu 0.5 --quota-period-ms 100", 100_000),
            ("--workload stt --vcpu 0.05", 20_000),
            ("--workload http --vcpu 0.25", 4_000),
            ("--workload http --vcpu 0.3", 3_334),
            ("--workload http --vcpu 0.25 --quota-period-ms 6", 6_000),
            ("--workload http --vcpu 0.25 --quota-period-ms 1", 4_000),
        ] {
            assert_eq!(quota(line).0, period_us, "{line}");
        }
    }

    #[test]
    fn a_confirmation_waits_for_a_stop_too() {
        let room = |metric, ms| {
            let slo = Slo::of("queue", &[(metric, ms)]);
            must_leave_room(0.5, 100_000, &[slo]).map_err(|refused| refused.to_string())
        };
        let confirm = Metric::Confirm(Percentile::P99);
        assert_eq!(room(confirm, 100.0), Ok(()));
        let refused = room(confirm, 99.0).expect_err("less than two stops of 50 ms");
        assert!(
            refused.contains("confirm_p99_ms 99 of SLO queue"),
            "{refused}"
        );
        // The oldest frame of an answer may have waited for its batch: such a gate is about more than a stop.
        assert_eq!(room(Metric::Oldest(Percentile::P99), 99.0), Ok(()));
        assert_eq!(room(Metric::BacklogSlope, 0.005), Ok(()));
    }

    #[test]
    fn a_gate_has_room_for_two_stops() {
        for line in [
            "--workload http",
            // Stops of 1, 3 and 4.5 ms, and a gate of 10 ms.
            "--workload http --vcpu 0.5",
            "--workload http --vcpu 0.25",
            "--workload http --vcpu 0.25 --quota-period-ms 6",
            "--workload http --vcpu 0.2",
            // 7.5 ms, and a gate of 200 ms.
            "--workload stt --vcpu 0.25",
            // A target with whole vCPUs is never stopped.
            "--workload http --vcpu 2 --quota-period-ms 100",
        ] {
            assert_eq!(quota(line).1, Ok(()), "{line}");
        }
    }

    #[test]
    fn a_gate_without_that_room_is_refused_with_the_remedy() {
        for (line, words) in [
            (
                "--workload http --vcpu 0.25 --quota-period-ms 10",
                [
                    "--quota-period-ms 10: ",
                    "7.5 ms",
                    "newest_p99_ms 10 of SLO http-strict",
                    "at most --quota-period-ms 6",
                ],
            ),
            (
                "--workload http --vcpu 0.1",
                [
                    "--vcpu 0.1: ",
                    "9.0 ms",
                    "newest_p99_ms 10",
                    "at least --vcpu 0.17",
                ],
            ),
            (
                "--workload stt --vcpu 0.25 --quota-period-ms 300",
                [
                    "--quota-period-ms 300: ",
                    "225.0 ms",
                    "newest_p50_ms 200 of SLO stt",
                    "at most --quota-period-ms 133",
                ],
            ),
        ] {
            let text = quota(line).1.expect_err(line);
            assert!(!text.contains('\n'), "{text}");
            for word in words {
                assert!(text.contains(word), "no {word:?}: {text}");
            }
        }
        // What is proposed is allowed.
        assert_eq!(quota("--workload http --vcpu 0.17").1, Ok(()));
        let proposed = "--workload stt --vcpu 0.25 --quota-period-ms 133";
        assert_eq!(quota(proposed).1, Ok(()));
    }
}
