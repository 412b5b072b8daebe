//! What is asked for, settled: a test and its values.

use std::time::Duration;

use plimsoll_core::profile::{NS_PER_S, Profile, Window};
use plimsoll_core::schedule::{Arrivals, SessionPlan, Spacing, mix, session_plan};
use plimsoll_workload::{Crash, CrashKind, Refusal, Values};
use serde_json::{Value, json};

use crate::marks::BLOCK_MS;
use crate::rest::visit::{CALLS_PERCENT, SPEAKS_PER_ARRIVAL};
use crate::script::Script;
use crate::stages::Stages;
use crate::wire::Providers;

/// How many callers there are in a spike, for each that was there before.
const SPIKE_TIMES: u32 = 5;
/// How long a spike or an outage lasts.
const TROUBLE_NS: u64 = 10 * NS_PER_S;
/// Over what time the callers of a spike connect.
const SPIKE_OVER_NS: u64 = NS_PER_S;
/// How long after a restart its recovery may take, so that it shows within the window.
const RESTART_NS: u64 = 10 * NS_PER_S;
/// One caller of so many reads slowly, in the test that has such callers.
const SLOW_ONE_OF: u32 = 10;
/// How long a call that arrives may take to be ready.
const READY_WITHIN_NS: u64 = 10 * NS_PER_S;
/// How long a reply over HTTP takes at most while the gates hold, rounded up.
const REPLY_S: u32 = 5;
/// The fewest connections of a pool: more than the client has threads.
const POOL_MIN: u32 = 32;
/// The most connections of test `rest`. With all of them busy, 10,000 requests a second take 100 ms each.
const REST_POOL_MAX: u32 = 1_000;
/// How long a visitor of test `mixed` stays, rounded up: most leave at once, one in five waits for a reply.
const VISIT_S: u64 = 2;

/// The fault that is the gateway's own.
const RESTART: &str = "restart";

/// What callers do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Test {
    /// They stay.
    #[default]
    Talk,
    /// They stay, and more of them are tried than the gateway carries.
    Breaking,
    /// They arrive, talk and hang up.
    Calls,
    /// Many more come for a while.
    Spike,
    /// They stay while something fails.
    Faults,
    /// They and REST clients arrive.
    Mixed,
    /// No callers: texts to be spoken over HTTP.
    Speak,
    /// No callers: `GET /`.
    Rest,
    /// They stay, in a series of trials.
    Stages,
    /// They stay, and some read slowly.
    Slow,
}

impl Test {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Breaking => "breaking",
            Self::Calls => "calls",
            Self::Spike => "spike",
            Self::Faults => "faults",
            Self::Mixed => "mixed",
            Self::Speak => "speak",
            Self::Rest => "rest",
            Self::Stages => "stages",
            Self::Slow => "slow",
        }
    }

    const ALL: [Self; 10] = [
        Self::Talk,
        Self::Breaking,
        Self::Calls,
        Self::Spike,
        Self::Faults,
        Self::Mixed,
        Self::Speak,
        Self::Rest,
        Self::Stages,
        Self::Slow,
    ];

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|test| test.name() == name)
    }

    /// Who comes, and for how long.
    pub(crate) fn crowd(self) -> Crowd {
        match self {
            Self::Talk | Self::Breaking | Self::Faults | Self::Stages | Self::Slow => Crowd::Stays,
            Self::Spike => Crowd::Swells,
            Self::Calls => Crowd::Calls,
            Self::Mixed => Crowd::CallsAndVisits,
            Self::Speak | Self::Rest => Crowd::Requests,
        }
    }

    /// Whether sessions arrive all through the trial.
    pub(crate) fn arrives(self) -> bool {
        matches!(self.crowd(), Crowd::Calls | Crowd::CallsAndVisits)
    }

    /// Whether there are no callers, so that the trial's frames are requests.
    pub(crate) fn is_of_requests(self) -> bool {
        self.crowd() == Crowd::Requests
    }
}

/// Who comes in a test, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crowd {
    /// Callers who stay.
    Stays,
    /// Callers who stay, and many more for a while.
    Swells,
    /// Callers who arrive, talk and hang up.
    Calls,
    /// They, and REST clients who arrive.
    CallsAndVisits,
    /// Nobody: requests on connections that are shared.
    Requests,
}

/// A test with its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VoiceLoad {
    pub(crate) test: Test,
    /// Blocks that one message carries.
    pub(crate) chunk_blocks: u32,
    /// Whether callers send nothing while they say nothing.
    pub(crate) skips_silence: bool,
    /// The seed of the trial, for what no caller can draw alone.
    pub(crate) seed: u64,
    pub(crate) providers: Providers,
    /// How long a call lasts.
    call_ns: u64,
    pub(crate) spacing: Spacing,
    pub(crate) fault: Option<String>,
    /// The loads of a series.
    pub(crate) stages: Option<Stages>,
    /// Whether its providers do not mark what they hand over.
    pub(crate) real_providers: bool,
}

