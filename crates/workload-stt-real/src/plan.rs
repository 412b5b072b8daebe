//! The plan of workload `stt-real`.

use std::sync::Arc;

use plimsoll_conformance::Check;
use plimsoll_core::profile::{NS_PER_MS, Phases, Profile, seconds_to_ns};
use plimsoll_core::record::{LoadUnit, Trial};
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::{Metric, OwnMetric, Slo};
use plimsoll_document::Tell;
use plimsoll_protocol::connection::check;
use plimsoll_speech::clip::{Clip, RATE_HZ};
use plimsoll_speech::errors::WordErrors;
use plimsoll_speech::plan::FrameLength;
use plimsoll_workload::{
    About, Baseline, Checked, Conversation, Demand, Drive, Job, Key, Outcome, Parameter, Plan,
    Refusal, Seen, Speaker, Takes, Told, Values, Work, Workload, machines_with_findings,
};

use crate::calibrate::{Stream, WORKS};
use crate::check::DialectSuite;
use crate::choices::{self, Spoken};
use crate::corpus::Speech;
use crate::dialect::{Cursor, Facts, NAMES, Options, Transport};
use crate::host::{PUBLIC_AUDIO_MAX_NS, PUBLIC_SESSIONS_MAX, is_public};
use crate::machines::{Shared, Streams};
use crate::outcome::{self, SttRealRecord};
use crate::parameters::PARAMETERS;
use crate::script::Scripts;
use crate::speaker::{Opening, must_let_in};
use crate::tally::{METRICS, Tally};

/// Somebody reads along.
const CAPTIONS: [(&str, f64); 4] = [
    ("first_result_p50_ms", 1_500.0),
    ("final_p50_ms", 3_000.0),
    ("lag_p95_ms", 8_000.0),
    ("lag_growth_ms_per_s", 10.0),
];
/// A program answers.
const AGENT: [(&str, f64); 4] = [
    ("first_result_p50_ms", 500.0),
    ("final_p50_ms", 1_000.0),
    ("lag_p95_ms", 3_000.0),
    ("lag_growth_ms_per_s", 10.0),
];
/// Speech that is accounted for by audio times.
const COVERED: [(&str, f64); 2] = [("speech_uncovered_ms", 0.0), ("speech_duplicated_ms", 0.0)];
/// What must not happen.
const NEVER: [(&str, f64); 3] = [
    ("sessions_silent", 0.0),
    ("sessions_without_end", 0.0),
    ("crosstalk", 0.0),
];
/// By how many points the word error rate may be above that of the unloaded server, for certain.
const WER_EXCESS: (&str, f64) = ("wer_excess_points", 3.0);

/// Words that an unloaded server is given before a search.
const UNLOADED_WORDS: f64 = 300.0;
/// The pause between two utterances, on average: 0.4 to 1.6 s are drawn.
const PAUSE_S: f64 = 1.0;

/// The workload.
#[derive(Debug)]
pub struct SttReal;

impl Workload for SttReal {
    fn about(&self) -> &'static About {
        &About {
            name: "stt-real",
            line: "Speech servers that people run, each in its own dialect, with words; see --dialect",
            floor: None,
            contract: None,
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn manifest_keys(&self) -> &'static [Key] {
        &[Key {
            name: "dialect",
            takes: Takes::OneOf(&NAMES),
            required: true,
        }]
    }

    fn metrics(&self) -> &'static [OwnMetric] {
        &METRICS
    }

    fn teller(&self) -> Option<&'static dyn Tell> {
        Some(&Self)
    }

    /// Cases say a few of the clips.
    fn suite(&self, values: &Values, _target: Option<&Checked<'_>>) -> Option<Box<dyn Check>> {
        let spoken = Spoken::of(values);
        let options = Options {
            path: None,
            ..choices::options(values, "")
        };
        let clips = Speech::built_in().clips;
        let make = move |options: &Options| spoken.with(options);
        Some(Box::new(DialectSuite::new(make, options, clips)))
    }

    fn works(&self) -> &'static [&'static dyn Work] {
        &WORKS
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Ok(Arc::new(SttRealPlan::of(values)?))
    }
}

/// Streams with their values.
#[derive(Debug, Clone)]
pub(crate) struct SttRealPlan {
    values: Values,
    speech: Speech,
    frame: FrameLength,
    facts: Facts,
    transport: Transport,
    /// The errors of an unloaded server's utterances, if they are known.
    unloaded: Option<Arc<[WordErrors]>>,
}

impl SttRealPlan {
    fn of(values: Values) -> Result<Self, Refusal> {
        let speech = match values.file("corpus") {
            Some(folder) => Speech::in_folder(folder)
                .map_err(|error| Refusal(format!("--corpus {}: {error}", folder.display())))?,
            None => Speech::built_in(),
        };
        let dialect = choices::dialect(&values, "/")?;
        Ok(Self {
            speech,
            frame: choices::frame(&*dialect)?,
            facts: dialect.facts(),
            transport: dialect.connect().transport,
            unloaded: None,
            values,
        })
    }

