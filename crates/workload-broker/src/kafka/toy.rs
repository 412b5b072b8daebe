//! A small broker for tests: one topic in memory. It reads requests and writes answers with the crate `kafka-protocol`, so
//! our bytes are checked against Kafka's own schemas. As Kafka does, it answers the requests of a connection one after the
//! other, and a Fetch without messages holds up those behind it.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiVersionsResponse, BrokerId, CreateTopicsRequest, CreateTopicsResponse, FetchRequest,
    FetchResponse, FindCoordinatorRequest, FindCoordinatorResponse, ListOffsetsRequest,
    ListOffsetsResponse, MetadataRequest, MetadataResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse, ProduceRequest, ProduceResponse,
    RequestHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::{Record, RecordBatchDecoder};

use super::{Reader, Reading, Setup, Writer};
use crate::rig::{Peer, Server};

/// A batch that is stored.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) base: i64,
    pub(super) count: i64,
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    input: Vec<u8>,
    out: Vec<u8>,
}

/// The broker. Its conduct can be changed.
#[derive(Debug, Default)]
pub(super) struct Toy {
    pub(super) lines: Vec<Line>,
    /// The partitions of the topic, once it is created.
    pub(super) logs: Vec<Vec<Stored>>,
    pub(super) settings: Vec<(String, String)>,
    /// The group's offsets by partition.
    pub(super) committed: BTreeMap<i32, i64>,
    /// The requests of each connection.
    pub(super) requests: Vec<(usize, i16)>,
    /// A request that it does not take.
    pub(super) lacks: Option<i16>,
    pub(super) create_error: i16,
    pub(super) is_created: bool,
    /// So many times more a request finds what it asks for in the making.
    pub(super) coming: BTreeMap<i16, u32>,
    pub(super) produce_error: i16,
    pub(super) commit_error: i16,
    pub(super) fetch_error: i16,
    pub(super) nodes: i32,
    /// A Fetch brings no more bytes than this, and the last batch is cut.
    pub(super) fetch_bytes: Option<usize>,
}

pub(super) fn setup(partitions: u32) -> Setup {
    Setup {
        topic: "t".to_owned(),
        partitions,
        syncs_each: false,
        began_ms: 1_700_000_000_000,
    }
}

pub(super) fn shared(number: u32, readers: u32) -> Reading {
    Reading::Shared {
        group: "g".to_owned(),
        number,
        readers,
    }
}

pub(super) fn writer(toy: &mut Toy, partition: u32, confirms: bool) -> Peer<Writer> {
    let writer = Writer::new(setup(4), partition, confirms).unwrap();
    Peer::ready(toy, writer)
}

pub(super) fn reader(toy: &mut Toy, reading: Reading, prefetch: u32) -> Peer<Reader> {
    Peer::ready(toy, Reader::new(setup(4), reading, prefetch).unwrap())
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic() -> TopicName {
    TopicName(text("t"))
}

/// The records of a batch, whose check sum is right.
pub(super) fn records(batch: &[u8]) -> Vec<Record> {
    let mut bytes = Bytes::copy_from_slice(batch);
    let set = RecordBatchDecoder::decode(&mut bytes).expect("a record batch");
    assert!(bytes.is_empty(), "a batch and nothing behind it");
    set.records
}

fn decode<T: Decodable>(mut bytes: Bytes, version: i16) -> T {
    let request = T::decode(&mut bytes, version).expect("a request");
    assert!(!bytes.has_remaining(), "a request and nothing behind it");
    request
}

fn encode<T: Encodable>(answer: &T, version: i16) -> Vec<u8> {
    let mut bytes = bytes::BytesMut::new();
    answer.encode(&mut bytes, version).expect("an answer");
    bytes.to_vec()
}

/// An answer as it is on the wire.
pub(super) fn framed(number: i32, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).unwrap();
    [&length.to_be_bytes()[..], &number.to_be_bytes(), body].concat()
}

/// An answer to Fetch that brings these batches of a partition.
pub(super) fn fetched(partition: i32, error: i16, batches: &[u8]) -> Vec<u8> {
    let of_partition = PartitionData::default()
        .with_partition_index(partition)
        .with_error_code(error)
        .with_records(Some(Bytes::copy_from_slice(batches)));
    let of_topic = FetchableTopicResponse::default()
        .with_topic(topic())
        .with_partitions(vec![of_partition]);
    encode(&FetchResponse::default().with_responses(vec![of_topic]), 4)
}