impl VoiceLoad {
    /// What these values ask for.
    ///
    /// # Errors
    /// One line with the remedy.
    pub(crate) fn of(values: &Values) -> Result<Self, Refusal> {
        let chunk_ms = values.whole("chunk_ms").unwrap_or(BLOCK_MS);
        if !chunk_ms.is_multiple_of(BLOCK_MS) {
            return Err(Refusal::new(format!(
                "--chunk-ms {chunk_ms}: give a multiple of {BLOCK_MS}, because a block of audio is {BLOCK_MS} ms"
            )));
        }
        let word = |name| values.word(name).unwrap_or("deepgram").to_owned();
        Ok(Self {
            test: values
                .word("test")
                .and_then(Test::by_name)
                .unwrap_or_default(),
            chunk_blocks: u32::try_from(chunk_ms / BLOCK_MS).unwrap_or(1),
            skips_silence: values.word("silence") == Some("skip"),
            seed: 0,
            providers: Providers {
                stt: word("stt_provider"),
                tts: word("tts_provider"),
            },
            call_ns: values.whole("call_s").unwrap_or_default() * NS_PER_S,
            spacing: if values.flag("poisson") {
                Spacing::Poisson
            } else {
                Spacing::Even
            },
            fault: values.word("fault").map(str::to_owned),
            stages: values.word("stages").map(Stages::parse).transpose()?,
            real_providers: values.flag("real_providers"),
        })
    }

    /// Refuses a profile in which the test can't show anything.
    ///
    /// # Errors
    /// One line with the remedy.
    pub(crate) fn must_fit(&self, profile: &Profile) -> Result<(), Refusal> {
        let warm_up_ns = profile.window().start_ns - profile.ramp_end_ns();
        if self.test.arrives() && warm_up_ns < self.call_ns {
            let (test, call_s) = (self.test.name(), self.call_ns / NS_PER_S);
            return Err(Refusal::new(format!(
                "--test {test}: with a warm-up of {} s fewer callers talk at the beginning of the window than later; give --warm-up {call_s} or more, or a shorter --call-s",
                profile.warm_up_s
            )));
        }
        let window = profile.window();
        if self.crash().is_some() && window.end_ns - window.start_ns < 2 * RESTART_NS {
            return Err(Refusal::new(format!(
                "--fault {RESTART}: the gateway is killed in the middle of the window, and 10 s after that must show; give --measured 20 or more"
            )));
        }
        let has_trouble = self.crash().is_none() && self.trouble(&window).is_some();
        if has_trouble && window.end_ns - window.start_ns < 3 * TROUBLE_NS {
            return Err(Refusal::new(format!(
                "--test {}: it takes 10 s, and the time before and after must show; give --measured 30 or more",
                self.test.name()
            )));
        }
        Ok(())
    }

    /// Refuses a load in which the test can't show anything.
    ///
    /// # Errors
    /// One line with the remedy.
    pub(crate) fn must_suffice(&self, load: u32) -> Result<(), Refusal> {
        if self.test == Test::Slow && load < SLOW_ONE_OF {
            return Err(Refusal::new(format!(
                "--test slow with {load} callers: one in {SLOW_ONE_OF} reads slowly; give --sessions {SLOW_ONE_OF} or more"
            )));
        }
        Ok(())
    }

    /// Whether caller `id` reads slowly: of each ten callers one, which the seed draws.
    pub(crate) fn is_slow(&self, id: u32) -> bool {
        let drawn = mix(self.seed ^ mix(u64::from(id / SLOW_ONE_OF) + 1)) % u64::from(SLOW_ONE_OF);
        self.test == Test::Slow && u64::from(id % SLOW_ONE_OF) == drawn
    }

    /// The crash of the gateway that this load has.
    pub(crate) fn crash(&self) -> Option<Crash> {
        (self.fault.as_deref() == Some(RESTART)).then_some(Crash {
            kind: CrashKind::Kill,
            pause: Duration::ZERO,
            asked_by: "--fault restart",
        })
    }

    /// When the spike, the outage or the crash begins and ends; `None` if the test has none.
    pub(crate) fn trouble(&self, window: &Window) -> Option<(u64, u64)> {
        let begins_ns = window.start_ns + (window.end_ns - window.start_ns) / 3;
        if self.crash().is_some() {
            let at_ns = Crash::at_ns(window);
            return Some((at_ns, at_ns));
        }
        // Only a test of faults has an outage.
        let has = self.test == Test::Spike || self.outage().is_some();
        has.then_some((begins_ns, begins_ns + TROUBLE_NS))
    }

