//! Caveats: named reasons for doubt, each with its remedy.
//!
//! A blocking caveat makes the trial `invalid`: the measurement itself was the limit, so it says nothing about the target, neither good nor bad.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason for doubt as it stands in a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// Stable name, in kebab case.
    pub id: String,
    /// Whether it makes the trial `invalid`.
    pub blocking: bool,
    /// What was seen, and what to do about it.
    pub text: String,
}

/// Every reason for doubt that Plimsoll knows, with what was observed.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt {
    /// The client wrote frames late by its own fault.
    SendLag {
        /// 99.9th percentile of the send lag.
        p999_us: f64,
        /// The most that is allowed.
        limit_us: f64,
    },
    /// An engine thread had no time left.
    ClientBusy {
        /// Share of its core that the busiest engine thread used.
        share: f64,
        /// The most that is allowed.
        limit: f64,
    },
    /// The inference simulator was late with its answers by its own fault.
    InferenceSaturated {
        /// 99th percentile of an answer's lateness against its drawn latency.
        lateness_p99_ms: f64,
        /// The most that is allowed.
        limit_ms: f64,
    },
    /// The simulator ended, or no longer answered, before the window did.
    InferenceGone,
    /// Requests waited for a free place in the simulator.
    InferenceQueued {
        /// 99th percentile of that wait.
        wait_p99_ms: f64,
        /// The most that is allowed.
        limit_ms: f64,
    },
    /// The client ran out of something of its own.
    ClientFault {
        /// What failed: `EMFILE`, `EADDRNOTAVAIL`, …
        what: String,
        /// How often.
        count: u64,
    },
    /// Another party's time was taken away by the machine.
    Steal {
        /// Share of the CPU time taken by the hypervisor in the measured window.
        share: f64,
        /// The most that is allowed.
        limit: f64,
    },
    /// Target and client ran on the same cores.
    SharedCores,
    /// The CPU quota asked for could not be set.
    NoQuota {
        /// What was asked for.
        vcpu: f64,
        /// Why not.
        why: String,
    },
    /// The target was not started by Plimsoll, so its resources are unknown.
    NoResources,
    /// Ctrl-C or a signal ended the trial early.
    Interrupted,
    /// The measured window has too few samples for the percentile that is gated.
    TooFewSamples {
        /// Samples in the record.
        samples: u64,
        /// The least that is needed.
        needed: u64,
    },
}

impl Doubt {
    /// Its name in results.
    #[must_use]
    pub fn id(&self) -> &'static str {
        match self {
            Self::SendLag { .. } => "send-lag",
            Self::ClientBusy { .. } => "client-busy",
            Self::InferenceSaturated { .. } => "inference-saturated",
            Self::InferenceGone => "inference-gone",
            Self::InferenceQueued { .. } => "inference-queued",
            Self::ClientFault { .. } => "client-fault",
            Self::Steal { .. } => "steal",
            Self::SharedCores => "shared-cores",
            Self::NoQuota { .. } => "no-quota",
            Self::NoResources => "no-resources",
            Self::Interrupted => "interrupted",
            Self::TooFewSamples { .. } => "too-few-samples",
        }
    }

    /// Whether it makes the trial `invalid`.
    #[must_use]
    pub fn blocking(&self) -> bool {
        match self {
            Self::SendLag { .. }
            | Self::ClientBusy { .. }
            | Self::InferenceSaturated { .. }
            | Self::InferenceGone
            | Self::InferenceQueued { .. }
            | Self::ClientFault { .. }
            | Self::Steal { .. }
            | Self::Interrupted
            | Self::TooFewSamples { .. } => true,
            Self::SharedCores | Self::NoQuota { .. } | Self::NoResources => false,
        }
    }

    /// Whether it says that the client or the machine ran out, so that more load cannot be tried here.
    #[must_use]
    pub fn client_ran_out(&self) -> bool {
        matches!(
            self,
            Self::SendLag { .. }
                | Self::ClientBusy { .. }
                | Self::InferenceSaturated { .. }
                | Self::InferenceQueued { .. }
                | Self::ClientFault { .. }
                | Self::Steal { .. }
        )
    }

    /// What was seen, and the remedy.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::SendLag { p999_us, limit_us } => format!(
                "the client wrote frames late: send lag p99.9 {:.1} ms, allowed {:.1} ms; give the client more cores (--client-cpus) or ask for fewer sessions",
                p999_us / 1e3,
                limit_us / 1e3
            ),
            Self::ClientBusy { share, limit } => format!(
                "the busiest engine thread used {:.0} % of its core, allowed {:.0} %; give the client more cores (--client-cpus) or ask for fewer sessions",
                share * 100.0,
                limit * 100.0
            ),
            Self::InferenceSaturated {
                lateness_p99_ms,
                limit_ms,
            } => format!(
                "the inference simulator answered late by its own fault: p99 {lateness_p99_ms:.1} ms, allowed {limit_ms:.1} ms; give the client more cores (--client-cpus) or run the simulator elsewhere (--inference URL)"
            ),
            Self::InferenceGone => "the inference simulator ended or no longer answered during the trial; its log is in the result folder's logs/, run the trial again".to_owned(),
            Self::InferenceQueued {
                wait_p99_ms,
                limit_ms,
            } => format!(
                "requests queued in the inference simulator: p99 {wait_p99_ms:.1} ms, allowed {limit_ms:.1} ms; raise MODEL_MAX_CONCURRENT"
            ),
            Self::ClientFault { what, count } => format!(
                "the client's machine failed {count} times with {what}; {}",
                client_fault_remedy(what)
            ),
            Self::Steal { share, limit } => format!(
                "the hypervisor took {:.1} % of the CPU time, allowed {:.1} %; measure on a quieter or a dedicated machine",
                share * 100.0,
                limit * 100.0
            ),
            Self::SharedCores => "target and client share cores, so each slows the other; give them their own with --target-cpus and --client-cpus".to_owned(),
            Self::NoQuota { vcpu, why } => format!(
                "a quota of {vcpu} vCPU could not be set ({why}), so the target had whole cores; run where cgroups are writable, for example as root"
            ),
            Self::NoResources => "the target's CPU and memory were not measured; name it with --pid or --cgroup".to_owned(),
            Self::Interrupted => "the trial was interrupted; what was measured until then is kept, run it again for a verdict".to_owned(),
            Self::TooFewSamples { samples, needed } => format!(
                "only {samples} samples for the gated percentile, at least {needed} are needed; use more sessions or a longer profile"
            ),
        }
    }
}

