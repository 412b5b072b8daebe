//! What gateways ask of their inference server, for a load on that server alone (`docs/stt/contract.md`, section 5).

use plimsoll_core::record::ServerWords;
use plimsoll_workload::calibrate::Sessions;
use plimsoll_workload::companion::program::Control;
use plimsoll_workload::{BackEndLoad, Refusal};
use plimsoll_workload_http::check::Protocol;
use plimsoll_workload_http::h1::NumberedBody;
use plimsoll_workload_http::posts::{Judge, Posts};

use crate::InferenceTransport;
use crate::plan::{CPU_PASSES, NEWEST_P95_MS};
use crate::reference::{Answer, compute};
use crate::simulator::Stats;
use crate::synthetic::FRAME_BYTES;

/// A batch has a second of audio: 50 frames of 20 ms.
const BATCH_BYTES: usize = 50 * FRAME_BYTES;
/// The most requests at once on a connection of HTTP/2. Servers usually allow 100.
const STREAMS: u32 = 100;
/// The fewest connections of the pool. There must be one for each thread of the client.
const CONNECTIONS_MIN: u32 = 8;
/// The content of one answer in so many is recomputed: each costs the client as much as it costs the simulator.
const RECOMPUTED_EVERY: u64 = 64;

/// One batch per gateway session per second.
#[derive(Debug)]
pub(crate) struct Batches;

impl BackEndLoad for Batches {
    fn batch_bytes(&self) -> usize {
        BATCH_BYTES
    }

    /// The p99 of a batch may be what the gateway's p95 may be. So the back end alone never makes a gateway fail that gate,
    /// and the gateway has the rest of the time.
    fn p99_limit_ms(&self) -> f64 {
        NEWEST_P95_MS
    }

    fn sessions(&self, load: u32, transport: &str, host: &str) -> Result<Sessions, Refusal> {
        let transport = InferenceTransport::by_name(transport).ok_or_else(|| {
            Refusal(format!(
                "--inference-transport {transport}: write h2c or http1"
            ))
        })?;
        let passes = CPU_PASSES.to_string();
        let posts = Posts {
            protocol: match transport {
                InferenceTransport::H2c => Protocol::H2c,
                InferenceTransport::Http1 => Protocol::H1,
            },
            host,
            path: "/infer",
            fields: &[
                ("content-type", "application/octet-stream"),
                ("x-cpu-passes", &passes),
            ],
            per_s: load,
            streams: STREAMS,
            judge: judge(NumberedBody::new(BATCH_BYTES)),
            body_bytes: BATCH_BYTES,
        };
        Ok(Sessions {
            machines: posts.machines()?,
            count: connections(load, transport),
        })
    }

    fn says(&self, url: &str) -> Option<ServerWords> {
        let stats: Stats = Control::at(url).stats().ok()?;
        Some(ServerWords {
            requests: stats.requests,
            busy_share: stats.busy_share(),
            queue_wait: stats.queue_wait.into(),
            answer_lateness: stats.answer_lateness.into(),
        })
    }

    fn begin_window(&self, url: &str) {
        // If it fails, what the server says covers more, and is still what it says.
        let _ = Control::at(url).reset_stats();
    }
}

/// Connections that are enough for twice the batches that are under way if each takes as long as the limit allows. So a
/// pool without a free connection means a server that is late anyway.
fn connections(load: u32, transport: InferenceTransport) -> u32 {
    let under_way = 2.0 * f64::from(load) * NEWEST_P95_MS / 1e3;
    let each = match transport {
        InferenceTransport::H2c => f64::from(STREAMS),
        InferenceTransport::Http1 => 1.0,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of connections, far below 2^32"
    )]
    let connections = (under_way / each).ceil() as u32;
    connections.max(CONNECTIONS_MIN)
}

/// An answer is the contract's strict JSON, for as much audio as was sent. Some are recomputed.
fn judge(body: NumberedBody) -> Judge {
    Judge::new(move |number, answer| {
        let Ok(answer) = Answer::from_json(answer) else {
            return false;
        };
        let is_whole = answer.audio_bytes == BATCH_BYTES as u64;
        let is_right = || compute(&body.to_vec(number), CPU_PASSES).as_ref() == Ok(&answer);
        is_whole && (!number.is_multiple_of(RECOMPUTED_EVERY) || is_right())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &[u8]) -> Vec<u8> {
        let answer = compute(body, CPU_PASSES).expect("whole samples");
        serde_json::to_vec(&answer).expect("JSON")
    }

    #[test]
    fn a_batch_is_a_second_of_audio_and_no_two_are_the_same() {
        let body = NumberedBody::new(BATCH_BYTES);
        assert_eq!(body.len(), 16_000 * 2);
        assert_ne!(body.to_vec(1), body.to_vec(2));
    }

    #[test]
    fn only_the_contracts_answer_is_taken() {
        let body = NumberedBody::new(BATCH_BYTES);
        let judge = judge(body.clone());
        assert!(judge.takes(64, &answer(&body.to_vec(64))));
        // The answer to another batch is seen where the content is recomputed.
        assert!(!judge.takes(64, &answer(&body.to_vec(63))));
        assert!(judge.takes(65, &answer(&body.to_vec(63))));
        assert!(!judge.takes(65, &answer(&body.to_vec(65)[..640])));
        assert!(!judge.takes(65, b"{}"));
        assert!(!judge.takes(65, b""));
    }

    #[test]
    fn there_are_connections_for_twice_what_the_limit_lets_be_under_way() {
        use InferenceTransport::{H2c, Http1};
        assert_eq!(connections(10, Http1), CONNECTIONS_MIN);
        assert_eq!(connections(1_000, Http1), 700);
        assert_eq!(connections(10_000, H2c), 70);
    }

    #[test]
    fn an_unknown_transport_is_refused_with_those_that_there_are() {
        let sessions = |transport| Batches.sessions(10, transport, "127.0.0.1:9000");
        let refusal = sessions("grpc").err().expect("a refusal").to_string();
        assert!(refusal.contains("h2c or http1"), "{refusal}");
        assert!(sessions("h2c").is_ok_and(|it| it.count == CONNECTIONS_MIN));
    }

    /// Nobody listens: nothing is said, and nothing fails.
    #[test]
    fn a_server_that_is_not_there_says_nothing() {
        Batches.begin_window("http://127.0.0.1:1");
        assert_eq!(Batches.says("http://127.0.0.1:1"), None);
    }
}
