//! Starts fake gateways and simulators as threads of this process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::subject::{Bench, Ended, Environment, Server};

use super::Defect;
use super::gateway::{self, Settings};
use super::hold::Hold;
use crate::check::{Simulator, Simulators};
use crate::reference::{self, Answer};
use crate::simulator::{SeenRequest, Stats};

/// A bench whose gateways have one defect.
pub(super) struct FakeBench {
    defect: Defect,
    starts: bool,
    hold: Option<Arc<Hold>>,
    simulators: Mutex<HashMap<String, Arc<Model>>>,
    next: AtomicU64,
}

impl FakeBench {
    pub(super) fn new(defect: Defect) -> Self {
        Self {
            defect,
            starts: true,
            hold: None,
            simulators: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    /// One whose gateways stand still while a process does.
    pub(super) fn held(defect: Defect, hold: Hold) -> Self {
        Self {
            hold: Some(Arc::new(hold)),
            ..Self::new(defect)
        }
    }

    pub(super) fn that_does_not_start() -> Self {
        Self {
            starts: false,
            ..Self::new(Defect::None)
        }
    }
}

impl Simulators for Arc<FakeBench> {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Simulator>, String> {
        let url = format!("fake://{}", self.next.fetch_add(1, Ordering::Relaxed));
        let delay_ms = environment
            .get("MODEL_DELAY_MS")
            .map_or(Ok(1), |value| value.parse());
        let model = Arc::new(Model {
            delay: Duration::from_millis(delay_ms.map_err(|error| format!("{error}"))?),
            state: Mutex::default(),
            started: Instant::now(),
        });
        self.simulators
            .lock()
            .expect("sound")
            .insert(url.clone(), Arc::clone(&model));
        Ok(Box::new(FakeSimulator { url, model }))
    }
}

impl Bench for FakeBench {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Server>, String> {
        if !self.starts {
            return Err("no such program".to_owned());
        }
        let settings = Settings::parse(environment)?;
        let simulators = self.simulators.lock().expect("sound");
        let model = simulators
            .get(&settings.inference_url)
            .ok_or("no such simulator")?;
        gateway::start(settings, Arc::clone(model), self.defect, self.hold.clone())
    }

    fn start_refused(&self, environment: &Environment, _limit: Duration) -> Result<Ended, String> {
        match Settings::parse(environment) {
            Err(line) if self.defect != Defect::TakesBadValues => Ok(Ended {
                exit_code: Some(2),
                output: format!("{line}\n"),
            }),
            _ => Err("it still runs".to_owned()),
        }
    }
}

/// The simulator's inside: answers after a fixed delay, with faults.
pub(super) struct Model {
    delay: Duration,
    state: Mutex<State>,
    started: Instant,
}

#[derive(Default)]
struct State {
    fault: Option<String>,
    stats: Stats,
    seen: Vec<SeenRequest>,
}

/// How a request ended.
pub(super) enum Outcome {
    Answer(Answer),
    Status(u16),
    Unreadable,
    Never,
}

impl Model {
    pub(super) fn infer(
        &self,
        pcm: &[u8],
        passes: u32,
        http_version: &str,
        content_type: &str,
    ) -> Outcome {
        let answer = reference::compute(pcm, passes).expect("whole samples");
        let fault = {
            let mut state = self.state.lock().expect("sound");
            state.stats.requests += 1;
            state.stats.inflight += 1;
            state.stats.inflight_max = state.stats.inflight_max.max(state.stats.inflight);
            let inflight = state.stats.inflight;
            state.seen.push(SeenRequest {
                at_us: u64::try_from(self.started.elapsed().as_micros()).expect("short"),
                http_version: http_version.to_owned(),
                content_type: Some(content_type.to_owned()),
                cpu_passes: Some(passes),
                audio_bytes: pcm.len() as u64,
                checksum: Some(answer.checksum),
                inflight,
            });
            state.fault.clone()
        };
        thread::sleep(self.delay);
        self.state.lock().expect("sound").stats.inflight -= 1;
        match fault.as_deref() {
            None => Outcome::Answer(answer),
            Some("http_503") => Outcome::Status(503),
            Some("http_404") => Outcome::Status(404),
            Some("never") => Outcome::Never,
            Some(_) => Outcome::Unreadable,
        }
    }
}

struct FakeSimulator {
    url: String,
    model: Arc<Model>,
}

impl Simulator for FakeSimulator {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn set_faults(&self, faults: &serde_json::Value) -> Result<(), String> {
        let fault = faults
            .as_object()
            .and_then(|faults| faults.keys().next().cloned());
        self.model.state.lock().expect("sound").fault = fault;
        Ok(())
    }

    fn stats(&self) -> Result<Stats, String> {
        Ok(self.model.state.lock().expect("sound").stats.clone())
    }

    fn reset_stats(&self) -> Result<(), String> {
        let mut state = self.model.state.lock().expect("sound");
        state.stats.requests = 0;
        state.stats.inflight_max = state.stats.inflight;
        Ok(())
    }

    fn requests(&self) -> Result<Vec<SeenRequest>, String> {
        Ok(self.model.state.lock().expect("sound").seen.clone())
    }
}