/// What a trial shows about its own soundness.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Client's send lag, 99.9th percentile.
    pub send_lag_p999_us: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub client_busy_share: f64,
    /// There was a simulator of ours, and it did not live to the window's end.
    pub inference_gone: bool,
    /// Lateness of the simulator's answers, 99th percentile; `None` without a simulator of ours.
    pub inference_lateness_p99_ms: Option<f64>,
    /// Time that requests waited for a place in it, 99th percentile.
    pub inference_queue_p99_ms: Option<f64>,
    /// Faults of the client's own machine.
    pub client_faults: BTreeMap<String, u64>,
    /// Share of CPU time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// Target and client share cores.
    pub shared_cores: bool,
    /// A quota that was needed and could not be set: what was asked for, and why not.
    pub no_quota: Option<(f64, String)>,
    /// The target's resources are unknown.
    pub no_resources: bool,
    /// The trial was ended early.
    pub interrupted: bool,
    /// Samples in the record, and how many the gates need; `None` when the verdict does not rest on percentiles.
    pub samples: Option<(u64, u64)>,
}

/// What is still allowed. `docs/methodology.md` gives the reasons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Send lag, 99.9th percentile.
    pub send_lag_p999_us: f64,
    /// Share of a core.
    pub client_busy_share: f64,
    /// Lateness and queueing of the simulator.
    pub inference_p99_ms: f64,
    /// Share of CPU time.
    pub steal_share: f64,
}

impl Limits {
    /// Limits for an SLO whose tightest latency gate is `tightest_ms`: the client and the simulator may bend what is measured by a twentieth of it,
    /// but 2 ms are always allowed, for below that a shared machine's scheduler is all that is seen.
    #[must_use]
    pub fn for_gate(tightest_ms: Option<f64>) -> Self {
        let twentieth_ms = tightest_ms.map_or(10.0, |ms| (ms / 20.0).max(2.0));
        Self {
            send_lag_p999_us: twentieth_ms * 1e3,
            client_busy_share: 0.95,
            inference_p99_ms: twentieth_ms,
            steal_share: 0.05,
        }
    }
}

