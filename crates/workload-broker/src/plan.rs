//! The plans of workload `broker`: a test with its parameters.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::profile::Profile;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::Slo;
use plimsoll_document::words::count;
use plimsoll_workload::{
    Crash, Data, Demand, Drive, Job, Manifest, Outcome, Plan, Refusal, Row, Seen, Series, Speaker,
    Told, Value, Values, Workload, machines_with_findings,
};

use crate::guarantee::Confirm;
use crate::link::{self, Links};
use crate::load::{BrokerLoad, SIZES_BYTES, Spoken, Test, WINDOWS};
use crate::login::Login;
use crate::machines::Connections;
use crate::outcome::outcome;
use crate::speaker::Asks;
use crate::{Broker, manifest};

/// The load that a search tries first.
const FIRST_LOAD: u32 = 5_000;
const FIRST_READERS: u32 = 16;
/// What a data folder must have free: a trial's messages, and what the broker writes beside them.
const LEAST_FREE_BYTES: u64 = 2 << 30;

/// A test with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct BrokerPlan {
    values: Values,
    load: BrokerLoad,
}

impl BrokerPlan {
    /// The plan for these values.
    pub(crate) fn new(values: Values) -> Result<Self, Refusal> {
        let load = BrokerLoad::of(&values)?;
        if load.test == Test::Drain && load.spoken == Some(Spoken::Mqtt) {
            return Err(Refusal::new(
                "--test drain: a broker of MQTT keeps nothing for readers that have not subscribed yet; use --test burst",
            ));
        }
        if let Some(secret) = values.secret("login_password") {
            Login::parse(secret.expose())?;
        }
        let values = load.complete(values);
        Ok(Self { values, load })
    }

    /// The same with another value.
    fn row(&self, name: String, parameter: &str, value: u64) -> Result<Row, Refusal> {
        let values = self
            .values
            .clone()
            .with("test", Value::Word("steady".to_owned()))
            .with(parameter, Value::Whole(value));
        Ok(Row {
            name,
            plan: Broker.plan(values)?,
            load: None,
            phases: None,
        })
    }
}

