//! The environments that cases need. Cases with the same setup share one gateway and its simulator.

use std::time::Duration;

use super::subject::Environment;

/// How the cases of a setup may share its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Several cases at a time.
    Together,
    /// One case after the other, because they set faults, fill limits or read counters.
    InTurn,
    /// A fresh gateway and simulator for each case, because it ends them or takes long.
    Alone,
}

/// Variables for a gateway and its simulator.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) name: &'static str,
    pub(super) sharing: Sharing,
    /// Its cases last longer than those of others, together: so they begin first.
    pub(super) lasts_long: bool,
    gateway: &'static [(&'static str, &'static str)],
    /// The simulator's answer takes exactly this long.
    simulator_delay_ms: u32,
}

/// Two workers in every setup: a limit or a counter that each worker keeps for itself is a fault that one would hide.
const ALWAYS: [(&str, &str); 1] = [("WORKER_THREADS", "2")];

impl Setup {
    pub(super) fn gateway_environment(&self, inference_url: &str) -> Environment {
        let mut environment: Environment = ALWAYS
            .iter()
            .chain(self.gateway)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        environment.insert("INFERENCE_URL".to_owned(), inference_url.to_owned());
        environment
    }

    pub(super) fn simulator_environment(&self) -> Environment {
        [
            ("MODEL_DELAY_MS", self.simulator_delay_ms.to_string()),
            ("MODEL_BATCH_WAIT_MAX_MS", "0".to_owned()),
            ("MODEL_JITTER_SIGMA", "0".to_owned()),
            ("MODEL_LONGTAIL_PROB", "0".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The variables that make this setup special, for texts.
    pub(super) fn variables(&self) -> String {
        let list: Vec<String> = self
            .gateway
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        list.join(" ")
    }

    /// The value of a numeric variable, or the contract's default.
    pub(super) fn number(&self, name: &str, default: u32) -> u32 {
        self.gateway
            .iter()
            .find(|(known, _)| *known == name)
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(default)
    }

    pub(super) fn model_delay(&self) -> Duration {
        Duration::from_millis(self.simulator_delay_ms.into())
    }
}

/// A gateway that only has an address: the contract's defaults are assumed.
pub(super) static DEFAULTS: Setup = Setup {
    name: "defaults",
    sharing: Sharing::Together,
    lasts_long: true,
    gateway: &[],
    simulator_delay_ms: 75,
};

/// Most cases: flushes come fast, so that cases are short.
pub(super) static BASE: Setup = Setup {
    name: "base",
    sharing: Sharing::Together,
    lasts_long: true,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "250"),
        ("START_TIMEOUT_MS", "1500"),
        ("MODEL_DELAY_MS", "60"),
    ],
    simulator_delay_ms: 60,
};

/// The model takes longer than two flush intervals. Passes and delay are not the defaults: they must be passed on.
pub(super) static SLOW_MODEL: Setup = Setup {
    name: "slow-model",
    sharing: Sharing::InTurn,
    lasts_long: true,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("CPU_PASSES", "3"),
        ("MODEL_DELAY_MS", "625"),
    ],
    simulator_delay_ms: 625,
};

/// A small buffer, a short time-out.
const SMALL_AND_HASTY: &[(&str, &str)] = &[
    ("FLUSH_INTERVAL_MS", "250"),
    ("FLUSH_PHASE_JITTER_MS", "0"),
    ("INFERENCE_TIMEOUT_MS", "500"),
    ("MAX_BUFFER_FRAMES", "20"),
];

/// Faults of the simulator: one case at a time.
pub(super) static FAULTS: Setup = Setup {
    name: "faults",
    sharing: Sharing::InTurn,
    lasts_long: false,
    gateway: SMALL_AND_HASTY,
    simulator_delay_ms: 20,
};

