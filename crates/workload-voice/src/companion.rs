//! The mock providers as the companion of a trial.

use std::path::{Path, PathBuf};

use plimsoll_core::bottleneck::Bottleneck;
use plimsoll_core::caveat::CompanionTerms;
use plimsoll_core::latency::{LagQuantiles, Percentiles};
use plimsoll_core::record::CompanionWindow;
use plimsoll_host::Result;
use plimsoll_workload::Findings;
use plimsoll_workload::companion::program::{About, Elsewhere, Program, Told};
use plimsoll_workload::companion::{Companion, CompanionSeen, Companions, Deployed, Start};
use serde::{Deserialize, Serialize};

/// About what a caller's second costs the mocks, in µs of CPU.
const CPU_US_PER_CALLER_SECOND: f64 = 250.0;

const ABOUT: About = About {
    called: "the mock providers",
    name: "plimsoll-providers",
    variable: "PLIMSOLL_PROVIDERS_BIN",
    remedy: "cargo build --release -p plimsoll-providers",
    not_inherited: &["BIND", "SEED", "PROFILE", "TTS_PACE", "TTS_CHUNK_MS"],
};

const TERMS: CompanionTerms = CompanionTerms {
    id: "providers",
    name: "the mock providers",
    more_cores: "give the client more cores (--client-cpus) or use fewer callers",
    log: "the result folder's logs/",
    more_places: "use fewer callers",
    frame_bytes: None,
    error_stages: &[
        "tts_failed",
        "tts_timeout",
        "tts_rate_limited",
        "stt_lost",
        "stt_failed",
    ],
    bottleneck: Bottleneck::Provider,
};

/// Finds and starts the mock providers.
#[derive(Debug)]
pub(crate) struct Mocks;

impl Companions for Mocks {
    fn terms(&self) -> &'static CompanionTerms {
        &TERMS
    }

    fn find(&self, root: Option<&Path>) -> Result<PathBuf> {
        ABOUT.find(root)
    }

    fn remedy(&self) -> &'static str {
        ABOUT.remedy
    }

    fn start(&self, program: &Path, how: &Start<'_>) -> Result<Box<dyn Companion>> {
        let mut settings = vec![("SEED".to_owned(), how.seed.to_string())];
        let profile = how.told["profile"].as_str();
        settings.extend(profile.map(|name| ("PROFILE".to_owned(), name.to_owned())));
        let program = Program::start(&ABOUT, program, settings, how)?;
        Ok(Box::new(RunningMocks {
            program,
            faults: how.told["faults"].clone(),
        }))
    }

    fn at(&self, url: &str) -> Option<Box<dyn Companion>> {
        let mocks = Elsewhere::<Stats>::at(url)?;
        Some(Box::new(mocks))
    }

    fn told(&self, url: &str) -> Vec<(String, String)> {
        vec![("PROVIDER_URLS".to_owned(), url.to_owned())]
    }

    fn deployed(&self) -> Deployed {
        // The usual seed and profile are the program's own defaults too.
        Deployed {
            program: ABOUT.name,
            settings: Vec::new(),
        }
    }

    fn cpu_us_per_session_second(&self) -> f64 {
        CPU_US_PER_CALLER_SECOND
    }
}

struct RunningMocks {
    program: Program,
    /// What goes wrong from the window's beginning on; null if nothing does.
    faults: Findings,
}

impl Companion for RunningMocks {
    fn pid(&self) -> Option<i32> {
        Some(self.program.pid())
    }

    fn url(&self) -> &str {
        self.program.control().url()
    }

    fn begin_window(&self) -> Result<()> {
        if !self.faults.is_null() {
            self.program.control().set_faults(&self.faults)?;
        }
        self.program.control().reset_stats()
    }

    fn seen(&self) -> Result<CompanionSeen> {
        let stats: Stats = self.program.control().stats()?;
        Ok(stats.seen())
    }

    fn account(&self) -> Result<Findings> {
        let stats: Findings = self.program.control().stats()?;
        Ok(stats["providers"].clone())
    }

    fn stop(self: Box<Self>) -> Result<()> {
        self.program.stop().map(drop)
    }
}

/// What of `GET /stats` matters to every trial. `crates/providers` writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Requests answered: replies, and results of utterances.
    pub requests: u64,
    /// Time for which its event loop was busy, µs.
    pub busy_us: u64,
    /// The window's length, µs.
    pub window_us: u64,
    /// How late answers were handed over, compared with their drawn times.
    pub lateness: Percentiles,
    /// Bytes of audio that came in the window.
    pub audio_bytes: u64,
    /// The same since it started.
    pub audio_bytes_in_all: u64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of a trial are far below 2^53"
)]
impl Told for Stats {
    fn together(each: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| each.iter().map(of).sum();
        Self {
            requests: sum(|of| of.requests),
            busy_us: sum(|of| of.busy_us),
            window_us: sum(|of| of.window_us),
            lateness: Percentiles::worst_of(each.iter().map(|stats| stats.lateness)),
            audio_bytes: sum(|of| of.audio_bytes),
            audio_bytes_in_all: sum(|of| of.audio_bytes_in_all),
        }
    }

    fn seen(&self) -> CompanionSeen {
        CompanionSeen {
            window: CompanionWindow {
                requests: self.requests,
                busy_share: self.busy_us as f64 / self.window_us.max(1) as f64,
                cpu_us_per_request: None,
                cpu_us_per_session_second: None,
                queue_wait: LagQuantiles::default(),
                answer_lateness: self.lateness.into(),
                request_bytes: Some(self.audio_bytes),
                resources: None,
            },
            request_bytes_in_all: self.audio_bytes_in_all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_mocks_are_told_as_one_by_the_worst_of_them() {
        let one = Stats {
            requests: 10,
            busy_us: 30,
            window_us: 100,
            lateness: Percentiles {
                p50_us: 1,
                p99_us: 7,
                max_us: 8,
            },
            audio_bytes: 100,
            audio_bytes_in_all: 1_000,
        };
        let mut other = one.clone();
        (other.busy_us, other.lateness.p99_us) = (10, 20);
        let CompanionSeen {
            window,
            request_bytes_in_all,
        } = Stats::together(&[one, other]).seen();
        assert_eq!(request_bytes_in_all, 2_000);
        assert_eq!((window.requests, window.busy_share), (20, 0.2));
        let late = window.answer_lateness;
        let quantiles = (late.p50_us, late.p99_us, late.max_us);
        assert_eq!(quantiles, (Some(1.0), Some(20.0), Some(8.0)));
    }
}