    fn scripts(&self, load: u32, profile: &Profile) -> Scripts {
        let by_turn = self.facts.connection_per_turn;
        Scripts::new(&self.speech.clips, self.frame, (load, by_turn), profile)
    }

    /// Seconds from one utterance to the next, on average.
    #[expect(clippy::cast_precision_loss, reason = "samples of clips")]
    fn cycle_s(&self) -> f64 {
        let clips = &self.speech.clips;
        let samples: usize = clips.iter().map(|clip: &Clip| clip.speech.len()).sum();
        samples as f64 / f64::from(RATE_HZ) / clips.len() as f64 + PAUSE_S
    }

    /// Words of an utterance, on average.
    #[expect(clippy::cast_precision_loss, reason = "words of clips")]
    fn words_of_an_utterance(&self) -> f64 {
        let clips = &self.speech.clips;
        let words: usize = clips.iter().map(|clip| clip.words.len()).sum();
        words as f64 / clips.len() as f64
    }

    fn is_a_strangers(&self, to: &Endpoint) -> bool {
        let host = match to.host.rsplit_once(':') {
            // An IPv6 address without a port ends with a bracket.
            Some((host, port)) if !port.ends_with(']') => host,
            _ => &to.host,
        };
        !self.values.flag("mine") && is_public(host)
    }

    /// The gates that this dialect can decide.
    fn gates(&self) -> Vec<(&'static str, f64)> {
        let latencies = match self.values.word("use_case") {
            Some("agent") => AGENT,
            _ => CAPTIONS,
        };
        // Nothing is said before a turn's end: its first result is its final.
        let speaks_meanwhile = self.facts.cursor != Cursor::Turn;
        let latencies = latencies
            .into_iter()
            .filter(|(name, _)| speaks_meanwhile || *name == "final_p50_ms");
        let covered = COVERED.into_iter();
        let covered = covered.filter(|_| self.facts.cursor != Cursor::Inferred);
        let words = self.unloaded.iter().map(|_| WER_EXCESS);
        latencies.chain(covered).chain(NEVER).chain(words).collect()
    }

    pub(crate) fn record(&self, tally: Tally) -> SttRealRecord {
        SttRealRecord {
            dialect: match self.values.file("dialect") {
                Some(file) => file.display().to_string(),
                None => self.values.word("dialect").unwrap_or_default().to_owned(),
            },
            clips: self.speech.clips.len() as u64,
            clips_digest: self.speech.digest.clone(),
            frame_ms: self.frame.ms(),
            undecided: self.undecided(),
            unloaded_wer: self.unloaded_wer(),
            tally,
        }
    }

    /// What no gate can decide, and why.
    fn undecided(&self) -> Vec<String> {
        match self.facts.cursor {
            Cursor::Turn => vec![
                "first result and lag: a connection carries one turn, and nothing is said before its end".to_owned(),
            ],
            Cursor::Inferred => vec![
                "speech_uncovered_ms, speech_duplicated_ms: the server tells no audio times, so how far it has come follows from its words".to_owned(),
            ],
            Cursor::Times | Cursor::Answers => Vec::new(),
        }
    }

    pub(crate) fn unloaded_wer(&self) -> Option<f64> {
        let all = self.unloaded.as_ref()?;
        all.iter().copied().sum::<WordErrors>().rate()
    }
}

impl Plan for SttRealPlan {
    fn workload(&self) -> &'static dyn Workload {
        &SttReal
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn slo(&self) -> Slo {
        let name = self.values.word("use_case").unwrap_or("captions");
        let own = self.gates().into_iter();
        let own = own.filter_map(|(name, most)| Some((OwnMetric::among(&METRICS, name)?, most)));
        let never = [
            Metric::ErrorRate,
            Metric::SessionsFailed,
            Metric::SessionsDied,
        ];
        let never = never.map(|metric| (metric, 0.0));
        let all: Vec<(Metric, f64)> = own.chain(never).collect();
        Slo::of(name, &all)
    }

