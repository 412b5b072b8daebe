//! What every connection says first: which requests the broker takes, the topic's creation, and the wait for its leaders.

use super::answer::{Answer, Flaw};
use super::errors;
use super::requests::{
    API_VERSIONS, Api, CREATE_TOPICS, METADATA, put_api_versions, put_create_topic, put_metadata,
    read_api_versions, read_create_topics, read_metadata,
};
use super::setup::{PARTITIONS_MAX, Setup};
use crate::dialect::Fault;

/// The numbers of a connection's requests. A broker answers the requests of a connection in their order.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    asked: i32,
    answered: i32,
}

impl Numbers {
    /// The number of the next request.
    pub(super) fn ask(&mut self) -> i32 {
        let number = self.asked;
        self.asked = self.asked.wrapping_add(1);
        number
    }

    /// Takes the number of an answer.
    pub(super) fn answer(&mut self, answer: &Answer<'_>) -> Result<(), Fault> {
        if self.answered == self.asked || answer.number != self.answered {
            return Err(kafka(format_args!(
                "an answer to request {}, which is not the oldest open one",
                answer.number
            )));
        }
        self.answered = self.answered.wrapping_add(1);
        Ok(())
    }
}

/// What was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Versions,
    Create,
    Metadata,
}

/// The beginning of a connection.
#[derive(Debug)]
pub(super) struct Greeting {
    topic: String,
    /// The topic to create, unless somebody else did.
    creates: Option<Setup>,
    /// The requests that will follow.
    needed: &'static [Api],
    step: Step,
}

impl Greeting {
    /// A greeting that creates the topic or finds it.
    pub(super) fn creating(setup: Setup, needed: &'static [Api]) -> Self {
        Self {
            topic: setup.topic.clone(),
            creates: Some(setup),
            needed,
            step: Step::Versions,
        }
    }

    /// A greeting that finds the topic.
    pub(super) fn finding(topic: &str, needed: &'static [Api]) -> Self {
        Self {
            topic: topic.to_owned(),
            creates: None,
            needed,
            step: Step::Versions,
        }
    }

    /// Appends the first request.
    pub(super) fn open(&self, out: &mut Vec<u8>, numbers: &mut Numbers) {
        put_api_versions(out, numbers.ask());
    }

    /// Takes the answer to the last request. Appends the next one, or returns how many partitions the topic has: then the
    /// greeting is over. A topic that is being made is asked for again at once; that ends when the caller loses patience.
    pub(super) fn take(
        &mut self,
        answer: &[u8],
        out: &mut Vec<u8>,
        numbers: &mut Numbers,
    ) -> Result<Option<u32>, Fault> {
        match self.step {
            Step::Versions => {
                self.versions(answer)?;
                if let Some(setup) = &self.creates {
                    put_create_topic(out, numbers.ask(), setup);
                    self.step = Step::Create;
                    return Ok(None);
                }
            }
            Step::Create => {
                let created = read_create_topics(answer, &self.topic);
                let (error, words) = created.map_err(|_| malformed(CREATE_TOPICS))?;
                if error != errors::NONE && error != errors::TOPIC_EXISTS {
                    let name = errors::words(error);
                    let words = words.map_or(String::new(), |words| format!(": {words}"));
                    return Err(kafka(format_args!("the topic is not made, {name}{words}")));
                }
            }
            Step::Metadata => {
                if let Some(partitions) = self.leaders(answer)? {
                    return Ok(Some(partitions));
                }
            }
        }
        put_metadata(out, numbers.ask(), &self.topic);
        self.step = Step::Metadata;
        Ok(None)
    }

    fn versions(&self, answer: &[u8]) -> Result<(), Fault> {
        let mut needed = vec![METADATA];
        needed.extend(self.creates.is_some().then_some(CREATE_TOPICS));
        needed.extend(self.needed);
        let takes = read_api_versions(answer, &needed).map_err(|_| malformed(API_VERSIONS))?;
        takes.map_err(|why| kafka(format_args!("{why}")))
    }

    /// How many partitions the topic has, if each of them has a leader.
    fn leaders(&self, answer: &[u8]) -> Result<Option<u32>, Fault> {
        let found = read_metadata(answer, &self.topic).map_err(|_| malformed(METADATA))?;
        if found.brokers > 1 {
            return Err(kafka(format_args!(
                "the cluster has {} nodes; give one that is alone",
                found.brokers
            )));
        }
        if found.partitions > PARTITIONS_MAX {
            return Err(malformed(METADATA));
        }
        let wanted = self.creates.as_ref().map(|setup| setup.partitions);
        match (found.error, wanted) {
            (errors::UNKNOWN_TOPIC_OR_PARTITION, None) => {
                Err(kafka(format_args!("there is no topic `{}`", self.topic)))
            }
            (error, _) if errors::is_partition_coming(error) => Ok(None),
            (errors::NONE, Some(wanted)) if found.partitions < wanted => Err(kafka(format_args!(
                "the topic has {} partitions, and {wanted} are needed; remove it",
                found.partitions
            ))),
            (errors::NONE, _) => Ok(Some(found.partitions)),
            (error, _) => Err(failed(METADATA, error)),
        }
    }
}

/// The end of the connection.
#[cold]
pub(super) fn kafka(why: std::fmt::Arguments<'_>) -> Fault {
    Fault(format!("Kafka: {why}"))
}

/// The end of the connection by a rule of framing.
#[cold]
pub(super) fn flaw(flaw: Flaw) -> Fault {
    kafka(format_args!("{flaw}"))
}

/// An answer is not what its request asked for.
#[cold]
pub(super) fn malformed(api: Api) -> Fault {
    kafka(format_args!("the answer to {} cannot be read", api.name))
}

/// A request failed for good.
#[cold]
pub(super) fn failed(api: Api, error: i16) -> Fault {
    kafka(format_args!("{}: {}", api.name, errors::words(error)))
}
