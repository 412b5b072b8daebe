//! Which machine speaks for a writer or a reader of a trial.

use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::session::Endpoint;
use plimsoll_workload::Refusal;

use crate::Login;
use crate::amqp::{Amqp, AmqpConfig, Declare, Offset, QueueKind};
use crate::dialect::{Dialect, Role, Shape};
use crate::fibril;
use crate::kafka;
use crate::load::{BrokerLoad, Spoken, Test};
use crate::mqtt::{Mqtt, MqttConfig, Qos};
use crate::nats;
use crate::resp;

/// The name of the field of an endpoint that has who we are.
const LOGIN: &str = "login";
/// The group that has the offsets of a queue in Kafka. They are by topic, so trials do not meet.
const KAFKA_GROUP: &str = "plimsoll";

/// After how long NATS delivers a message again that a crash cut off, in nanoseconds: 2 s, in place of its 30 s.
const ACK_WAIT_NS: u64 = 2_000_000_000;

/// What the connections of a trial have in common.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    load: BrokerLoad,
    spoken: Spoken,
    /// The name of the queue or stream. No other trial has it.
    queue: String,
    login: Option<Login>,
    readers: u32,
}

/// Adds to an endpoint the number of the trial, and who we are. Client processes get both by it.
pub(crate) fn told(mut to: Endpoint, trial: u32, login: Option<&str>) -> Endpoint {
    to.path = format!("/{trial:08x}");
    if let Some(login) = login {
        to.headers.push((LOGIN.to_owned(), login.to_owned()));
    }
    to
}

/// The number of the trial that an endpoint has.
pub(crate) fn trial_of(to: &Endpoint) -> u32 {
    u32::from_str_radix(to.path.trim_start_matches('/'), 16).unwrap_or(0)
}

impl Links {
    /// The links of a trial with so many readers.
    ///
    /// # Errors
    /// One line with the remedy: nobody said what the broker speaks, or who we are cannot be read.
    pub(crate) fn new(load: &BrokerLoad, to: &Endpoint, readers: u32) -> Result<Self, Refusal> {
        let spoken = load.spoken.ok_or_else(|| {
            Refusal::new(
                "--url: say what the broker speaks with --dialect nats|resp|amqp|mqtt|fibril|kafka",
            )
        })?;
        let mut fields = to.headers.iter();
        let given = fields.find(|(name, _)| name == LOGIN);
        let login = given.map(|(_, text)| Login::parse(text)).transpose()?;
        Ok(Self {
            load: load.clone(),
            spoken,
            queue: format!("plimsoll-{:08x}", trial_of(to)),
            login,
            readers,
        })
    }

    /// What the broker speaks.
    pub(crate) fn spoken(&self) -> Spoken {
        self.spoken
    }

    /// The machine of writer `number`.
    ///
    /// # Errors
    /// One line with the remedy: the protocol cannot say what the load asks for.
    pub(crate) fn writer(&self, number: u32) -> Result<Box<dyn Dialect>, Refusal> {
        let confirms = self.load.window.is_some();
        Ok(match self.spoken {
            Spoken::Nats => Box::new(
                nats::Writer::new(self.nats(&format!("w{number}")), confirms).map_err(refuse)?,
            ),
            Spoken::Resp => {
                let confirm = match (confirms, self.load.level.as_str()) {
                    (false, _) => resp::Confirm::Never,
                    (true, "speculative") => resp::Confirm::Fsync,
                    (true, _) => resp::Confirm::Reply,
                };
                Box::new(resp::Writer::new(self.resp(), confirm).map_err(refuse)?)
            }
            Spoken::Amqp => Box::new(Amqp::new(self.amqp(Role::Writer)).map_err(refuse)?),
            Spoken::Mqtt => Box::new(Mqtt::new(self.mqtt(Role::Writer)).map_err(refuse)?),
            Spoken::Fibril => {
                Box::new(fibril::Writer::new(self.fibril(), confirms).map_err(refuse)?)
            }
            Spoken::Kafka => {
                let setup = self.kafka()?;
                let partition = number % setup.partitions;
                Box::new(kafka::Writer::new(setup, partition, confirms).map_err(refuse)?)
            }
        })
    }

