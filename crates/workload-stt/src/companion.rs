//! The inference simulator as the companion of a trial.

use std::path::{Path, PathBuf};

use plimsoll_core::bottleneck::Bottleneck;
use plimsoll_core::caveat::CompanionTerms;
use plimsoll_core::latency::Percentiles;
use plimsoll_core::record::CompanionWindow;
use plimsoll_host::Result;
use plimsoll_workload::Manifest;
use plimsoll_workload::companion::program::{Elsewhere, Program, Told};
use plimsoll_workload::companion::{Companion, CompanionSeen, Companions, Deployed, Start};

use crate::plan::{ASKS_INFERENCE, MODEL_DELAY_MS};
use crate::simulator::{ABOUT, Stats};
use crate::synthetic::FRAME_BYTES;

/// What one batch costs the simulator, in µs of CPU: about what `cargo bench -p plimsoll-inference` measures, and a
/// session sends one each second.
const CPU_US_PER_BATCH: f64 = 80.0;

/// The stages of an error are those of section 7 of the contract in which a gateway waits for its back end.
const TERMS: CompanionTerms = CompanionTerms {
    id: "inference",
    name: "the inference simulator",
    more_cores: "give the client more cores (--client-cpus) or run the simulator elsewhere (--inference URL)",
    log: "the result folder's logs/",
    more_places: "raise MODEL_MAX_CONCURRENT",
    frame_bytes: Some(FRAME_BYTES as u64),
    error_stages: &["inference_request", "inference_response_parse"],
    bottleneck: Bottleneck::BackEnd,
};

/// Finds and starts the simulator.
#[derive(Debug)]
pub(crate) struct InferenceSimulator;

impl Companions for InferenceSimulator {
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
        let program = Program::start(&ABOUT, program, settings(how.seed), how)?;
        Ok(Box::new(Started(program)))
    }

    fn at(&self, url: &str) -> Option<Box<dyn Companion>> {
        let simulators = Elsewhere::<Stats>::at(url)?;
        Some(Box::new(simulators))
    }

    fn told(&self, url: &str) -> Vec<(String, String)> {
        vec![("INFERENCE_URL".to_owned(), url.to_owned())]
    }

    fn deployed(&self) -> Deployed {
        Deployed {
            program: ABOUT.name,
            settings: settings(USUAL_SEED),
        }
    }

    /// Only a target that tests Plimsoll may compute its answers itself.
    fn is_asked_by(&self, target: &Manifest) -> bool {
        !target.denies(ASKS_INFERENCE)
    }

    fn cpu_us_per_session_second(&self) -> f64 {
        CPU_US_PER_BATCH
    }
}

/// The seed of a simulator that runs for many trials: the usual one of a trial.
const USUAL_SEED: u64 = 1;

fn settings(seed: u64) -> Vec<(String, String)> {
    vec![
        ("MODEL_SEED".to_owned(), seed.to_string()),
        ("MODEL_DELAY_MS".to_owned(), MODEL_DELAY_MS.to_string()),
    ]
}

/// A simulator of the trial's own.
struct Started(Program);

impl Companion for Started {
    fn pid(&self) -> Option<i32> {
        Some(self.0.pid())
    }

    fn url(&self) -> &str {
        self.0.control().url()
    }

    fn begin_window(&self) -> Result<()> {
        self.0.control().reset_stats()
    }

    fn seen(&self) -> Result<CompanionSeen> {
        let stats: Stats = self.0.control().stats()?;
        Ok(stats.seen())
    }

    fn stop(self: Box<Self>) -> Result<()> {
        self.0.stop().map(drop)
    }
}

impl Told for Stats {
    fn together(each: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| each.iter().map(of).sum();
        let worst = |of: fn(&Self) -> Percentiles| Percentiles::worst_of(each.iter().map(of));
        Self {
            requests: sum(|of| of.requests),
            request_bytes: sum(|of| of.request_bytes),
            request_bytes_in_all: sum(|of| of.request_bytes_in_all),
            busy_us: sum(|of| of.busy_us),
            window_us: sum(|of| of.window_us),
            queue_wait: worst(|of| of.queue_wait),
            answer_lateness: worst(|of| of.answer_lateness),
            ..Self::default()
        }
    }

