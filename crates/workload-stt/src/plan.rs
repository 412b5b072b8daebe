//! The plan of workload `stt`.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use plimsoll_conformance::Check;
use plimsoll_core::profile::{NS_PER_S, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::sanity::MetricNames;
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_document::Tell;
use plimsoll_protocol::connection::check;
use plimsoll_workload::counters::Counted;
use plimsoll_workload::{
    About, BackEndLoad, Checked, Companions, Counters, Demand, Drive, Job, Key, Kind, Parameter,
    Plan, Refusal, Takes, Told, Values, Work, Workload, machines,
};

use crate::InferenceTransport;
use crate::audio::Audio;
use crate::batches::Batches;
use crate::calibrate::Speech;
use crate::check::{SimulatorProgram, SpeechSuite};
use crate::companion::InferenceSimulator;
use crate::session::{FRAME_PERIOD_NS, Sessions};
use crate::simulator::CONTRACT_VARIABLES;

/// The number of passes over a batch that targets are told to ask for.
pub const CPU_PASSES: u32 = 4;
/// The delay of the simulator's model, in ms.
pub const MODEL_DELAY_MS: u64 = 75;

pub(crate) const PARAMETERS: [Parameter; 1] = [Parameter {
    value_name: "FILE.wav",
    ..Parameter::new(
        "audio",
        Kind::File,
        "WAV file that sessions send: 16 kHz, mono, 16 bit [default: synthetic frames]",
    )
}];

/// What section 10 of the contract allows the p95 of the newest frame, from its schedule to its `partial`.
pub(crate) const NEWEST_P95_MS: f64 = 350.0;

/// The gates of section 10 of the contract.
const GATES: [(Metric, f64); 5] = [
    (Metric::Newest(Percentile::P50), 200.0),
    (Metric::Newest(Percentile::P95), NEWEST_P95_MS),
    (Metric::Oldest(Percentile::P50), 1200.0),
    (Metric::Oldest(Percentile::P95), 1650.0),
    (Metric::ErrorRate, 1e-5),
];

/// Whether a target gets its answers from the inference server, as the contract requires.
pub(crate) const ASKS_INFERENCE: &str = "asks_inference";

const KEYS: [Key; 2] = [
    Key {
        name: "inference_transport",
        takes: Takes::OneOf(&["h2c", "http1"]),
        required: true,
    },
    Key {
        name: ASKS_INFERENCE,
        takes: Takes::TrueUnlessTest {
            without: "its inference server",
        },
        required: false,
    },
];

/// The workload.
#[derive(Debug)]
pub struct Stt;

impl Workload for Stt {
    fn about(&self) -> &'static About {
        &About {
            name: "stt",
            line: "Streaming speech-to-text",
            floor: None,
            contract: Some(2),
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn manifest_keys(&self) -> &'static [Key] {
        &KEYS
    }

    fn variables(&self) -> &'static [&'static str] {
        &CONTRACT_VARIABLES
    }

    fn companions(&self) -> Option<&'static dyn Companions> {
        Some(&InferenceSimulator)
    }

    fn teller(&self) -> Option<&'static dyn Tell> {
        Some(&Stt)
    }

    fn suite(&self, _values: &Values, target: Option<&Checked<'_>>) -> Option<Box<dyn Check>> {
        let Some((target, program)) = target.and_then(|of| Some((of, of.companion?))) else {
            return Some(Box::new(SpeechSuite::on_url()));
        };
        let transport = target.manifest.property("inference_transport");
        let transport = transport.and_then(InferenceTransport::by_name);
        let cpus = Some(target.cpus.clone());
        let program = SimulatorProgram::new(program, target.logs, cpus, target.stop);
        Some(Box::new(SpeechSuite::new(transport, program)))
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        let audio = match values.file("audio") {
            Some(file) => OnceLock::from(Arc::new(audio_of(file)?)),
            None => OnceLock::new(),
        };
        Ok(Arc::new(SttPlan { values, audio }))
    }

    fn works(&self) -> &'static [&'static dyn Work] {
        &[&Speech]
    }

    fn back_end_load(&self) -> Option<&'static dyn BackEndLoad> {
        Some(&Batches)
    }
}

fn audio_of(file: &Path) -> Result<Audio, Refusal> {
    let refused = |why: String| Refusal(format!("--audio {}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| refused(error.to_string()))?;
    Audio::from_wav(&bytes).map_err(|error| refused(error.to_string()))
}

/// What the sessions say.
#[derive(Debug)]
struct SttPlan {
    values: Values,
    /// The synthetic frames are made when they are first needed.
    audio: OnceLock<Arc<Audio>>,
}

impl Plan for SttPlan {
    fn workload(&self) -> &'static dyn Workload {
        &Stt
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn slo(&self) -> Slo {
        Slo::from_gates("stt", &GATES)
    }

    /// A session gets an answer each second: a gateway flushes that often.
    fn demand(&self, load: u32, _profile: &Profile) -> Demand {
        Demand::of_sessions(load, 1.0)
    }

    fn told(&self) -> Told {
        Told {
            path: "/ws/stt".into(),
            health_path: "/health",
            port: None,
            variables: [("CPU_PASSES".to_owned(), CPU_PASSES.to_string())].into(),
            data: None,
        }
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        match check(&to) {
            Ok(()) => Ok(to),
            Err(error) => Err(Refusal::new(error.to_string())),
        }
    }

    fn machines(&self, job: &Job, _profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        let audio = self.audio.get_or_init(|| Arc::new(Audio::synthetic()));
        // A target that we did not start may be configured differently.
        let passes = job.started.then_some(CPU_PASSES);
        let sessions = Sessions::new(job.to.clone(), Arc::clone(audio), passes);
        Ok(machines(sessions))
    }

    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a period")]
    fn frames_per_session_second(&self) -> Option<f64> {
        Some(NS_PER_S as f64 / FRAME_PERIOD_NS as f64)
    }

    fn work(&self) -> Option<Box<dyn Work>> {
        Some(Box::new(Speech))
    }

    fn counters(&self) -> Option<Counters> {
        Some(Counters {
            names: MetricNames {
                frames: "stt_frames_total",
                partials: "stt_partials_total",
                sessions: "stt_sessions_total",
            },
            counted: Counted::Answers,
        })
    }
}
