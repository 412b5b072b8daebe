//! Isolation: the target gets its CPUs and its share of time, the client keeps the rest, and a result records what
//! enforced it.
//!
//! ```text
//! cpus    CPU lists, and which go to whom
//! awake   CPUs that do not halt
//! layout  which control group controllers this machine has, and where (version 1, version 2, or both)
//! cgroup  one group for one target: made, joined, emptied, removed
//! means   by which means the target is isolated and measured, and what is missing
//! network a network namespace for one target, and the virtual cards that join it to ours
//! offloads what a network card does in place of the kernel's stack
//! receive who works on the packets that come to a network card
//! sweep   what a killed run left behind: groups and what is in them, cards, folders of data, images
//! v1, v2  how each version makes such a group
//! view    reading any group: CPU time, memory, processes
//! limits  what limits a group, itself or from above: quota and throttling, memory limit and its events
//! ```

mod awake;
mod cgroup;
mod cpus;
mod layout;
mod limits;
mod means;
mod network;
mod offloads;
mod receive;
mod sweep;
mod v1;
mod v2;
mod view;

pub use awake::Awake;
pub use cgroup::{Cgroup, DEFAULT_PERIOD_US};
pub use cpus::{Bound, CpuList, Placement, siblings_of, whole_cpus};
pub use layout::{Controller, Hierarchy, Layout};
pub use limits::{GroupLimits, Throttling};
pub use means::{How, Means, Missing, Wanted};
pub use network::{OwnNetwork, can_be_own, no_own_network};
pub(crate) use receive::threads as receive_threads;
pub use sweep::{Swept, sweep_stale};
pub use view::{GroupCpu, GroupMemory, GroupView};