    fn usual_profile(&self) -> &'static str {
        "speech"
    }

    fn first_load(&self) -> u32 {
        1
    }

    /// Pocketsphinx with seven streams passed two short trials of three, and fell behind with five in a full one.
    fn shows_in_a_short_trial(&self) -> bool {
        false
    }

    fn baseline(&self) -> Option<Baseline> {
        let utterances = UNLOADED_WORDS / self.words_of_an_utterance();
        Some(Baseline {
            load: 1,
            phases: Phases {
                ramp_s: 1.0,
                warm_up_s: 5.0,
                measured_s: (utterances * self.cycle_s()).ceil().max(30.0),
            },
            what: "unloaded run",
        })
    }

    fn with_baseline(&self, trial: &Trial) -> Result<Arc<dyn Plan>, Refusal> {
        let record: Option<SttRealRecord> = trial.sections.get(outcome::SECTION);
        let record = record.filter(|record| !record.tally.word_errors.is_empty());
        let record = record.ok_or_else(|| {
            Refusal::new("the baseline has no word errors; make one with --sessions 1")
        })?;
        if record.clips_digest != self.speech.digest {
            return Err(Refusal::new(
                "the baseline was made with other clips; give the same --corpus",
            ));
        }
        Ok(Arc::new(Self {
            unloaded: Some(record.tally.errors().into()),
            ..self.clone()
        }))
    }

    fn meets(&self, to: &Endpoint, stream: &mut dyn Conversation) -> Result<(), Refusal> {
        let dialect = choices::dialect(&self.values, &to.path)?;
        must_let_in(&*dialect, to, stream)
    }

    fn may_load(&self, to: &Endpoint, load: u32, profile: &Profile) -> Result<(), Refusal> {
        let sessions = u64::from(load);
        let audio_ns = sessions.saturating_mul(seconds_to_ns(profile.lasts_s()));
        let is_little = sessions <= PUBLIC_SESSIONS_MAX && audio_ns <= PUBLIC_AUDIO_MAX_NS;
        if is_little || !self.is_a_strangers(to) {
            return Ok(());
        }
        Err(Refusal(format!(
            "{} may be somebody else's: without --mine it gets at most {PUBLIC_SESSIONS_MAX} sessions and {} minutes of audio; give --mine if you may load it",
            to.host,
            PUBLIC_AUDIO_MAX_NS / NS_PER_MS / 60_000
        )))
    }

    fn may_search(&self, to: &Endpoint) -> Result<(), Refusal> {
        if !self.is_a_strangers(to) {
            return Ok(());
        }
        Err(Refusal(format!(
            "{} may be somebody else's, and a search sends it hours of audio; give --mine if you may load it",
            to.host
        )))
    }

    fn must_be_like(&self, other: &dyn Plan) -> Result<(), Refusal> {
        let of = |plan: &dyn Plan| plan.values().file("corpus").map(std::path::Path::to_owned);
        match of(self) == of(other) {
            true => Ok(()),
            false => Err(Refusal::new("they say other clips; give the same --corpus")),
        }
    }

    fn demand(&self, load: u32, profile: &Profile) -> Demand {
        let at_once = match self.facts.connection_per_turn {
            // A turn may be long in coming while the next ones are said.
            true => 8,
            false => 1,
        };
        Demand {
            sessions: self.scripts(load, profile).sessions(),
            concurrent: u64::from(load) * at_once,
            answers_per_second: f64::from(load) / self.cycle_s(),
        }
    }

    fn told(&self) -> Told {
        Told {
            path: "/".into(),
            health_path: "/",
            port: None,
            variables: Vec::new(),
            data: None,
        }
    }

    fn speaker(&self) -> Option<Arc<dyn Speaker>> {
        Some(Arc::new(Opening {
            values: self.values.clone(),
        }))
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        let dialect = choices::dialect(&self.values, &to.path)?;
        let mut to = to;
        if self.transport == Transport::WebSocket {
            dialect.connect().target().expose().clone_into(&mut to.path);
        }
        let own = dialect.connect().headers.iter();
        for field in own {
            let is_given = to
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(&field.name));
            if !is_given {
                let value = field.value.expose().to_owned();
                to.headers.push((field.name.clone(), value));
            }
        }
        match check(&to) {
            Ok(()) => Ok(to),
            Err(error) => Err(Refusal::new(error.to_string())),
        }
    }

    fn machines(&self, job: &Job, profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        let dialect = choices::dialect(&self.values, &job.to.path)?;
        let frame = choices::frame(&*dialect)?;
        let shared = Shared::new(
            job.to.clone(),
            dialect,
            (&self.speech.clips, frame),
            job.load,
            profile,
        );
        let streams = Streams::new(shared, (profile, job.seed), self.unloaded.clone());
        Ok(machines_with_findings(streams, |streams| {
            serde_json::to_value(streams.tally()).unwrap_or_default()
        }))
    }

    fn frames_per_session_second(&self) -> Option<f64> {
        Some(1_000.0 / f64::from(self.frame.ms()))
    }

    /// That of the most usual dialect.
    fn work(&self) -> Option<Box<dyn Work>> {
        Some(Box::new(Stream))
    }

    fn outcome(&self, seen: &Seen<'_>) -> Outcome {
        outcome::outcome(self, seen)
    }
}