    fn seen(&self) -> CompanionSeen {
        CompanionSeen {
            window: CompanionWindow {
                requests: self.requests,
                busy_share: self.busy_share(),
                cpu_us_per_request: None,
                cpu_us_per_session_second: None,
                queue_wait: self.queue_wait.into(),
                answer_lateness: self.answer_lateness.into(),
                request_bytes: Some(self.request_bytes),
                resources: None,
            },
            request_bytes_in_all: self.request_bytes_in_all,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::caveat::{Caveat, Doubt, Terms};
    use plimsoll_core::latency::LagQuantiles;
    use plimsoll_workload::{Keys, Workload};

    use super::*;
    use crate::Stt;

    /// Earlier records have these ids, and other tools read them.
    #[test]
    fn its_caveats_have_the_ids_of_earlier_records() {
        let terms = Terms {
            companion: TERMS,
            ..Terms::default()
        };
        let told = |doubt: &Doubt| {
            let caveat = Caveat::of(doubt, &terms);
            (caveat.id, caveat.text)
        };
        let expected = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        assert_eq!(
            told(&Doubt::CompanionSaturated {
                lateness_p99_ms: 11.0,
                limit_ms: 10.0
            }),
            expected(
                "inference-saturated",
                "the inference simulator itself answered late: p99 11.0 ms, allowed 10.0 ms; give the client more cores (--client-cpus) or run the simulator elsewhere (--inference URL)"
            )
        );
        assert_eq!(
            told(&Doubt::CompanionQueued {
                wait_p99_ms: 11.0,
                limit_ms: 10.0
            }),
            expected(
                "inference-queued",
                "requests queued in the inference simulator: p99 11.0 ms, allowed 10.0 ms; raise MODEL_MAX_CONCURRENT"
            )
        );
        let (id, text) = told(&Doubt::CompanionGone);
        assert_eq!(id, "inference-gone");
        assert!(text.starts_with("the inference simulator exited or stopped answering"));
    }

    #[test]
    fn several_simulators_are_told_as_one_by_the_worst_of_them() {
        let late = |p99_us, max_us| Percentiles {
            p50_us: 1,
            p99_us,
            max_us,
        };
        let one = Stats {
            requests: 10,
            request_bytes: 100,
            request_bytes_in_all: 1_000,
            busy_us: 30,
            window_us: 100,
            queue_wait: late(5, 90),
            answer_lateness: late(7, 8),
            ..Stats::default()
        };
        let other = Stats {
            busy_us: 10,
            queue_wait: late(20, 30),
            ..one.clone()
        };
        let seen = Stats::together(&[one, other]).seen();
        assert_eq!(seen.request_bytes_in_all, 2_000);
        assert_eq!((seen.window.requests, seen.window.busy_share), (20, 0.2));
        let quantiles = |of: &LagQuantiles| (of.p50_us, of.p99_us, of.max_us);
        let expected = (Some(1.0), Some(20.0), Some(90.0));
        assert_eq!(quantiles(&seen.window.queue_wait), expected);
    }

    #[test]
    fn where_nothing_answers_there_is_no_simulator() {
        for url in [
            "http://127.0.0.1:9",
            "ws://127.0.0.1:9",
            "http://no-such-name.invalid:1",
        ] {
            assert!(InferenceSimulator.at(url).is_none(), "{url}");
        }
    }

    #[test]
    fn a_deployed_simulator_has_the_settings_of_a_trial() {
        let deployed = InferenceSimulator.deployed();
        assert_eq!(deployed.program, "plimsoll-inference");
        assert_eq!(deployed.settings, settings(1));
        let delay = ("MODEL_DELAY_MS".to_owned(), MODEL_DELAY_MS.to_string());
        assert!(deployed.settings.contains(&delay), "{deployed:?}");
    }

    fn manifest(tier: &str, own_key: &str) -> std::result::Result<Manifest, String> {
        let text = format!(
            "name = \"a\"\nworkload = \"stt\"\ntier = \"{tier}\"\nlanguage = \"x\"\ndescription = \"x\"\ninference_transport = \"h2c\"\n{own_key}\n[run]\ncommand = [\"sh\"]\n"
        );
        let keys = |_: &str| Some(Keys::of(Stt.manifest_keys()));
        Manifest::parse(&text, Path::new("/t/stt/a/target.toml"), keys)
    }

    #[test]
    fn only_a_target_for_tests_may_work_without_the_simulator() {
        let asks = |tier: &str, own_key: &str| {
            manifest(tier, own_key).map(|manifest| InferenceSimulator.is_asked_by(&manifest))
        };
        assert_eq!(asks("engine", ""), Ok(true));
        assert_eq!(asks("engine", "asks_inference = true"), Ok(true));
        assert_eq!(asks("test", "asks_inference = false"), Ok(false));
        let text = asks("engine", "asks_inference = false").unwrap_err();
        assert_eq!(
            text,
            "asks_inference is false, but the tier is engine; remove the key: only a target of tier \"test\" may work without its inference server"
        );
    }
}