    /// Which provider is out, and how.
    fn outage(&self) -> Option<(String, &str)> {
        let (leg, how) = self.fault.as_deref()?.split_once('-')?;
        let provider = if leg == "stt" {
            &self.providers.stt
        } else {
            &self.providers.tts
        };
        Some((format!("{provider}_{leg}"), how))
    }

    /// What the mocks are told at the window's beginning, in the format of their `PUT /faults`.
    pub(crate) fn faults(&self, profile: &Profile) -> Option<Value> {
        let window = profile.window();
        if let (Some((provider, how)), Some((from_ns, to_ns))) =
            (self.outage(), self.trouble(&window))
        {
            let seconds = |ns: u64| Duration::from_nanos(ns - window.start_ns).as_secs_f64();
            let (from_s, to_s) = (seconds(from_ns), seconds(to_ns));
            return Some(json!({"timeline": [
                {"provider": provider, "outage": how, "from_s": from_s, "to_s": to_s},
            ]}));
        }
        let preset = self.fault.as_deref().filter(|fault| *fault != RESTART);
        preset.map(|preset| json!({"preset": preset}))
    }

    /// The sessions of a trial.
    pub(crate) fn sessions(&self, load: u32, profile: &Profile) -> u32 {
        match self.test.crowd() {
            Crowd::Stays => load,
            Crowd::Calls | Crowd::CallsAndVisits => self.arrivals(load).count(profile),
            Crowd::Swells => load.saturating_mul(SPIKE_TIMES),
            Crowd::Requests => self.pool(load),
        }
    }

    /// How many are open at once.
    pub(crate) fn concurrent(&self, load: u32) -> u64 {
        match self.test.crowd() {
            Crowd::Stays => load.into(),
            Crowd::Calls => u64::from(load) * self.call_ns.div_ceil(NS_PER_S),
            Crowd::Swells => u64::from(load) * u64::from(SPIKE_TIMES),
            Crowd::CallsAndVisits => {
                let calls = u64::from(load) * self.call_ns.div_ceil(NS_PER_S) * CALLS_PERCENT;
                let visitors = u64::from(load) * (100 - CALLS_PERCENT) * VISIT_S;
                (calls + visitors).div_ceil(100)
            }
            Crowd::Requests => self.pool(load).into(),
        }
    }

    /// The connections that share so many requests a second: as many as are busy at once while the gates hold, so that
    /// requests wait for a connection only where answers are late.
    fn pool(&self, load: u32) -> u32 {
        match self.test {
            // A reply takes up to 3.9 s, and begins up to 0.6 s after its text.
            Test::Speak => load.saturating_mul(REPLY_S).max(POOL_MIN),
            // The p99 of `GET /` may be a tenth of a second.
            _ => (load / 10).clamp(POOL_MIN, REST_POOL_MAX),
        }
    }

