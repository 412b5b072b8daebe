//! A client in several parts: processes of this machine, for more connections than one process has descriptors for, or
//! agents on other machines. Every workload can have them.
//!
//! Each part drives its sessions with the engine. The command itself drives none. It merges what the parts report, as the
//! engine merges what its threads report, and settles what the sessions claim.
//!
//! - [`division`]: how many processes, and what each does;
//! - [`coordinator`]: begins with all parts at once, merges, ends them;
//! - [`process`]: a part that is a process: the command starts itself again, with a subcommand that users do not see;
//! - [`part`]: what a part does, in a process or in an agent.
//!
//! They exchange JSON: with a process lines over its pipes, with an agent messages over its control connection. A part is
//! told what [`Told`] lists, and says what [`Said`] lists. The end of its input tells a process to stop: the command closes the
//! input when it is asked to stop, and the kernel closes it when the command dies.

mod coordinator;
mod division;
mod part;
mod process;

use std::io::{BufRead, Write};
use std::net::SocketAddr;

use plimsoll_engine::{EngineSecond, Options, Unsettled};
use plimsoll_host::resources::Recorded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::work::Work;
use crate::calibrate::{CalibrationStep, Found, Task};
use crate::fleet::{Looked, Seen};

pub(crate) use coordinator::Heard;
pub(super) use coordinator::Parts;
pub use division::PROCESSES_MAX;
pub(super) use division::{processes_for, shares};
pub(crate) use part::{Cues, Ear, Others, drive};
pub use process::serve;

/// The subcommand with which the command starts itself as a client process.
pub const SUBCOMMAND: &str = "engine";

/// What one part has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) options: Options,
    pub(crate) work: Work,
}

/// What a part is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    /// What it has to do.
    Order(Box<Order>),
    /// When the trial begins, in nanoseconds of its own monotonic clock.
    Begin {
        /// That moment.
        monotonic_ns: u64,
    },
    /// Every part has its answers: it may end.
    End,
    /// It is to stop, and to report what it has.
    Stop,
    /// There will be no further order. Only agents are told.
    Bye,
    /// To calibrate its own client, against a sink of its own. Only agents are told.
    Calibrate(Box<Task>),
    /// To say what the server is that listens there. Only an observer is told.
    Look {
        /// The target's address.
        address: SocketAddr,
    },
    /// To sample that server until it is told to stop. Only an observer is told.
    Watch {
        /// The target's address.
        address: SocketAddr,
        /// The moment that the samples' times count from, in nanoseconds of its own monotonic clock.
        epoch_ns: u64,
    },
}

/// What a part says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    /// It will not do what it was told, for this reason. Only agents say so.
    Refused(String),
    /// All of its sessions are built.
    Ready,
    /// A second is over.
    Second(Box<EngineSecond>),
    /// Every measured frame is answered.
    Settled,
    /// Some of what its sessions claim. It is settled when all parts are done.
    Claims(Vec<Value>),
    /// It is done.
    Report(Box<Reported>),
    /// A step of its calibration.
    Stepped(CalibrationStep),
    /// What its calibration found.
    Calibrated(Box<Found>),
    /// What the target is now, as an observer sees it.
    Looked(Box<Looked>),
    /// What an observer sampled since it said this last.
    Sampled(Box<Recorded>),
    /// An observer has said all that it sampled.
    Watched,
}

/// What a part reports last. Its claims were said before.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reported {
    pub(crate) part: Unsettled<Value>,
    /// What an agent saw of its own machine.
    pub(crate) seen: Option<Seen>,
}

fn write_line(to: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads the next line; an error at the end of the input.
fn read_line<T: DeserializeOwned>(from: &mut impl BufRead) -> std::io::Result<T> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use plimsoll_engine::Part;

    #[test]
    fn an_order_comes_as_it_was_written() {
        let address = "[::1]:9".parse().expect("an address");
        for (work, _) in super::super::work::tests::all(address) {
            let order = Order {
                options: Options {
                    address,
                    sessions: 40_000,
                    part: Part { index: 1, of: 3 },
                    profile: Profile::soak(),
                    seed: u64::MAX,
                    nodelay: true,
                    cpus: vec![0, 7],
                    tick_us: 500,
                    source_addresses: vec!["127.0.0.2".parse().expect("an address")],
                    send_buffer_bytes: 32_768,
                },
                work,
            };
            let mut line = Vec::new();
            write_line(&mut line, &order).expect("written");
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let mut from = line.as_slice();
            let read: Order = read_line(&mut from).expect("read");
            assert_eq!(format!("{read:?}"), format!("{order:?}"));
            let end = read_line::<Order>(&mut from).expect_err("the end");
            assert_eq!(end.kind(), std::io::ErrorKind::UnexpectedEof);
        }
    }
}
