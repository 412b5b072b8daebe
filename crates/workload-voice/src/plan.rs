//! The plan of workload `voice`.

use std::sync::Arc;

use plimsoll_core::profile::Profile;
use plimsoll_core::record::{LoadUnit, Sections};
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::{Metric, OwnMetric, Slo};
use plimsoll_protocol::connection::check;
use plimsoll_workload::{
    About, Choice, Companions, Demand, Drive, Job, Kind, Outcome, Parameter, Plan, Refusal, Seen,
    Told, Usual, Values, Workload, machines_with_findings,
};

use crate::companion::Mocks;
use crate::machines::Callers;
use crate::marks::BLOCK_MS;
use crate::script::Script;
use crate::tally::{METRICS, Tally, metric};
use crate::wire::Providers;

const STT: [Choice; 1] = [Choice::new("deepgram", "Like Deepgram's, over a WebSocket")];
const TTS: [Choice; 3] = [
    Choice::new("deepgram", "Like Deepgram's"),
    Choice::new("elevenlabs", "Like ElevenLabs'"),
    Choice::new("openai", "Like OpenAI's"),
];

const PARAMETERS: [Parameter; 3] = [
    Parameter {
        usual: Usual::Value("100"),
        ..Parameter::new(
            "chunk_ms",
            Kind::Whole {
                least: BLOCK_MS,
                most: 1_000,
            },
            "Milliseconds of audio that one message carries, a multiple of 20",
        )
    },
    Parameter {
        usual: Usual::Value("deepgram"),
        ..Parameter::new("stt_provider", Kind::OneOf(&STT), "Who recognises speech")
    },
    Parameter {
        usual: Usual::Value("deepgram"),
        ..Parameter::new("tts_provider", Kind::OneOf(&TTS), "Who speaks")
    },
];

/// The gates, of which those that only this workload has are named.
const OWN_GATES: [(&str, f64); 6] = [
    ("result_overhead_p95_ms", 100.0),
    ("result_overhead_p99_ms", 250.0),
    ("first_audio_overhead_p95_ms", 100.0),
    ("ready_p95_ms", 500.0),
    ("barge_in_p95_ms", 200.0),
    ("turns_with_gap", 0.01),
];

/// The most turns that may fail.
const FAILED_MAX: f64 = 0.001;

/// The workload.
#[derive(Debug)]
pub struct Voice;

impl Workload for Voice {
    fn about(&self) -> &'static About {
        &About {
            name: "voice",
            line: "Callers in conversation with a gateway between speech providers",
            floor: None,
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn variables(&self) -> &'static [&'static str] {
        &VARIABLES
    }

    fn companions(&self) -> Option<&'static dyn Companions> {
        Some(&Mocks)
    }

    fn metrics(&self) -> &'static [OwnMetric] {
        &METRICS
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        let chunk_ms = values.whole("chunk_ms").unwrap_or(BLOCK_MS);
        if !chunk_ms.is_multiple_of(BLOCK_MS) {
            return Err(Refusal::new(format!(
                "--chunk-ms {chunk_ms}: give a multiple of {BLOCK_MS}, because a block of audio is {BLOCK_MS} ms"
            )));
        }
        Ok(Arc::new(VoicePlan(values)))
    }
}

/// The variables of the gateways' contract.
const VARIABLES: [&str; 14] = [
    "PROVIDER_URLS",
    "PROVIDER_KEY",
    "MAX_SESSIONS",
    "MAX_SESSIONS_PER_ADDRESS",
    "RATE_LIMIT_RPS",
    "AUTH_TOKEN",
    "DRAIN_TIMEOUT_MS",
    "READY_MS",
    "IDLE_MS",
    "TTS_FIRST_MS",
    "TTS_GAP_MS",
    "STT_PONG_MS",
    "AUDIO_BUFFER_MS",
    "OUT_BUFFER_BYTES",
];

/// Callers in conversation.
#[derive(Debug)]
struct VoicePlan(Values);

impl VoicePlan {
    fn chunk_blocks(&self) -> u32 {
        let blocks = self.0.whole("chunk_ms").unwrap_or(BLOCK_MS) / BLOCK_MS;
        u32::try_from(blocks).unwrap_or(1)
    }

    fn providers(&self) -> Providers {
        let word = |name| self.0.word(name).unwrap_or("deepgram").to_owned();
        Providers {
            stt: word("stt_provider"),
            tts: word("tts_provider"),
        }
    }
}

impl Plan for VoicePlan {
    fn workload(&self) -> &'static dyn Workload {
        &Voice
    }

    fn values(&self) -> &Values {
        &self.0
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn slo(&self) -> Slo {
        let own = OWN_GATES
            .iter()
            .filter_map(|(name, most)| Some((Metric::Own(metric(name)?), *most)));
        let never = [
            Metric::FramesDuplicated,
            Metric::FramesOutOfOrder,
            Metric::SessionsFailed,
            Metric::SessionsDied,
            Metric::ContentWrong,
        ];
        let never = never.map(|metric| (metric, 0.0));
        let gates: Vec<(Metric, f64)> = own
            .chain([(Metric::Shortfall, FAILED_MAX)])
            .chain(never)
            .collect();
        Slo::of("voice", &gates)
    }

    /// A caller has a turn every eight seconds.
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a turn")]
    fn demand(&self, load: u32, _profile: &Profile) -> Demand {
        Demand::of_sessions(load, 1e9 / Script::TURN_NS as f64)
    }

    fn told(&self) -> Told {
        Told {
            path: "/ws".into(),
            health_path: "/",
            port: None,
            variables: Vec::new(),
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
        let callers = Callers::new(job.to.clone(), self.chunk_blocks(), self.providers());
        Ok(machines_with_findings(callers, |callers| {
            let tally = callers.tally();
            serde_json::to_value(tally).unwrap_or_default()
        }))
    }

    fn first_load(&self) -> u32 {
        100
    }

    fn outcome(&self, seen: &Seen<'_>) -> Outcome {
        // Null where the trial ended before it was settled.
        let tally = Tally::of_findings(seen.findings);
        Outcome {
            sections: tally.map_or_else(Sections::default, |tally| Sections::of("voice", &tally)),
            ..Outcome::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::slo::Percentile;
    use plimsoll_workload::Value;

    fn usual() -> Values {
        Values::default().or_usual(&PARAMETERS)
    }

    #[test]
    fn its_slo_has_every_gate_that_it_names() {
        let slo = Voice.plan(usual()).expect("a plan").slo();
        let named = |name: &str| slo.gates.iter().any(|gate| gate.metric.name() == name);
        for (name, _) in OWN_GATES {
            assert!(named(name), "{name}");
        }
        assert_eq!(slo.samples_needed(), Percentile::P99.samples_needed());
        assert_eq!(slo.tightest_ms(), Some(100.0));
    }

    #[test]
    fn a_message_has_whole_blocks() {
        let values = usual().with("chunk_ms", Value::Whole(30));
        let refused = Voice.plan(values).expect_err("30 ms");
        assert!(
            refused
                .0
                .starts_with("--chunk-ms 30: give a multiple of 20")
        );
    }
}