/// Counters. The same variables, but a gateway of its own, so that its cases need not wait for those of the faults.
pub(super) static COUNTERS: Setup = Setup {
    name: "counters",
    sharing: Sharing::InTurn,
    lasts_long: false,
    gateway: SMALL_AND_HASTY,
    simulator_delay_ms: 20,
};

/// Overflow that drops the oldest frames, with a model slow enough to overflow behind a request in flight.
pub(super) static DROP_OLDEST: Setup = Setup {
    name: "drop-oldest",
    sharing: Sharing::InTurn,
    lasts_long: false,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "drop_oldest"),
    ],
    simulator_delay_ms: 600,
};

/// Overflow that drops the newest frames.
pub(super) static DROP_NEWEST: Setup = Setup {
    name: "drop-newest",
    sharing: Sharing::InTurn,
    lasts_long: false,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "drop_newest"),
    ],
    simulator_delay_ms: 600,
};

/// Overflow that closes.
pub(super) static CLOSE_ON_OVERFLOW: Setup = Setup {
    name: "close-on-overflow",
    sharing: Sharing::InTurn,
    lasts_long: false,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "close"),
    ],
    simulator_delay_ms: 60,
};

/// One request in flight for the whole gateway.
pub(super) static ONE_JOB: Setup = Setup {
    name: "one-job",
    sharing: Sharing::InTurn,
    lasts_long: false,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_INFLIGHT_JOBS", "1"),
    ],
    simulator_delay_ms: 150,
};

/// A small outbox, and flushes so fast that a client that does not read fills it within seconds.
pub(super) static SMALL_OUTBOX: Setup = Setup {
    name: "small-outbox",
    sharing: Sharing::Alone,
    lasts_long: true,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "10"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("OUTBOX_MESSAGES", "2"),
        ("MAX_BUFFER_FRAMES", "50"),
    ],
    simulator_delay_ms: 1,
};

/// Two sessions and no more.
pub(super) static TWO_SESSIONS: Setup = Setup {
    name: "two-sessions",
    sharing: Sharing::InTurn,
    lasts_long: false,
    gateway: &[("MAX_SESSIONS", "2")],
    simulator_delay_ms: 60,
};

/// The token of [`WITH_TOKEN`].
pub(super) const TOKEN: &str = "load-line-0123456789";

/// A token is demanded.
pub(super) static WITH_TOKEN: Setup = Setup {
    name: "with-token",
    sharing: Sharing::Together,
    lasts_long: false,
    gateway: &[("AUTH_TOKEN", TOKEN)],
    simulator_delay_ms: 60,
};

/// A drain with time enough for what is in flight.
pub(super) static DRAIN: Setup = Setup {
    name: "drain",
    sharing: Sharing::Alone,
    lasts_long: false,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "200"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("DRAIN_TIMEOUT_MS", "3000"),
    ],
    simulator_delay_ms: 900,
};

/// A drain that cannot wait for what is in flight.
pub(super) static SHORT_DRAIN: Setup = Setup {
    name: "short-drain",
    sharing: Sharing::Alone,
    lasts_long: false,
    gateway: &[
        ("FLUSH_INTERVAL_MS", "200"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("DRAIN_TIMEOUT_MS", "700"),
        ("INFERENCE_TIMEOUT_MS", "60000"),
    ],
    simulator_delay_ms: 20_000,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_gives_its_variables_to_both_processes() {
        let gateway = BASE.gateway_environment("http://127.0.0.1:9");
        assert_eq!(gateway["FLUSH_INTERVAL_MS"], "250");
        assert_eq!(gateway["WORKER_THREADS"], "2");
        assert_eq!(gateway["INFERENCE_URL"], "http://127.0.0.1:9");
        assert_eq!(BASE.simulator_environment()["MODEL_DELAY_MS"], "60");
        assert_eq!(BASE.number("FLUSH_INTERVAL_MS", 1000), 250);
        assert_eq!(BASE.number("CPU_PASSES", 4), 4);
        assert_eq!(TWO_SESSIONS.variables(), "MAX_SESSIONS=2");
    }
}