    /// The machine of reader `number`.
    ///
    /// # Errors
    /// One line with the remedy: the protocol cannot say what the load asks for.
    pub(crate) fn reader(&self, number: u32) -> Result<Box<dyn Dialect>, Refusal> {
        let prefetch = self.load.prefetch;
        let is_queue = self.load.shape() == Shape::Queue;
        Ok(match self.spoken {
            Spoken::Nats => {
                let reading = if is_queue {
                    // NATS limits what all readers of a consumer hold together.
                    let together = u64::from(prefetch) * u64::from(self.readers);
                    let most = u64::from(nats::UNSETTLED_MAX);
                    nats::Reading::Shared {
                        consumer: "readers".to_owned(),
                        unsettled_max: u32::try_from(together.min(most))
                            .unwrap_or(nats::UNSETTLED_MAX),
                        // What was on its way to a reader in a crash must come again before the trial is over.
                        ack_wait_ns: self.load.crash.map(|_| ACK_WAIT_NS),
                    }
                } else {
                    nats::Reading::Ordered
                };
                let setup = self.nats(&format!("r{number}"));
                Box::new(nats::Reader::new(setup, reading, prefetch).map_err(refuse)?)
            }
            Spoken::Resp => {
                let reading = if is_queue {
                    resp::Reading::Group {
                        group: "readers".to_owned(),
                        consumer: format!("r{number}"),
                        deletes: true,
                    }
                } else {
                    resp::Reading::Own
                };
                Box::new(resp::Reader::new(self.resp(), reading, prefetch).map_err(refuse)?)
            }
            Spoken::Amqp => Box::new(Amqp::new(self.amqp(Role::Reader)).map_err(refuse)?),
            Spoken::Mqtt => Box::new(Mqtt::new(self.mqtt(Role::Reader)).map_err(refuse)?),
            Spoken::Fibril => {
                let settling = if is_queue {
                    fibril::Settling::Each
                } else {
                    fibril::Settling::None
                };
                Box::new(fibril::Reader::new(self.fibril(), settling, prefetch).map_err(refuse)?)
            }
            Spoken::Kafka => {
                let reading = if is_queue {
                    kafka::Reading::Shared {
                        group: KAFKA_GROUP.to_owned(),
                        number,
                        readers: self.readers,
                    }
                } else {
                    kafka::Reading::Every
                };
                Box::new(kafka::Reader::new(self.kafka()?, reading, prefetch).map_err(refuse)?)
            }
        })
    }

    pub(crate) fn nats(&self, connection: &str) -> nats::Setup {
        nats::Setup {
            stream: self.queue.clone(),
            subject: self.queue.clone(),
            shape: self.load.shape(),
            keeping: match self.load.level.as_str() {
                "memory" => nats::Keeping::Memory,
                "async" => nats::Keeping::FileLater,
                _ => nats::Keeping::File,
            },
            connection: connection.to_owned(),
            login: self.login.clone(),
        }
    }

    pub(crate) fn resp(&self) -> resp::Setup {
        resp::Setup {
            key: self.queue.clone(),
            version: resp::Version::Resp2,
            login: self.login.clone(),
        }
    }

    /// A connection that says at once how much the queue holds, and makes none.
    ///
    /// # Errors
    /// As for the others.
    pub(crate) fn amqp_asker(&self) -> Result<Amqp, Refusal> {
        let mut config = self.amqp(Role::Writer);
        config.declare = Declare::Check;
        config.confirms = false;
        Amqp::new(config).map_err(refuse)
    }

    fn amqp(&self, role: Role) -> AmqpConfig {
        let kind = match (self.load.shape(), self.load.level.as_str()) {
            (Shape::Stream, _) | (_, "stream") => QueueKind::Stream,
            (_, "durable") => QueueKind::Quorum,
            (_, "memory") => QueueKind::Transient,
            _ => QueueKind::Classic,
        };
        let mut config = AmqpConfig::new(role, &self.queue, kind);
        config.declare = Declare::Make;
        config.confirms = self.load.window.is_some();
        config.prefetch = u16::try_from(self.load.prefetch).unwrap_or(u16::MAX);
        config.offset = match self.load.test {
            // A reader that comes late, or again after a crash, must not miss what was published meanwhile.
            Test::Drain | Test::Replay => Offset::First,
            _ => Offset::Next,
        };
        if let Some(login) = &self.login {
            config.user.clone_from(&login.user);
            config.password.clone_from(&login.password);
        }
        config
    }