    /// Measured turns a second while as many callers talk as there are at once.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a turn, and callers"
    )]
    pub(crate) fn answers_per_second(&self, load: u32) -> f64 {
        let turns = |ns: u64| ns as f64 / Script::TURN_NS as f64;
        match self.test.crowd() {
            Crowd::Swells => f64::from(load) * turns(NS_PER_S),
            Crowd::Stays if self.test == Test::Slow => {
                f64::from(Self::judged(load)) * turns(NS_PER_S)
            }
            Crowd::Stays | Crowd::Calls => self.concurrent(load) as f64 * turns(NS_PER_S),
            // A caller begins no turn that could not end. Of replies to visitors there are fewer still, but their gate needs a
            // fifth of the samples only.
            Crowd::CallsAndVisits => {
                let calls = f64::from(load) * CALLS_PERCENT as f64 / 100.0;
                let of_calls = calls * (turns(self.call_ns) - 1.0);
                of_calls.min(f64::from(load) * SPEAKS_PER_ARRIVAL * 5.0)
            }
            Crowd::Requests => f64::from(load),
        }
    }

    /// Turns of a window that so many callers would have had who were never let in. Which callers of a spike those were is
    /// not known.
    pub(crate) fn turns_missed(&self, callers: u64, window: &Window) -> u64 {
        let talks_ns = match self.test.crowd() {
            Crowd::Stays => window.end_ns - window.start_ns,
            Crowd::Calls => self.call_ns,
            // Nobody counts apart which of those who were not let in were callers.
            Crowd::CallsAndVisits => self.call_ns * CALLS_PERCENT / 100,
            Crowd::Swells | Crowd::Requests => 0,
        };
        let (whole_ns, turn_ns) = (callers.saturating_mul(talks_ns), Script::TURN_NS);
        whole_ns.saturating_add(turn_ns / 2) / turn_ns
    }

    fn arrivals(&self, load: u32) -> Arrivals {
        Arrivals {
            rate_per_s: f64::from(load),
            spacing: self.spacing,
            open_within_ns: READY_WITHIN_NS,
        }
    }

    /// Of so many sessions, those that are there before a spike and after it.
    fn stay(sessions: u32) -> u32 {
        sessions / SPIKE_TIMES
    }

    /// Of so many callers of test `slow`, those whose turns are judged; at least so many.
    fn judged(load: u32) -> u32 {
        load - load.div_ceil(SLOW_ONE_OF)
    }

    /// When session `id` of `sessions` comes.
    pub(crate) fn plan(
        &self,
        (id, sessions): (u32, u32),
        profile: &Profile,
        seed: u64,
    ) -> SessionPlan {
        let stay = Self::stay(sessions);
        match (self.test.crowd(), self.trouble(&profile.window())) {
            // The number of arrivals is known already.
            (Crowd::Calls | Crowd::CallsAndVisits, _) => {
                self.arrivals(0).plan(id, sessions, profile, seed)
            }
            (Crowd::Swells, _) if id < stay => session_plan(id, stay, profile, seed),
            (Crowd::Swells, Some((from_ns, _))) => {
                let place = u64::from(id - stay) * SPIKE_OVER_NS / u64::from(sessions - stay);
                let connect_at_ns = from_ns + place;
                SessionPlan {
                    connect_at_ns,
                    first_due_ns: connect_at_ns,
                    open_by_ns: connect_at_ns + READY_WITHIN_NS,
                    ..session_plan(id, sessions, profile, seed)
                }
            }
            _ => session_plan(id, sessions, profile, seed),
        }
    }

    /// When session `id` of `sessions` hangs up.
    pub(crate) fn leaves(&self, (id, sessions): (u32, u32), profile: &Profile) -> Leaves {
        match (self.test.crowd(), self.trouble(&profile.window())) {
            (Crowd::Calls | Crowd::CallsAndVisits, _) => Leaves::After(self.call_ns),
            (Crowd::Swells, Some((_, to_ns))) if id >= Self::stay(sessions) => Leaves::At(to_ns),
            _ => Leaves::Never,
        }
    }
}

/// When a caller hangs up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// At the end of the trial.
    Never,
    /// So long after its session is ready.
    After(u64),
    /// At this time.
    At(u64),
}

impl Leaves {
    /// When, for a caller whose script began at `base_ns`.
    pub(crate) fn at_ns(self, base_ns: u64) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::After(ns) => base_ns + ns,
            Self::At(ns) => ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PARAMETERS;
    use plimsoll_workload::Value as Given;

    fn load(words: &[(&'static str, &str)]) -> VoiceLoad {
        let given = words
            .iter()
            .fold(Values::default(), |values, (name, word)| {
                values.with(name, Given::Word((*word).to_owned()))
            });
        VoiceLoad::of(&given.or_usual(&PARAMETERS)).expect("a load")
    }

    #[test]
    fn one_caller_of_each_ten_reads_slowly_and_the_seed_draws_which() {
        let slow = |seed| -> Vec<u32> {
            let load = VoiceLoad {
                seed,
                ..load(&[("test", "slow")])
            };
            (0..200).filter(|id| load.is_slow(*id)).collect()
        };
        assert_eq!(slow(1).len(), 20);
        for (group, id) in (0..).zip(slow(1)) {
            assert_eq!(id / SLOW_ONE_OF, group);
        }
        assert_eq!(slow(1), slow(1));
        assert_ne!(slow(1), slow(2));
        assert!((0..200).all(|id| !load(&[("test", "talk")]).is_slow(id)));
        let few = load(&[("test", "slow")]).must_suffice(9).expect_err("9");
        assert!(few.0.ends_with("give --sessions 10 or more"), "{}", few.0);
    }

    #[test]
    fn a_restart_is_the_gateways_own_fault() {
        let restart = load(&[("test", "faults"), ("fault", "restart")]);
        let profile = Profile {
            measured_s: 24.0,
            ..Profile::quick()
        };
        let window = profile.window();
        assert_eq!(restart.faults(&profile), None, "the mocks are told nothing");
        let at_ns = Crash::at_ns(&window);
        assert_eq!(restart.trouble(&window), Some((at_ns, at_ns)));
        assert!(restart.must_fit(&profile).is_ok());
        let short = Profile {
            measured_s: 19.0,
            ..profile
        };
        let refused = restart.must_fit(&short).expect_err("too short");
        assert!(refused.0.ends_with("give --measured 20 or more"));
        for fault in ["tts-refuse", "stress"] {
            let other = load(&[("test", "faults"), ("fault", fault)]);
            assert!(other.crash().is_none() && other.faults(&short).is_some());
        }
    }
}