impl Server for Toy {
    fn connect(&mut self) -> usize {
        self.lines.push(Line::default());
        self.lines.len() - 1
    }

    fn received(&mut self, line: usize, bytes: &[u8]) {
        self.lines[line].input.extend_from_slice(bytes);
        self.turn(line, false);
        // What came may be what a Fetch of another connection waits for.
        for line in 0..self.lines.len() {
            self.turn(line, false);
        }
    }

    fn written(&mut self, line: usize) -> Vec<u8> {
        std::mem::take(&mut self.lines[line].out)
    }
}

impl Toy {
    /// Says something out of turn.
    pub(super) fn say(&mut self, line: usize, bytes: &[u8]) {
        self.lines[line].out.extend_from_slice(bytes);
    }

    /// The time of a waiting Fetch is over.
    pub(super) fn expire(&mut self, line: usize) {
        self.turn(line, true);
    }

    /// The values that a partition keeps.
    pub(super) fn values(&self, partition: usize) -> Vec<Vec<u8>> {
        let batches = self.logs[partition].iter();
        let records = batches.flat_map(|batch| records(&batch.bytes));
        records
            .map(|record| record.value.expect("a value").to_vec())
            .collect()
    }

    /// Stores a batch that a client wrote.
    pub(super) fn store(&mut self, partition: usize, batch: &[u8]) -> i64 {
        let count = i64::try_from(records(batch).len()).unwrap();
        let base = self.end(partition);
        let mut bytes = batch.to_vec();
        bytes[..8].copy_from_slice(&base.to_be_bytes());
        self.logs[partition].push(Stored { base, count, bytes });
        base
    }

    fn end(&self, partition: usize) -> i64 {
        let last = self.logs[partition].last();
        last.map_or(0, |last| last.base + last.count)
    }

    /// Whether that is still being made which this request asks for.
    fn is_coming(&mut self, key: i16) -> bool {
        let times = self.coming.entry(key).or_default();
        let is_coming = *times > 0;
        *times = times.saturating_sub(1);
        is_coming
    }

    /// Answers the requests of a connection, up to a Fetch that must wait.
    fn turn(&mut self, line: usize, mut is_expired: bool) {
        loop {
            let input = &self.lines[line].input;
            let Some(length) = input.first_chunk::<4>() else {
                return;
            };
            let end = 4 + usize::try_from(i32::from_be_bytes(*length)).expect("a length");
            let Some(request) = input.get(4..end) else {
                return;
            };
            let mut request = Bytes::copy_from_slice(request);
            let header = RequestHeader::decode(&mut request, 1).expect("a header");
            assert_eq!(header.client_id, Some(text("plimsoll")));
            let (key, version) = (header.request_api_key, header.request_api_version);
            let Some(answer) = self.answer(key, version, request, is_expired) else {
                return;
            };
            is_expired = false;
            self.requests.push((line, key));
            let line = &mut self.lines[line];
            line.input.drain(..end);
            // Nobody answers a Produce with acks=0.
            if !answer.is_empty() {
                line.out.extend(framed(header.correlation_id, &answer));
            }
        }
    }

    /// The answer; `None` if it must wait.
    fn answer(
        &mut self,
        key: i16,
        version: i16,
        request: Bytes,
        is_expired: bool,
    ) -> Option<Vec<u8>> {
        Some(match key {
            0 => self.produce(&decode(request, version), version),
            1 => return self.fetch(&decode(request, version), version, is_expired),
            2 => self.list_offsets(&decode(request, version), version),
            3 => self.metadata(&decode(request, version), version),
            8 => self.commit(&decode(request, version), version),
            9 => self.offsets(&decode(request, version), version),
            10 => {
                let request: FindCoordinatorRequest = decode(request, version);
                assert_eq!(request.key, text("g"));
                let error = if self.is_coming(10) { 15 } else { 0 };
                let answer = FindCoordinatorResponse::default().with_error_code(error);
                encode(&answer, version)
            }
            18 => {
                assert!(request.is_empty());
                encode(&self.api_versions(), version)
            }
            19 => self.create(&decode(request, version), version),
            other => panic!("request {other}"),
        })
    }