impl Plan for BrokerPlan {
    fn workload(&self) -> &'static dyn Workload {
        &Broker
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn needs_one_clock(&self) -> Option<&'static str> {
        Some("a message's latency goes from its writer to its reader")
    }

    fn unit(&self) -> LoadUnit {
        if self.load.counts_readers() {
            LoadUnit::RECEIVERS
        } else {
            LoadUnit::MESSAGES_PER_SECOND
        }
    }

    fn slo(&self) -> Slo {
        self.load.slo()
    }

    fn first_load(&self) -> u32 {
        if self.load.counts_readers() {
            FIRST_READERS
        } else {
            FIRST_LOAD
        }
    }

    fn must_fit(&self, manifest: &Manifest) -> Result<Values, Refusal> {
        if self.load.holds_readers && manifest.property("dialect") == Some("mqtt") {
            return Err(Refusal::new(
                "--hold-readers: in MQTT a message without a subscriber goes nowhere; leave the flag out",
            ));
        }
        let is_stream = manifest.property("dialect") == Some("amqp") && self.load.level == "stream";
        let is_queue = !matches!(self.load.test, Test::Fanout | Test::Publish);
        if is_stream && is_queue && self.load.readers > 1 {
            return Err(Refusal::new(
                "--level stream: each reader of a RabbitMQ stream gets every message, so it is no queue; use --test fanout or publish, or --readers 1",
            ));
        }
        manifest::settled(manifest, &self.load.level)
    }

    /// A level of one name may promise different things: `async` of one broker is in its memory, of another in the page
    /// cache.
    fn must_be_like(&self, other: &dyn Plan) -> Result<(), Refusal> {
        let ours = self.load.guarantee();
        let theirs = BrokerLoad::of(other.values())?.guarantee();
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            return Ok(());
        };
        ours.comparable(theirs).map_err(|unlike| {
            let level = &self.load.level;
            Refusal(format!(
                "{unlike} at --level {level}; choose a level at which they promise the same, see plimsoll list, or measure each by itself"
            ))
        })
    }

    fn demand(&self, load: u32, _profile: &Profile) -> Demand {
        let sessions = self.load.writers.saturating_add(self.load.readers_of(load));
        let rate = match self.load.closed() {
            // Nobody knows it beforehand, and no percentile is judged.
            Some(_) => 0.0,
            None => f64::from(self.load.messages_of(load).rate),
        };
        Demand {
            sessions,
            concurrent: sessions.into(),
            answers_per_second: rate * f64::from(self.load.arrivals_of(load)),
        }
    }

    fn told(&self) -> Told {
        Told {
            path: "/".into(),
            health_path: "",
            port: None,
            variables: vec![("LEVEL".to_owned(), self.load.level.clone())],
            data: Some(Data {
                at: self.values.file("data_dir").map(Into::into),
                least_free_bytes: LEAST_FREE_BYTES,
                on_disk: self.load.confirm_at == Some(Confirm::Disk),
            }),
        }
    }

    fn speaker(&self) -> Option<Arc<dyn Speaker>> {
        Some(Arc::new(Asks::new(self.load.clone())))
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        // Two trials of one broker must differ, and the seconds since 1970 do.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since_1970.map_or(0, |since| since.as_secs());
        let trial = u32::try_from(seconds & u64::from(u32::MAX)).unwrap_or(0);
        let login = self.values.secret("login_password");
        Ok(link::told(to, trial, login.map(|secret| secret.expose())))
    }

    fn machines(&self, job: &Job, profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        let links = Links::new(&self.load, &job.to, self.load.readers_of(job.load))?;
        let trial = link::trial_of(&job.to);
        let connections = Connections::new(&self.load, links, trial, job.load, profile)?;
        Ok(machines_with_findings(connections, |connections| {
            connections.found().findings()
        }))
    }

    fn frame_bytes(&self) -> Option<usize> {
        Some(self.load.message_bytes)
    }

    fn is_bound_by_the_machine(&self) -> bool {
        true
    }

    fn series(&self) -> Result<Option<Series>, Refusal> {
        if let Some(set) = self.load.set {
            return Ok(Some(Series {
                rows: set.rows(&self.values)?,
                asked_by: "--set".to_owned(),
                one_at_a_time: "one load at a time, without --set",
                ..Series::default()
            }));
        }
        let (numbers, parameter, unit): (&[u64], _, _) = match self.load.test {
            Test::Sizes => (&SIZES_BYTES, "message_bytes", " B"),
            Test::Windows => (&WINDOWS, "confirm", " unconfirmed"),
            _ => return Ok(None),
        };
        let rows = numbers
            .iter()
            .map(|number| self.row(format!("{}{unit}", count(*number)), parameter, *number));
        Ok(Some(Series {
            rows: rows.collect::<Result<_, _>>()?,
            asked_by: format!("--test {}", self.load.test.name()),
            one_at_a_time: match self.load.test {
                Test::Sizes => "one size at a time: --test steady --message-bytes N",
                _ => "one window at a time: --test steady --confirm W",
            },
            ..Series::default()
        }))
    }

    fn decides_nothing(&self) -> Option<String> {
        self.load.closed()?;
        Some(format!("--test {}", self.load.test.name()))
    }

    fn crash(&self) -> Option<Crash> {
        self.load.crash
    }

    fn outcome(&self, seen: &Seen<'_>) -> Outcome {
        outcome(&self.load, seen)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plimsoll_workload::{Keys, Value, Workload};

    use super::*;

    fn manifest(dialect: &str, level: &str) -> Manifest {
        let text = format!(
            "name = \"a\"\nworkload = \"broker\"\ntier = \"engine\"\nlanguage = \"x\"\ndescription = \"x\"\ndialect = \"{dialect}\"\nlevels = [\"{level}: confirm cache, deliver cache\"]\n[run]\ncommand = [\"sh\"]\n"
        );
        let keys = |_: &str| Some(Keys::of(Broker.manifest_keys()));
        Manifest::parse(&text, Path::new("/t/broker/a/target.toml"), keys).expect("a manifest")
    }

    /// Whether a load fits, or the beginning of the line that refuses it.
    fn fits(
        dialect: &str,
        level: &str,
        test: &str,
        changed: &[(&'static str, Value)],
    ) -> Result<(), String> {
        let word = |word: &str| Value::Word(word.to_owned());
        let values = Values::default()
            .with("level", word(level))
            .with("test", word(test));
        let values = changed.iter().fold(values, |values, (name, value)| {
            values.with(name, value.clone())
        });
        let broker: &dyn Workload = &Broker;
        let plan = broker.planned(values).expect("a plan");
        let fits = plan.must_fit(&manifest(dialect, level));
        fits.map(drop).map_err(|refused| refused.0)
    }

    #[test]
    fn a_rabbitmq_stream_is_no_queue_of_several_readers() {
        let told = fits("amqp", "stream", "steady", &[]).expect_err("two readers");
        assert!(told.starts_with("--level stream: each reader"), "{told}");
        let one = [("readers", Value::Whole(1))];
        for (test, changed) in [("steady", &one[..]), ("fanout", &[]), ("publish", &[])] {
            assert_eq!(fits("amqp", "stream", test, changed), Ok(()), "{test}");
        }
        assert_eq!(fits("fibril", "stream", "steady", &[]), Ok(()));
    }

    #[test]
    fn readers_of_mqtt_cannot_be_held() {
        let held = [("hold_readers", Value::Flag(true))];
        let told = fits("mqtt", "any", "replay", &held).expect_err("held readers");
        assert!(told.starts_with("--hold-readers: in MQTT"), "{told}");
        assert_eq!(fits("nats", "any", "replay", &held), Ok(()));
    }
}
