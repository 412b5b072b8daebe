//! What processes use: a target, ourselves, or the whole machine.
//!
//! ```text
//! parse     the texts of /proc
//! members   counters summed over processes that come and go, never running backwards
//! sampler   one sample of a target: from its control group, or from its process tree
//! process_io  what processes wrote, summed
//! series    samples over time, and what was used between two moments
//! sockets   the target's ends of its connections: queues, retransmits
//! monitor   a thread that samples at 10 Hz
//! cpu_times the machine's CPUs: busy, idle, stolen
//! open_waits waits for a CPU that have not ended
//! others    other programs that may run on our CPUs, and how much they ran
//! run_queue how long a process tree waited for a core, read often
//! ```

mod cpu_times;
mod members;
mod monitor;
mod open_waits;
mod others;
mod parse;
mod process_io;
mod run_queue;
mod sampler;
mod series;
mod sockets;

pub use cpu_times::{CpuTimes, Passed, Ticks};
pub(crate) use monitor::thread_cpu;
pub use monitor::{DEFAULT_INTERVAL, Monitor, Recorded, Watched};
pub use others::Others;
pub use process_io::{ProcessIo, Written, kernel_writers_cpu_us};
pub use run_queue::{RunQueue, Waited};
pub(crate) use sampler::waited_for_cpu;
pub use sampler::{Detail, Memory, Sample, Sampler, Source, process_cpu_us};
pub use series::{MachineSeries, Series, Usage};
pub(crate) use sockets::{LISTEN, procfs};
pub use sockets::{SocketSample, SocketSeries, SocketWatch};