    /// The versions that Kafka 4 takes.
    fn api_versions(&self) -> ApiVersionsResponse {
        let known = [
            (0, 3, 13),
            (1, 4, 18),
            (2, 1, 11),
            (3, 0, 13),
            (8, 2, 10),
            (9, 1, 10),
            (10, 0, 6),
            (18, 0, 4),
            (19, 2, 7),
        ];
        let known = known.into_iter().map(|(key, least, most)| {
            let least = if self.lacks == Some(key) { most } else { least };
            ApiVersion::default()
                .with_api_key(key)
                .with_min_version(least)
                .with_max_version(most)
        });
        ApiVersionsResponse::default().with_api_keys(known.collect())
    }

    fn create(&mut self, request: &CreateTopicsRequest, version: i16) -> Vec<u8> {
        let wanted = &request.topics[0];
        assert!(request.topics.len() == 1 && wanted.name == topic() && !request.validate_only);
        assert!(wanted.replication_factor == 1 && wanted.assignments.is_empty());
        let error = match self.create_error {
            0 if self.is_created => 36,
            error => error,
        };
        if error == 0 {
            self.is_created = true;
            let partitions = usize::try_from(wanted.num_partitions).unwrap();
            self.logs = vec![Vec::new(); partitions];
            let settings = wanted.configs.iter().map(|setting| {
                let value = setting.value.as_ref().expect("a value");
                (setting.name.to_string(), value.to_string())
            });
            self.settings = settings.collect();
        }
        let words = (error != 0).then(|| text("the broker's words"));
        let result = CreatableTopicResult::default()
            .with_name(topic())
            .with_error_code(error)
            .with_error_message(words);
        encode(
            &CreateTopicsResponse::default().with_topics(vec![result]),
            version,
        )
    }

