//! The plans of workload `http`: a test, and the same as a closed loop.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::caveat::Caveat;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::sanity::MetricNames;
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::Slo;
use plimsoll_document::words::count;
use plimsoll_workload::counters::Counted;
use plimsoll_workload::{
    Afterwards, Counters, Demand, Drive, Job, Manifest, Outcome, Plan, Refusal, Row, Seen, Series,
    Told, Value, Values, Workload, machines_with_findings,
};

use crate::Http;
use crate::account::TIMEOUT_NS;
use crate::ask::Ask;
use crate::check::Protocol;
use crate::h1::{self, BROWSER_FIELDS, Method, Path, RequestSpec};
use crate::h2;
use crate::h2_session::H2Session;
use crate::load::{CONNECTIONS, HttpLoad, SIZES_BYTES, Test, slo};
use crate::machines::{Connections, Load};
use crate::manifest;
use crate::outcome_record::outcome;
use crate::session::{H1Session, Shared, Speaks};

/// What the load counts.
pub(crate) const REQUESTS_PER_SECOND: LoadUnit = LoadUnit::of("requests_per_second");
/// The gate on the newest p99 of the usual SLO, in ms, and of the further one.
const STRICT_MS: f64 = 10.0;
const TOLERANT_MS: f64 = 20.0;
/// How long a server has to give back what its connections took.
const MEMORY_AFTER: Duration = Duration::from_secs(3);
/// The warm-up that shows a dead server: the first of its requests were given up in it.
const TIMEOUT: Duration = Duration::from_nanos(TIMEOUT_NS);
/// The shortest grace of a closed loop, in seconds: an answer is given up after 2 s.
const CLOSED_LOOP_GRACE_S: f64 = 2.5;

/// A test with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct HttpPlan {
    pub(crate) values: Values,
    pub(crate) load: HttpLoad,
}

impl HttpPlan {
    /// The plan for these values.
    pub(crate) fn new(values: Values) -> Result<Self, Refusal> {
        let load = HttpLoad::of(&values)?;
        let values = load.complete(values);
        Ok(Self { values, load })
    }

    /// The same with other values.
    fn row(&self, name: String, values: Values) -> Result<Row, Refusal> {
        Ok(Row {
            name,
            plan: Http.plan(values)?,
            load: None,
            phases: None,
        })
    }

    /// The machines of a job.
    fn drive(&self, job: &Job, load: Load) -> Result<Box<dyn Drive>, Refusal> {
        Ok(match self.load.protocol {
            Protocol::H1 => {
                let template = self.template(&job.to)?;
                self.connections::<H1Session>(template, job, load)
            }
            Protocol::H2c => {
                let template = self.h2_template(&job.to)?;
                self.connections::<H2Session>(Arc::new([template]), job, load)
            }
        })
    }

    fn connections<S: Speaks + 'static>(
        &self,
        template: S::Template,
        job: &Job,
        due: Load,
    ) -> Box<dyn Drive> {
        let load = &self.load;
        // A path that the user chose is none of the contract's, and `/` of any server says what it likes.
        let path = &job.to.path;
        let by_contract = job.started || (*path == load.path() && path != "/");
        let shared = Shared {
            ask: Ask::new(load, by_contract, 0),
            template,
            a_connection_each: load.test == Test::Connect,
            may_ask_again: load.test != Test::Post,
        };
        let connections = Connections::<S>::new(shared, due, load.dispatch, load.streams);
        machines_with_findings(connections, |connections| connections.found().findings())
    }

    /// The bytes of a request of HTTP/1.1.
    pub(crate) fn template(&self, to: &Endpoint) -> Result<h1::Template, Refusal> {
        let made = self.with_spec(to, h1::Template::new);
        made.map_err(|error| Refusal::new(error.to_string()))
    }

    /// The fields of a request of HTTP/2.
    pub(crate) fn h2_template(&self, to: &Endpoint) -> Result<h2::Template, Refusal> {
        let made = self.with_spec(to, h2::Template::new);
        made.map_err(|error| Refusal::new(error.to_string()))
    }

    /// What a request is.
    fn with_spec<T>(&self, to: &Endpoint, make: impl FnOnce(&RequestSpec<'_>) -> T) -> T {
        let load = &self.load;
        let browser = BROWSER_FIELDS.iter().filter(|_| load.browser);
        let given = to.headers.iter();
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<(&str, &str)> = browser.copied().chain(given).collect();
        let bytes = usize::try_from(load.body_bytes).unwrap_or(usize::MAX);
        let spec = RequestSpec {
            method: if load.test == Test::Post {
                Method::Post
            } else {
                Method::Get
            },
            path: if load.test == Test::Json {
                Path::Numbered(&to.path)
            } else {
                Path::Fixed(&to.path)
            },
            host: &to.host,
            fields: &fields,
            body_bytes: (load.test == Test::Post).then_some(bytes),
            close: load.test == Test::Connect,
        };
        make(&spec)
    }
}

impl Plan for HttpPlan {
    fn workload(&self) -> &'static dyn Workload {
        &Http
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn unit(&self) -> LoadUnit {
        REQUESTS_PER_SECOND
    }

    fn slo(&self) -> Slo {
        slo("http-strict", STRICT_MS)
    }

    fn further_slos(&self) -> Vec<Slo> {
        vec![slo("http-tolerant", TOLERANT_MS)]
    }

    fn tick_us(&self) -> u64 {
        0
    }

    fn quota_period_us(&self) -> u64 {
        0
    }

    fn first_load(&self) -> u32 {
        1_000
    }