/// The reasons for doubt in this evidence.
#[must_use]
pub fn doubts(evidence: &Evidence, limits: &Limits) -> Vec<Doubt> {
    let mut found = Vec::new();
    if evidence.interrupted {
        found.push(Doubt::Interrupted);
    }
    for (what, count) in &evidence.client_faults {
        found.push(Doubt::ClientFault {
            what: what.clone(),
            count: *count,
        });
    }
    let over = |value: Option<f64>, limit: f64| value.filter(|value| *value > limit);
    if let Some(share) = over(Some(evidence.client_busy_share), limits.client_busy_share) {
        found.push(Doubt::ClientBusy {
            share,
            limit: limits.client_busy_share,
        });
    }
    if let Some(p999_us) = over(evidence.send_lag_p999_us, limits.send_lag_p999_us) {
        found.push(Doubt::SendLag {
            p999_us,
            limit_us: limits.send_lag_p999_us,
        });
    }
    if evidence.inference_gone {
        found.push(Doubt::InferenceGone);
    }
    if let Some(p99_ms) = over(evidence.inference_lateness_p99_ms, limits.inference_p99_ms) {
        found.push(Doubt::InferenceSaturated {
            lateness_p99_ms: p99_ms,
            limit_ms: limits.inference_p99_ms,
        });
    }
    if let Some(p99_ms) = over(evidence.inference_queue_p99_ms, limits.inference_p99_ms) {
        found.push(Doubt::InferenceQueued {
            wait_p99_ms: p99_ms,
            limit_ms: limits.inference_p99_ms,
        });
    }
    if let Some(share) = over(evidence.steal_share, limits.steal_share) {
        found.push(Doubt::Steal {
            share,
            limit: limits.steal_share,
        });
    }
    if let Some((samples, needed)) = evidence.samples
        && samples < needed
        && !evidence.interrupted
    {
        found.push(Doubt::TooFewSamples { samples, needed });
    }
    if evidence.shared_cores {
        found.push(Doubt::SharedCores);
    }
    if let Some((vcpu, why)) = &evidence.no_quota {
        found.push(Doubt::NoQuota {
            vcpu: *vcpu,
            why: why.clone(),
        });
    }
    if evidence.no_resources {
        found.push(Doubt::NoResources);
    }
    found
}

fn client_fault_remedy(what: &str) -> &'static str {
    match what {
        "EMFILE" | "ENFILE" => "raise the limit of open files (ulimit -n)",
        "EADDRNOTAVAIL" => "widen the port range (sysctl net.ipv4.ip_local_port_range)",
        "ENOBUFS" | "ENOMEM" => "give the machine more memory for sockets",
        _ => "see `plimsoll doctor`",
    }
}

impl From<&Doubt> for Caveat {
    fn from(doubt: &Doubt) -> Self {
        Self {
            id: doubt.id().to_owned(),
            blocking: doubt.blocking(),
            text: doubt.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_ran_out_of_blocks() {
        let doubts = [
            Doubt::SendLag {
                p999_us: 9e3,
                limit_us: 5e3,
            },
            Doubt::ClientBusy {
                share: 0.99,
                limit: 0.9,
            },
            Doubt::ClientFault {
                what: "EMFILE".to_owned(),
                count: 3,
            },
        ];
        for doubt in &doubts {
            assert!(doubt.client_ran_out() && doubt.blocking(), "{doubt:?}");
            assert!(doubt.text().contains(';'), "no remedy: {}", doubt.text());
        }
        assert!(!Doubt::SharedCores.blocking());
    }

    #[test]
    fn a_sound_trial_has_no_doubts() {
        let evidence = Evidence {
            send_lag_p999_us: Some(900.0),
            client_busy_share: 0.6,
            inference_lateness_p99_ms: Some(1.0),
            inference_queue_p99_ms: Some(0.0),
            steal_share: Some(0.001),
            samples: Some((5_000, 200)),
            ..Evidence::default()
        };
        assert_eq!(doubts(&evidence, &Limits::for_gate(Some(200.0))), []);
    }

    #[test]
    fn each_limit_raises_its_doubt() {
        let evidence = Evidence {
            send_lag_p999_us: Some(10_001.0),
            client_busy_share: 0.96,
            inference_gone: true,
            inference_lateness_p99_ms: Some(10.1),
            inference_queue_p99_ms: Some(10.1),
            client_faults: [("EMFILE".to_owned(), 2)].into(),
            steal_share: Some(0.06),
            shared_cores: true,
            no_quota: Some((0.5, "read-only".to_owned())),
            no_resources: true,
            interrupted: false,
            samples: Some((199, 200)),
        };
        let found = doubts(&evidence, &Limits::for_gate(Some(200.0)));
        let ids: Vec<_> = found.iter().map(Doubt::id).collect();
        assert_eq!(
            ids,
            [
                "client-fault",
                "client-busy",
                "send-lag",
                "inference-gone",
                "inference-saturated",
                "inference-queued",
                "steal",
                "too-few-samples",
                "shared-cores",
                "no-quota",
                "no-resources"
            ]
        );
    }

    #[test]
    fn a_caveat_carries_the_remedy() {
        let caveat = Caveat::from(&Doubt::ClientFault {
            what: "EMFILE".to_owned(),
            count: 1,
        });
        assert_eq!(caveat.id, "client-fault");
        assert!(caveat.text.contains("ulimit -n"));
    }
}
