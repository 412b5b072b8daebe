//! The plan of workload `voice`.

use std::sync::Arc;

use plimsoll_conformance::Check;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::sanity::MetricNames;
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::{Metric, OwnMetric, Slo};
use plimsoll_document::Tell;
use plimsoll_protocol::connection::check;
use plimsoll_workload::counters::Counted;
use plimsoll_workload::{
    About, Checked, Companions, Counters, Crash, Demand, Drive, Findings, Job, Outcome, Parameter,
    Plan, Refusal, Seen, Series, Told, Values, Work, Workload, machines_with_findings,
};

use crate::calibrate::WORKS;
use crate::check::VoiceSuite;
use crate::companion::Mocks;
use crate::load::{Crowd, Test, VoiceLoad};
use crate::machines::Callers;
use crate::mixed::Mixed;
use crate::outcome::outcome;
use crate::parameters::PARAMETERS;
use crate::requests::REQUESTS;
use crate::rest::Kind;
use crate::rest::pool::Pool;
use crate::tally::{METRICS, Tally};

/// The gates that say how much a gateway adds.
const OVERHEAD: [(&str, f64); 3] = [
    ("result_overhead_p95_ms", 100.0),
    ("result_overhead_p99_ms", 250.0),
    ("first_audio_overhead_p95_ms", 100.0),
];
/// What else a caller notices.
const NOTICED: [(&str, f64); 3] = [
    ("ready_p95_ms", 500.0),
    ("barge_in_p95_ms", 200.0),
    ("turns_with_gap", 0.01),
];
/// Blocks of callers' audio, as the mocks count them.
const AUDIO: [(&str, f64); 4] = [
    ("blocks_lost", 0.0),
    ("blocks_doubled", 0.0),
    ("blocks_out_of_order", 0.0),
    ("blocks_damaged", 0.0),
];
/// What is known of a gateway whose providers do not mark what they hand over.
const END_TO_END: [(&str, f64); 2] = [("result_p95_ms", 300.0), ("first_audio_p95_ms", 500.0)];
/// `GET /`, which asks no provider.
const ROOT: [(&str, f64); 2] = [("root_p95_ms", 50.0), ("root_p99_ms", 100.0)];
/// What a REST client notices beside callers. Of voices the gateway has a list.
const VISITED: [(&str, f64); 5] = [
    ("speak_overhead_p95_ms", 100.0),
    ROOT[0],
    ("replies_with_gap", 0.01),
    ("voices_p95_ms", 50.0),
    ("requests_failed", FAILED_MAX),
];
/// The time until turns are good again.
const RECOVERY: (&str, f64) = ("recovery_s", 5.0);

/// The same after a restart: callers return over 5 s, and one that has just returned may be within an utterance of its
/// script, which lasts up to 3.5 s and is not said.
const RECOVERY_OF_RESTART: (&str, f64) = ("recovery_s", 10.0);

/// The most turns that may fail.
const FAILED_MAX: f64 = 0.001;

/// Counts of which there must be none.
const NEVER: [Metric; 5] = [
    Metric::FramesDuplicated,
    Metric::FramesOutOfOrder,
    Metric::ContentWrong,
    Metric::SessionsFailed,
    Metric::SessionsDied,
];

/// The workload.
#[derive(Debug)]
pub struct Voice;

impl Workload for Voice {
    fn about(&self) -> &'static About {
        &About {
            name: "voice",
            line: "Callers in conversation with a gateway between speech providers, see --test",
            floor: None,
            contract: Some(1),
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

    /// A target that is started is one of ours. What is known by its URL only may be foreign.
    fn suite(&self, _values: &Values, target: Option<&Checked<'_>>) -> Option<Box<dyn Check>> {
        let suite = target.map_or_else(VoiceSuite::of_any, |_| VoiceSuite::of_ours());
        Some(Box::new(suite))
    }

    fn teller(&self) -> Option<&'static dyn Tell> {
        Some(&Voice)
    }

    fn works(&self) -> &'static [&'static dyn Work] {
        &WORKS
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        let load = VoiceLoad::of(&values)?;
        Ok(Arc::new(VoicePlan { values, load }))
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

/// A test with its values.
#[derive(Debug)]
struct VoicePlan {
    values: Values,
    load: VoiceLoad,
}

impl VoicePlan {
    /// The SLO while something fails: what did not fail holds, and all is well soon after.
    fn slo_with_fault(fault: &str) -> Slo {
        let result = OVERHEAD[..2].iter();
        let (own, never): (Vec<_>, &[Metric]) = match fault {
            "tts-refuse" | "tts-hang" => {
                (result.chain([&RECOVERY]).chain(&AUDIO).collect(), &NEVER)
            }
            "tts-slow" | "stt-slow" => (
                OVERHEAD.iter().chain([&RECOVERY]).chain(&AUDIO).collect(),
                &NEVER,
            ),
            // Audio that the gateway could not keep is missing from a result.
            "stt-refuse" | "stt-hang" => (vec![&RECOVERY], &NEVER[3..]),
            "restart" => (vec![&RECOVERY_OF_RESTART], &NEVER),
            _ => (OVERHEAD.iter().collect(), &NEVER[3..]),
        };
        gates(&format!("voice-{fault}"), own, never, None)
    }
}

fn gates<'a>(
    name: &str,
    own: impl IntoIterator<Item = &'a (&'a str, f64)>,
    never: &[Metric],
    failed_max: Option<f64>,
) -> Slo {
    let own = own.into_iter();
    let own = own.filter_map(|(name, most)| Some((OwnMetric::among(&METRICS, name)?, *most)));
    let failed = failed_max.map(|most| (Metric::Shortfall, most));
    let never = never.iter().map(|metric| (*metric, 0.0));
    let all: Vec<(Metric, f64)> = own.chain(failed).chain(never).collect();
    Slo::of(name, &all)
}