    fn must_fit(&self, manifest: &Manifest) -> Result<Values, Refusal> {
        manifest::must_have(manifest, &self.load).map(|()| Values::default())
    }

    fn demand(&self, load: u32, _profile: &Profile) -> Demand {
        Demand {
            sessions: self.load.connections,
            concurrent: self.load.connections.into(),
            answers_per_second: load.into(),
        }
    }

    fn told(&self) -> Told {
        Told {
            path: self.load.path().into(),
            health_path: "/healthz",
            port: (self.load.protocol == Protocol::H2c).then_some(manifest::H2_PORT),
            variables: Vec::new(),
            data: None,
        }
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        self.template(&to)?;
        Ok(to)
    }

    fn machines(&self, job: &Job, _profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        self.drive(job, Load::Rates(self.load.rates(job.load)))
    }

    fn source_addresses(&self) -> &[IpAddr] {
        &self.load.source_addresses
    }

    fn alpn(&self) -> &'static [&'static str] {
        match self.load.protocol {
            Protocol::H1 => &["http/1.1"],
            Protocol::H2c => &["h2"],
        }
    }

    fn counters(&self) -> Option<Counters> {
        Some(Counters {
            names: MetricNames {
                frames: "http_requests_total",
                partials: "count of answers",
                sessions: "http_connections_accepted_total",
            },
            counted: Counted::Requests,
        })
    }

    fn memory_after(&self) -> Option<Duration> {
        Some(MEMORY_AFTER)
    }

    fn is_bound_by_the_machine(&self) -> bool {
        true
    }

    fn warm_up_must_answer_s(&self) -> Option<f64> {
        // At a rate of its own, the warm-up may have no requests at all.
        let full_rate = self.load.warm_up_rate.is_none();
        full_rate.then_some(TIMEOUT.as_secs_f64())
    }

    fn afterwards(&self) -> Option<Afterwards> {
        self.load.closed_loop.then(|| Afterwards {
            plan: Arc::new(ClosedLoopPlan(self.clone())),
            grace_min_s: CLOSED_LOOP_GRACE_S,
            name: "closed-loop",
            asked_by: "--closed-loop",
        })
    }

    fn series(&self) -> Result<Option<Series>, Refusal> {
        let values = self
            .values
            .clone()
            .with("test", Value::Word("rate".to_owned()));
        let rows: Result<Vec<Row>, Refusal> = match self.load.test {
            Test::Sizes => SIZES_BYTES
                .into_iter()
                .map(|bytes| {
                    let values = values.clone().with("body_bytes", Value::Whole(bytes));
                    self.row(format!("{} B", count(bytes)), values)
                })
                .collect(),
            Test::Connections => CONNECTIONS
                .into_iter()
                .map(|connections| {
                    let number = Value::Whole(connections.into());
                    let values = values.clone().with("connections", number);
                    self.row(format!("{} connections", count(connections.into())), values)
                })
                .collect(),
            _ => return Ok(None),
        };
        Ok(Some(Series {
            rows: rows?,
            asked_by: format!("--test {}", self.load.test.name()),
            one_at_a_time: match self.load.test {
                Test::Sizes => "one size at a time: --test rate --body-bytes N",
                _ => "one number at a time: --test rate --connections N",
            },
            ..Series::default()
        }))
    }

    fn outcome(&self, seen: &Seen<'_>) -> Outcome {
        outcome(&self.load, seen)
    }
}

/// The same test as a closed loop. Where it does not say otherwise, it is as the test is.
#[derive(Debug)]
struct ClosedLoopPlan(HttpPlan);

impl Plan for ClosedLoopPlan {
    fn workload(&self) -> &'static dyn Workload {
        self.0.workload()
    }

    fn values(&self) -> &Values {
        self.0.values()
    }

    fn unit(&self) -> LoadUnit {
        self.0.unit()
    }

    fn slo(&self) -> Slo {
        self.0.slo()
    }

    fn demand(&self, load: u32, profile: &Profile) -> Demand {
        self.0.demand(load, profile)
    }

    fn told(&self) -> Told {
        self.0.told()
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        self.0.let_in(to)
    }

    fn machines(&self, job: &Job, _profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        self.0.drive(job, Load::AtOnce)
    }
}

/// Nobody compares the content of the answers.
pub(crate) fn content_unchecked() -> Caveat {
    Caveat {
        id: "content-unchecked".to_owned(),
        blocking: false,
        text: "status, length and framing of the answers were checked, but not their bodies, because nobody said what the server answers; give the body with --expect-body FILE".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PARAMETERS;

    #[test]
    fn the_reference_page_has_the_caveat() {
        let page = include_str!("../../../docs/reference/caveats.md");
        let (_, own) = page
            .split_once("\n## Caveats of one workload\n")
            .expect("a heading");
        let caveat = content_unchecked();
        assert!(own.contains(&format!("\n### `{}`\n", caveat.id)));
        assert!(caveat.text.contains("--expect-body FILE"));
    }

    #[test]
    fn a_warm_up_at_full_rate_must_have_an_answer_before_the_first_request_times_out() {
        let least_s = |values: Values| {
            let plan = Http.plan(values.or_usual(&PARAMETERS)).expect("a plan");
            plan.warm_up_must_answer_s()
        };
        assert_eq!(least_s(Values::default()), Some(2.0));
        let slow = Values::default().with("warm_up_rate", Value::Whole(1));
        assert_eq!(least_s(slow), None);
    }

    #[test]
    fn thousands_have_commas() {
        let of = [2, 999, 1_000, 65_536, 1_048_576].map(count);
        assert_eq!(of, ["2", "999", "1,000", "65,536", "1,048,576"]);
    }
}
