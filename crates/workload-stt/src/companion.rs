//! The inference simulator as the companion of a trial.

use std::path::{Path, PathBuf};

use plimsoll_core::latency::LagQuantiles;
use plimsoll_core::record::Inference;
use plimsoll_host::Result;
use plimsoll_workload::companion::{Companion, CompanionSeen, Companions, Start};

use crate::plan::MODEL_DELAY_MS;
use crate::simulator::{Quantiles, Simulator, Stats, find_binary};

/// What one batch costs the simulator, in µs of CPU: about what `cargo bench -p plimsoll-inference` measures, and a
/// session sends one each second.
const CPU_US_PER_BATCH: f64 = 80.0;

/// Finds and starts the simulator.
#[derive(Debug)]
pub(crate) struct InferenceSimulator;

impl Companions for InferenceSimulator {
    fn name(&self) -> &'static str {
        "the inference simulator"
    }

    fn find(&self, root: Option<&Path>) -> Result<PathBuf> {
        find_binary(root)
    }

    fn remedy(&self) -> &'static str {
        "cargo build --release -p plimsoll-inference"
    }

    fn start(&self, program: &Path, how: &Start<'_>) -> Result<Box<dyn Companion>> {
        let mut settings = vec![
            ("MODEL_SEED".to_owned(), how.seed.to_string()),
            ("MODEL_DELAY_MS".to_owned(), MODEL_DELAY_MS.to_string()),
        ];
        let bind = how
            .bind
            .map(|address| ("BIND".to_owned(), address.to_string()));
        settings.extend(bind);
        let cpus = how.cpus.cloned();
        let simulator = Simulator::start(program, &settings, cpus, how.log_folder, how.stop)?;
        Ok(Box::new(simulator))
    }

    fn told(&self, url: &str) -> Vec<(String, String)> {
        vec![("INFERENCE_URL".to_owned(), url.to_owned())]
    }

    fn cpu_us_per_session_second(&self) -> f64 {
        CPU_US_PER_BATCH
    }
}

impl Companion for Simulator {
    fn pid(&self) -> i32 {
        self.pid()
    }

    fn url(&self) -> &str {
        self.url()
    }

    fn begin_window(&self) -> Result<()> {
        self.reset_stats()
    }

    fn seen(&self) -> Result<CompanionSeen> {
        Ok(seen(&self.stats()?))
    }

    fn stop(self: Box<Self>) -> Result<()> {
        Simulator::stop(*self).map(drop)
    }
}

fn seen(stats: &Stats) -> CompanionSeen {
    CompanionSeen {
        window: Inference {
            requests: stats.requests,
            busy_share: stats.busy_share(),
            cpu_us_per_request: None,
            queue_wait: lag_quantiles(stats.queue_wait),
            answer_lateness: lag_quantiles(stats.answer_lateness),
            request_bytes: Some(stats.request_bytes),
            resources: None,
        },
        request_bytes_in_all: stats.request_bytes_in_all,
    }
}

/// The simulator reports no 99.9th percentile.
#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of a trial are far below 2^53"
)]
fn lag_quantiles(quantiles: Quantiles) -> LagQuantiles {
    LagQuantiles {
        p50_us: Some(quantiles.p50_us as f64),
        p99_us: Some(quantiles.p99_us as f64),
        p999_us: None,
        max_us: Some(quantiles.max_us as f64),
    }
}