/// What the session machines found out.
fn found(tally: Option<&Tally>) -> Findings {
    serde_json::to_value(tally).unwrap_or_default()
}

impl Plan for VoicePlan {
    fn workload(&self) -> &'static dyn Workload {
        &Voice
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::of(match self.load.test.crowd() {
            Crowd::Calls => "calls_per_second",
            Crowd::CallsAndVisits => "arrivals_per_second",
            Crowd::Requests => "requests_per_second",
            Crowd::Stays | Crowd::Swells => "callers",
        })
    }

    fn slo(&self) -> Slo {
        match self.load.test {
            Test::Talk | Test::Breaking | Test::Stages | Test::Calls
                if self.load.real_providers =>
            {
                let own = END_TO_END.iter().chain(&NOTICED[..2]);
                gates("voice-end-to-end", own, &NEVER[3..], Some(FAILED_MAX))
            }
            Test::Talk | Test::Breaking | Test::Stages | Test::Calls | Test::Slow => {
                let own = OVERHEAD.iter().chain(&NOTICED).chain(&AUDIO);
                gates("voice", own, &NEVER, Some(FAILED_MAX))
            }
            Test::Mixed => {
                let own = OVERHEAD
                    .iter()
                    .chain(&NOTICED)
                    .chain(&AUDIO)
                    .chain(&VISITED);
                gates("voice-mixed", own, &NEVER, Some(FAILED_MAX))
            }
            Test::Speak => {
                let own = OVERHEAD[2..].iter().chain(&VISITED[2..3]);
                gates("voice-speak", own, &NEVER[..3], Some(FAILED_MAX))
            }
            Test::Rest => gates("voice-rest", &ROOT, &NEVER[2..3], Some(FAILED_MAX)),
            Test::Spike => gates("voice-spike", [&RECOVERY], &NEVER[3..], None),
            Test::Faults => {
                Self::slo_with_fault(self.load.fault.as_deref().unwrap_or("tts-refuse"))
            }
        }
    }

    fn demand(&self, load: u32, profile: &Profile) -> Demand {
        Demand {
            sessions: self.load.sessions(load, profile),
            concurrent: self.load.concurrent(load),
            answers_per_second: self.load.answers_per_second(load),
        }
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

    fn tells_companion(&self, profile: &Profile) -> Findings {
        serde_json::json!({
            "profile": self.values.word("provider_latency").unwrap_or("usual"),
            "faults": self.load.faults(profile),
        })
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        match check(&to) {
            Ok(()) => Ok(to),
            Err(error) => Err(Refusal::new(error.to_string())),
        }
    }

    fn machines(&self, job: &Job, profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        self.load.must_fit(profile)?;
        self.load.must_suffice(job.load)?;
        let mut load = self.load.clone();
        load.seed = job.seed;
        let (to, load, amount) = (&job.to, &load, job.load);
        let pool = |kind| Pool::new(to, (load, kind), amount, profile);
        Ok(match load.test.crowd() {
            Crowd::Requests if load.test == Test::Rest => {
                machines_with_findings(pool(Kind::Root), |all| found(all.tally()))
            }
            Crowd::Requests => machines_with_findings(pool(Kind::Speak), |all| found(all.tally())),
            Crowd::CallsAndVisits => {
                let mixed = Mixed::new(to, load, amount, profile);
                machines_with_findings(mixed, |all| found(all.tally()))
            }
            Crowd::Stays | Crowd::Swells | Crowd::Calls => {
                let callers = Callers::new(to.clone(), load, amount, profile);
                machines_with_findings(callers, |all| found(all.tally()))
            }
        })
    }

    fn counters(&self) -> Option<Counters> {
        let names = MetricNames {
            frames: "voice_results_total",
            partials: "voice_speaks_total",
            sessions: "voice_sessions_total",
        };
        let arrive = self.load.test.arrives();
        // A connection of a REST client is no session, and the counters of a gateway that was killed begin anew.
        let has_callers = !self.load.test.is_of_requests() && self.load.crash().is_none();
        has_callers.then_some(Counters {
            names,
            counted: Counted::Sessions { arrive },
        })
    }

    fn counters_by_label(&self) -> &'static [&'static str] {
        &[REQUESTS]
    }

    fn first_load(&self) -> u32 {
        match self.load.test.crowd() {
            Crowd::Calls => 5,
            Crowd::Requests if self.load.test == Test::Rest => 1_000,
            Crowd::CallsAndVisits | Crowd::Requests => 20,
            Crowd::Stays | Crowd::Swells => 100,
        }
    }

    fn goes_beyond(&self) -> bool {
        self.load.test == Test::Breaking
    }

    fn crash(&self) -> Option<Crash> {
        self.load.crash()
    }

    fn is_bound_by_the_machine(&self) -> bool {
        true
    }

    fn series(&self) -> Result<Option<Series>, Refusal> {
        let Some(stages) = &self.load.stages else {
            return Ok(None);
        };
        Ok(Some(Series {
            rows: stages.rows(&self.values)?,
            asked_by: "--test stages".to_owned(),
            one_at_a_time: "one load at a time: --test talk",
            pause: stages.cool_down,
        }))
    }

    fn outcome(&self, seen: &Seen<'_>) -> Outcome {
        outcome(&self.load, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::slo::Percentile;
    use plimsoll_workload::Value;

    fn planned(values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Voice.plan(values.or_usual(&PARAMETERS))
    }

    fn plan(test: &str) -> Arc<dyn Plan> {
        let values = Values::default().with("test", Value::Word(test.to_owned()));
        planned(values).expect("a plan")
    }

    #[test]
    fn every_gate_that_is_named_is_in_the_slo() {
        let slo = plan("talk").slo();
        let named = |name: &str| slo.gates.iter().any(|gate| gate.metric.name() == name);
        for (name, _) in OVERHEAD.iter().chain(&NOTICED).chain(&AUDIO) {
            assert!(named(name), "{name}");
        }
        assert_eq!(slo.samples_needed(), Percentile::P99.samples_needed());
        assert_eq!(slo.tightest_ms(), Some(100.0));
        for (test, name) in [
            ("mixed", "requests_failed"),
            ("mixed", "result_overhead_p99_ms"),
            ("speak", "first_audio_overhead_p95_ms"),
            ("speak", "replies_with_gap"),
            ("rest", "root_p99_ms"),
        ] {
            let gates = plan(test).slo().gates;
            let mut names = gates.iter().map(|gate| gate.metric.name());
            assert!(names.any(|gate| gate == name), "{test}: {name}");
        }
        let all = OVERHEAD.iter().chain(&NOTICED).chain(&AUDIO).chain(&ROOT);
        for (name, _) in all.chain(&VISITED).chain(&END_TO_END) {
            assert!(OwnMetric::among(&METRICS, name).is_some(), "{name}");
        }
        assert!(
            plan("spike")
                .slo()
                .gates
                .iter()
                .any(|gate| gate.metric.name() == "recovery_s")
        );
    }

    #[test]
    fn a_pool_has_room_for_what_is_busy_at_once_and_an_end() {
        let connections = |test, load| {
            let demand = plan(test).demand(load, &Profile::quick());
            assert_eq!(demand.concurrent, u64::from(demand.sessions));
            assert_eq!(demand.answers_per_second, f64::from(load));
            demand.sessions
        };
        let rest = [1, 1_000, 50_000].map(|load| connections("rest", load));
        assert_eq!(rest, [32, 100, 1_000]);
        let speak = [1, 100, 1_000].map(|load| connections("speak", load));
        assert_eq!(speak, [32, 500, 5_000]);
    }

    #[test]
    fn a_mixed_load_needs_callers_and_visitors() {
        let demand = plan("mixed").demand(10, &Profile::quick());
        // 13 s of arrivals. 3 calls a second stay for 30 s, 7 visitors for 2 s at most.
        assert_eq!((demand.sessions, demand.concurrent), (130, 104));
        // 1.4 texts a second, of which a p95 needs 200, as 7 turns, of which a p99 needs 1,000.
        assert!((demand.answers_per_second - 7.0).abs() < 1e-9);
    }

    #[test]
    fn only_one_test_goes_beyond_the_load_line_that_talk_has() {
        let (talk, breaking) = (plan("talk"), plan("breaking"));
        assert!(breaking.goes_beyond());
        for test in ["talk", "calls", "spike", "faults"] {
            assert!(!plan(test).goes_beyond(), "{test}");
        }
        assert_eq!(breaking.slo(), talk.slo());
        assert_eq!(breaking.unit(), talk.unit());
        assert_eq!(breaking.first_load(), talk.first_load());
        let profile = Profile::quick();
        assert_eq!(breaking.demand(100, &profile), talk.demand(100, &profile));
    }

    #[test]
    fn each_fault_has_an_slo_of_its_own_name() {
        for fault in ["tts-refuse", "stt-hang", "tts-slow", "stress", "restart"] {
            let slo = VoicePlan::slo_with_fault(fault);
            assert_eq!(slo.name, format!("voice-{fault}"));
            assert!(slo.gates.len() >= 3, "{fault}");
        }
    }

    #[test]
    fn a_message_has_whole_blocks() {
        let values = Values::default().with("chunk_ms", Value::Whole(30));
        let refused = planned(values).expect_err("30 ms");
        assert!(
            refused
                .0
                .starts_with("--chunk-ms 30: give a multiple of 20")
        );
    }
}
