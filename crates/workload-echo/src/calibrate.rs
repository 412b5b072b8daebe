//! What a message that comes back costs the client.

use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_protocol::server::{Echo, Upgraded};
use plimsoll_protocol::websocket::{Opcode, append_client_frame, upgrade_request};
use plimsoll_workload::calibrate::{Answers, Flow, Messages, Opening, Server, Sessions};
use plimsoll_workload::{Work, machines};

use crate::{EchoDialogue, Echoes, MASK, MESSAGE_BYTES};

/// Sessions on which the cost is measured, if their messages are short.
const USUAL_SESSIONS: u32 = 1_000;
/// Time between two messages of a session, whatever the load's own pace is: the core must be busy, because a frame
/// costs twice as much if the core sleeps after each one.
const PERIOD_MS: u64 = 20;
/// Messages of a session each second.
const PER_SECOND: u32 = (NS_PER_S / (PERIOD_MS * NS_PER_MS)) as u32;
/// About what a core can send and take back in that time. Longer messages get fewer sessions.
const BYTES_PER_PERIOD: usize = 4_000_000;
/// Time between two looks of the sink.
const PACE: Duration = Duration::from_millis(1);

/// What is measured of the workload: messages of the usual size.
pub(crate) static WORKS: [&dyn Work; 1] = [&EchoedMessages {
    message_bytes: MESSAGE_BYTES,
}];

/// Messages that come back, each in its own write.
#[derive(Debug)]
pub(crate) struct EchoedMessages {
    pub(crate) message_bytes: usize,
}

impl Work for EchoedMessages {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::MESSAGES_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        amount.saturating_mul(PER_SECOND)
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(self.message_bytes)
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_SESSIONS
    }

    fn amount(&self, sessions: u32) -> u32 {
        let fit = (BYTES_PER_PERIOD / self.message_bytes.max(1)).max(1);
        sessions.min(u32::try_from(fit).unwrap_or(u32::MAX))
    }

    fn flow(&self, amount: u32) -> Flow {
        let mut frame = Vec::new();
        let message = EchoDialogue::new(0, self.message_bytes).message;
        append_client_frame(&mut frame, true, Opcode::Binary, &message, MASK);
        let request = upgrade_request("127.0.0.1", "/", [7; 16], &[])
            .unwrap_or_else(|error| unreachable!("the request is always the same: {error}"));
        Flow::Messages(Messages {
            connections: amount,
            period_ns: PERIOD_MS * NS_PER_MS,
            frame,
            number: None,
            share_a_write: false,
            answers: Answers::Read(Opening {
                request,
                answer_end: b"\r\n\r\n",
            }),
        })
    }

    fn server(&self) -> Server {
        Server::new(PACE, || Upgraded::new(Echo::default()))
    }

    fn sessions(&self, amount: u32, to: Endpoint, _profile: &Profile) -> Sessions {
        Sessions {
            machines: machines(Echoes::new(to, self.message_bytes, PERIOD_MS)),
            count: amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_get_fewer_sessions() {
        let amount = |message_bytes| EchoedMessages { message_bytes }.amount(1_000);
        assert_eq!((amount(128), amount(4_000)), (1_000, 1_000));
        assert_eq!((amount(40_000), amount(1 << 20)), (100, 3));
        assert_eq!(amount(usize::MAX), 1);
    }

    #[test]
    fn a_flow_makes_its_load() {
        let work = WORKS[0];
        assert_eq!(work.load(10), 500);
        assert!((work.flow(10).per_second() - 500.0).abs() < 1e-9);
    }
}
