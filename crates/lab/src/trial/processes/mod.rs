//! A client of several processes, for more connections than one process has descriptors for. Every workload can have one.
//!
//! The command starts itself again, with a subcommand that users do not see. Each process drives its part of the
//! sessions with the engine. The command itself drives none. It merges what the processes report, as the engine merges
//! what its threads report, and settles what the sessions claim.
//!
//! - [`division`]: how many processes, and what each does;
//! - [`parent`]: starts the processes, begins with all of them at once, merges, ends them;
//! - [`child`]: one of the processes.
//!
//! They exchange lines of JSON. The command first writes an [`Order`]. When every process is ready, it writes the clock
//! by which all begin. When every process has its answers, it writes that all may end. A process writes what [`Said`]
//! lists. The end of its input tells it to stop: the command closes the input when it is asked to stop, and the kernel
//! closes it when the command dies.

mod child;
mod division;
mod parent;

use std::io::{BufRead, Write};

use plimsoll_engine::{EngineSecond, Options, Unsettled};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::work::Work;

pub use child::serve;
pub use division::PROCESSES_MAX;
pub(super) use division::{processes_for, shares};
pub(super) use parent::ClientProcesses;

/// The subcommand with which the command starts itself as a client process.
pub const SUBCOMMAND: &str = "engine";

/// What one process has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) options: Options,
    pub(super) work: Work,
}

/// Tells a process that it may end.
#[derive(Debug, Serialize, Deserialize)]
struct End;

/// What a process says.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// All of its sessions are built.
    Ready,
    /// A second is over.
    Second(Box<EngineSecond>),
    /// Every measured frame is answered.
    Settled,
    /// It is done. What its sessions claim is settled when all are.
    Report(Box<Unsettled<Value>>),
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