    fn mqtt(&self, role: Role) -> MqttConfig {
        let qos = match (self.load.window, self.load.level.as_str()) {
            (None, _) => Qos::AtMostOnce,
            (Some(_), "exactly-once") => Qos::ExactlyOnce,
            (Some(_), _) => Qos::AtLeastOnce,
        };
        let mut config = MqttConfig::new(role, &self.queue, qos);
        config.share = (self.load.shape() == Shape::Queue).then(|| "readers".to_owned());
        config.window = small(self.load.window.unwrap_or(u32::from(u16::MAX)));
        config.prefetch = small(self.load.prefetch);
        config.body_bytes_max = self.load.message_bytes;
        if let Some(login) = &self.login {
            config.user = Some(login.user.clone());
            config.password = Some(login.password.clone());
        }
        config
    }

    fn fibril(&self) -> fibril::Setup {
        fibril::Setup {
            topic: self.queue.clone(),
            group: None,
            partition: 0,
            partitions: 1,
            shape: self.load.shape(),
            tier: match self.load.level.as_str() {
                "durable" => fibril::Tier::Durable,
                "speculative" => fibril::Tier::Speculative,
                _ => fibril::Tier::Ephemeral,
            },
            login: self.login.clone().unwrap_or_else(|| Login {
                user: "fibril".to_owned(),
                password: "fibril".to_owned(),
            }),
        }
    }

    /// A connection that says how much of the topic is not settled, and makes none.
    ///
    /// # Errors
    /// As for the others.
    pub(crate) fn kafka_asker(&self) -> Result<kafka::Asker, Refusal> {
        kafka::Asker::new(&self.queue, KAFKA_GROUP).map_err(refuse)
    }

    fn kafka(&self) -> Result<kafka::Setup, Refusal> {
        if self.login.is_some() {
            return Err(Refusal::new(
                "--login-password: we do not log in to Kafka; give the address of a listener without SASL",
            ));
        }
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let began_ms = since_1970.map_or(0, |since| since.as_millis());
        Ok(kafka::Setup {
            topic: self.queue.clone(),
            partitions: match self.load.shape() {
                // Those of all tests of a queue are as many, also of the one without readers.
                Shape::Queue => self.load.readers.max(1),
                // One log, as the other brokers' streams are.
                Shape::Stream => 1,
            },
            syncs_each: self.load.level == "durable",
            began_ms: i64::try_from(began_ms).unwrap_or(i64::MAX),
        })
    }
}

fn small(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[expect(clippy::needless_pass_by_value, reason = "the errors of map_err")]
fn refuse(why: impl ToString) -> Refusal {
    Refusal(why.to_string())
}

#[cfg(test)]
mod tests {
    use plimsoll_workload::{Value, Values};

    use super::*;

    fn links(dialect: &str, test: &str, login: Option<&str>) -> Links {
        let word = |text: &str| Value::Word(text.to_owned());
        let values = Values::default()
            .with("dialect", word(dialect))
            .with("test", word(test));
        let load = BrokerLoad::of(&values).unwrap();
        let nowhere = Endpoint {
            host: String::new(),
            path: String::new(),
            headers: Vec::new(),
        };
        Links::new(&load, &told(nowhere, 7, login), load.readers_of(2)).unwrap()
    }

    #[test]
    fn every_dialect_has_machines_for_queues_and_streams() {
        for dialect in Spoken::NAMES {
            for test in ["steady", "fanout"] {
                let links = links(dialect, test, None);
                for number in 0..2 {
                    assert!(links.writer(number).is_ok(), "{dialect} {test}");
                    assert!(links.reader(number).is_ok(), "{dialect} {test}");
                }
            }
            assert!(
                links(dialect, "publish", None).writer(1).is_ok(),
                "{dialect}"
            );
        }
    }

    #[test]
    fn a_topic_of_kafka_is_the_same_for_all_tests_of_a_queue() {
        let partitions = |test| links("kafka", test, None).kafka().unwrap().partitions;
        assert_eq!(["steady", "publish", "fanout"].map(partitions), [2, 2, 1]);
    }

    #[test]
    fn kafka_has_no_login() {
        let links = links("kafka", "steady", Some("anna:hidden"));
        let why = links.writer(0).err().unwrap().to_string();
        assert!(
            why.starts_with("--login-password: ") && !why.contains("hidden"),
            "{why}"
        );
        assert!(links.kafka_asker().is_ok(), "nobody gets as far");
    }
}