    fn metadata(&mut self, request: &MetadataRequest, version: i16) -> Vec<u8> {
        assert!(!request.allow_auto_topic_creation);
        let asked = request.topics.as_ref().expect("a topic");
        assert_eq!(asked[0].name, Some(topic()));
        let leader = if self.is_coming(3) { -1 } else { 1 };
        let partitions = (0..).zip(&self.logs).map(|(index, _)| {
            MetadataResponsePartition::default()
                .with_partition_index(index)
                .with_leader_id(BrokerId(leader))
                .with_replica_nodes(vec![BrokerId(1)])
                .with_isr_nodes(vec![BrokerId(1)])
        });
        let of_topic = MetadataResponseTopic::default()
            .with_name(Some(topic()))
            .with_error_code(if self.is_created { 0 } else { 3 })
            .with_partitions(partitions.collect());
        let nodes = (1..=self.nodes.max(1)).map(|id| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(id))
                .with_host(text("127.0.0.1"))
                .with_port(9092)
        });
        let answer = MetadataResponse::default()
            .with_brokers(nodes.collect())
            .with_cluster_id(Some(text("toy")))
            .with_controller_id(BrokerId(1))
            .with_topics(vec![of_topic]);
        encode(&answer, version)
    }

    fn list_offsets(&mut self, request: &ListOffsetsRequest, version: i16) -> Vec<u8> {
        assert_eq!(request.replica_id, BrokerId(-1));
        let error = if self.is_coming(2) { 6 } else { 0 };
        let partitions = request.topics[0].partitions.iter().map(|partition| {
            let index = partition.partition_index;
            let log = usize::try_from(index).unwrap();
            let offset = match partition.timestamp {
                -1 => self.end(log),
                -2 => self.logs[log].first().map_or(0, |first| first.base),
                other => panic!("a time of {other}"),
            };
            ListOffsetsPartitionResponse::default()
                .with_partition_index(index)
                .with_error_code(error)
                .with_offset(if error == 0 { offset } else { -1 })
        });
        let of_topic = ListOffsetsTopicResponse::default()
            .with_name(topic())
            .with_partitions(partitions.collect());
        encode(
            &ListOffsetsResponse::default().with_topics(vec![of_topic]),
            version,
        )
    }

    fn offsets(&mut self, request: &OffsetFetchRequest, version: i16) -> Vec<u8> {
        assert_eq!(request.group_id.0, text("g"));
        let error = if self.is_coming(9) { 14 } else { 0 };
        let asked = request.topics.as_ref().expect("a topic");
        let partitions = asked[0].partition_indexes.iter().map(|index| {
            let offset = self.committed.get(index).copied().unwrap_or(-1);
            OffsetFetchResponsePartition::default()
                .with_partition_index(*index)
                .with_committed_offset(if error == 0 { offset } else { -1 })
                .with_error_code(error)
        });
        let of_topic = OffsetFetchResponseTopic::default()
            .with_name(topic())
            .with_partitions(partitions.collect());
        encode(
            &OffsetFetchResponse::default().with_topics(vec![of_topic]),
            version,
        )
    }

    fn commit(&mut self, request: &OffsetCommitRequest, version: i16) -> Vec<u8> {
        assert_eq!(request.group_id.0, text("g"));
        assert_eq!(request.generation_id_or_member_epoch, -1);
        assert!(request.member_id.is_empty());
        let mut answers = Vec::new();
        for partition in &request.topics[0].partitions {
            if self.commit_error == 0 {
                self.committed
                    .insert(partition.partition_index, partition.committed_offset);
            }
            answers.push(
                OffsetCommitResponsePartition::default()
                    .with_partition_index(partition.partition_index)
                    .with_error_code(self.commit_error),
            );
        }
        let of_topic = OffsetCommitResponseTopic::default()
            .with_name(topic())
            .with_partitions(answers);
        encode(
            &OffsetCommitResponse::default().with_topics(vec![of_topic]),
            version,
        )
    }

    fn produce(&mut self, request: &ProduceRequest, version: i16) -> Vec<u8> {
        assert_eq!(request.transactional_id, None);
        let [of_topic] = &request.topic_data[..] else {
            panic!("one topic");
        };
        let [data] = &of_topic.partition_data[..] else {
            panic!("one partition");
        };
        assert_eq!(of_topic.name, topic());
        let log = usize::try_from(data.index).unwrap();
        let mut base = -1;
        if self.produce_error == 0 {
            base = self.store(log, data.records.as_ref().expect("a batch"));
        }
        if request.acks == 0 {
            return Vec::new();
        }
        assert_eq!(request.acks, -1);
        let partition = PartitionProduceResponse::default()
            .with_index(data.index)
            .with_error_code(self.produce_error)
            .with_base_offset(base);
        let of_topic = TopicProduceResponse::default()
            .with_name(topic())
            .with_partition_responses(vec![partition]);
        encode(
            &ProduceResponse::default().with_responses(vec![of_topic]),
            version,
        )
    }

    fn fetch(&mut self, request: &FetchRequest, version: i16, is_expired: bool) -> Option<Vec<u8>> {
        assert_eq!((request.min_bytes, request.max_wait_ms), (1, 100));
        let mut is_empty = true;
        let mut partitions = Vec::new();
        for partition in &request.topics[0].partitions {
            let log = &self.logs[usize::try_from(partition.partition).unwrap()];
            let from = partition.fetch_offset;
            let wanted = log.iter().filter(|batch| batch.base + batch.count > from);
            let most = usize::try_from(partition.partition_max_bytes).unwrap();
            let most = self.fetch_bytes.unwrap_or(most);
            let mut bytes = Vec::new();
            for batch in wanted {
                // The first batch comes whole, and a later one is cut.
                let room = most.saturating_sub(bytes.len()).min(batch.bytes.len());
                let taken = if bytes.is_empty() {
                    batch.bytes.len()
                } else {
                    room
                };
                bytes.extend_from_slice(&batch.bytes[..taken]);
                if taken < batch.bytes.len() {
                    break;
                }
            }
            is_empty &= bytes.is_empty();
            partitions.push(
                PartitionData::default()
                    .with_partition_index(partition.partition)
                    .with_error_code(self.fetch_error)
                    .with_high_watermark(log.last().map_or(0, |last| last.base + last.count))
                    .with_records(Some(bytes.into())),
            );
        }
        if is_empty && !is_expired && self.fetch_error == 0 {
            return None;
        }
        let of_topic = FetchableTopicResponse::default()
            .with_topic(request.topics[0].topic.clone())
            .with_partitions(partitions);
        Some(encode(
            &FetchResponse::default().with_responses(vec![of_topic]),
            version,
        ))
    }
}
