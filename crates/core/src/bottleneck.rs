//! What ran out first, told from the trials around the edge.

use crate::record::Trial;

/// Share of what it was given from which on a target is called busy.
const CPU_BUSY_SHARE: f64 = 0.9;
/// Share of quota periods with throttling from which on the quota is called the limit.
const THROTTLED_SHARE: f64 = 0.05;

/// Names what limited the target in a failed trial, with the evidence; `None` when the trial did not fail.
#[must_use]
pub fn bottleneck(trial: &Trial) -> Option<String> {
    let failed = trial.gates.iter().find(|gate| !gate.pass)?;
    let Some(resources) = &trial.target_resources else {
        return Some(format!(
            "unknown: {} did not hold, and the target's resources were not measured",
            failed.name
        ));
    };
    let cpu = format!(
        "the target used {:.0} % of the CPU time it was given",
        resources.cpu_share * 100.0
    );
    let throttled = resources.throttled_share.unwrap_or(0.0);
    Some(if throttled >= THROTTLED_SHARE {
        format!(
            "quota throttling: held back in {:.0} % of the quota's periods, and {cpu}",
            throttled * 100.0
        )
    } else if resources.cpu_share >= CPU_BUSY_SHARE {
        format!("cpu: {cpu}")
    } else if trial.ledger.sessions_failed + trial.ledger.sessions_died > 0 {
        format!(
            "sessions refused or ended: {} failed, {} died, though {cpu}",
            trial.ledger.sessions_failed, trial.ledger.sessions_died
        )
    } else {
        format!(
            "latency without cpu: {} did not hold, though {cpu}",
            failed.name
        )
    })
}
