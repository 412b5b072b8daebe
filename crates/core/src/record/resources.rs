//! What each of the three parties used: the load engine, the target and what runs beside it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LagQuantiles;

/// The load engine's own cost and lateness over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// CPU time of the engine threads per frame written: sending, receiving and accounting.
    pub cpu_us_per_frame: Option<f64>,
    /// The part of it that TLS took: encryption and decryption, without handshakes. Estimated from one write and one read
    /// in 64; `null` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_us_per_frame: Option<f64>,
    /// CPU time of a session's whole handshake with TLS on the client's side, mean over the trial; `null` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_handshake_us: Option<f64>,
    /// CPU time of all its processes per session-second, as `cpu_us_per_session_second` of the target counts it: for a
    /// rate, per message or connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_session_second: Option<f64>,
    /// Share of the engine's busiest core that its threads used: one thread, or one thread of each process if several
    /// processes share a core.
    pub cpu_share: f64,
    /// Write time minus schedule, without waits for the target.
    pub send_lag: LagQuantiles,
    /// Time that due frames waited for the target: its socket was full, or the protocol demanded an answer first.
    pub send_wait: LagQuantiles,
    /// Share of CPU time that the hypervisor took from the client's cores.
    pub steal_share: Option<f64>,
    /// Faults of the client's own machine by name (`EMFILE`, …): never charged to the target.
    pub faults: BTreeMap<String, u64>,
    /// Share of the frames due in the window that the client wrote in time or that the target did not take. The client
    /// failed to deliver the rest.
    #[serde(default)]
    pub achieved_share: Option<f64>,
    /// Time that the busiest engine thread was ready and waited for its core, as a share of the window.
    #[serde(default)]
    pub run_queue_wait_share: Option<f64>,
    /// Share of the window in which a kernel thread that receives packets on the client's cores was ready and waited for
    /// its core. The client reads late by as much.
    #[serde(default)]
    pub receive_wait_share: Option<f64>,
    /// Share of the time of the client's cores in which they were not idle: engine, simulator, sampling, received packets
    /// and whatever else ran there.
    #[serde(default)]
    pub cores_awake_share: Option<f64>,
    /// How many of the client's CPUs were kept from halting; `null` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_kept_awake: Option<usize>,
    /// The command's own process, including engine threads and sampling, plus the other processes of the client if it
    /// had several.
    #[serde(default)]
    pub resources: Option<ProcessResources>,
    /// Number of processes that shared the sessions, not counting the command; `null` if the command drove them itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// The agents that drove the load, by their numbers; none if the command or its processes drove it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
}

/// An agent's share of a trial, and how it fared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Its number, from 0: of n agents, it drives the sessions with this number, this number + n, and so on.
    pub index: u32,
    /// The name of its machine.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// CPUs that it may use: an engine thread runs on each.
    pub cpus: usize,
    /// Its sessions.
    pub sessions: u64,
    /// How wrong its clock may be beside the coordinator's: half the shortest round trip of the probes, and the drift since the
    /// trial began.
    pub clock_error_us: f64,
    /// As `cpu_us_per_frame` of the client.
    pub cpu_us_per_frame: Option<f64>,
    /// As `cpu_share` of the client.
    pub cpu_share: f64,
    /// As `send_lag` of the client.
    pub send_lag: LagQuantiles,
    /// As `send_wait` of the client.
    pub send_wait: LagQuantiles,
    /// As `run_queue_wait_share` of the client.
    pub run_queue_wait_share: Option<f64>,
    /// Time before the window that the busiest engine thread was ready and waited for its core, as a share of it.
    pub opening_wait_share: Option<f64>,
    /// As `receive_wait_share` of the client.
    pub receive_wait_share: Option<f64>,
    /// As `steal_share` of the client.
    pub steal_share: Option<f64>,
    /// As `faults` of the client.
    pub faults: BTreeMap<String, u64>,
    /// Its own process, with engine threads and the control connection.
    pub resources: Option<ProcessResources>,
    /// Why it did not carry its part to the end, as a clause; `null` if it did.
    pub lost: Option<String>,
}

impl Agent {
    /// Whether one of them did not carry its part to the end.
    #[must_use]
    pub fn one_is_lost(agents: &[Self]) -> bool {
        agents.iter().any(|agent| agent.lost.is_some())
    }

    /// Its number and its machine, as texts name it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} ({})", self.index, self.host)
    }
}

/// An agent beside the target that sampled it, and drove nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observer {
    /// The name of its machine.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// As `clock_error_us` of an agent: the window of its samples may be this far from the load's.
    pub clock_error_us: f64,
    /// Why it did not watch to the end, as a clause; `null` if it did.
    pub lost: Option<String>,
}

/// The target's resources over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetResources {
    /// CPU time per session-second, as charged to the target: the time that its own threads ran.
    pub cpu_us_per_session_second: Option<f64>,
    /// Busy time of the target's CPUs per session-second: its threads, others' threads, the packets that came to it,
    /// and waking up. `null` unless the target had whole CPUs to itself.
    #[serde(default)]
    pub core_us_per_session_second: Option<f64>,
    /// CPU time as a share of what the target was given (of one core, if that is unknown).
    pub cpu_share: f64,
    /// CPU time in user mode.
    pub cpu_user_us: u64,
    /// CPU time in kernel mode.
    pub cpu_system_us: u64,
    /// The peak resident set.
    pub rss_peak_bytes: u64,
    /// What memory it had at moments of the trial, besides the peak; `null` in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<TargetMemory>,
    /// Resident set at the end of the window, minus that before the first session, per session; `null` if it did not
    /// grow.
    pub rss_bytes_per_session: Option<f64>,
    /// Share of quota periods in which the target was throttled.
    pub throttled_share: Option<f64>,
    /// Time that its threads waited for a core, as a share of the window; can exceed 1 with several threads.
    pub run_queue_wait_share: Option<f64>,
    /// Share of the window in which a kernel thread that receives packets on the target's CPUs was ready and waited for
    /// its CPU.
    #[serde(default)]
    pub receive_wait_share: Option<f64>,
    /// CPU time of other programs on the target's CPUs, as a share of all the time of these CPUs; `null` if it is
    /// unknown on which CPUs the target runs. What the kernel wrote to disks for a target with data is not in it.
    #[serde(default)]
    pub others_cpu_share: Option<f64>,
    /// CPU time that the kernel took at most on the target's CPUs to write to disks, as the same share; `null` for a
    /// target without data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_writes_cpu_share: Option<f64>,
    /// Where these numbers come from: `cgroup v1`, `cgroup v2` or `process tree`.
    pub source: String,
    /// Average number of busy CPUs.
    #[serde(default)]
    pub cpus_busy: Option<f64>,
    /// How many CPUs it may run on; `null` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_allowed: Option<f64>,
    /// How often per second a thread gave up its CPU.
    #[serde(default)]
    pub voluntary_switches_per_s: Option<f64>,
    /// How often per second a CPU was taken from a thread.
    #[serde(default)]
    pub involuntary_switches_per_s: Option<f64>,
    /// The most open files.
    #[serde(default)]
    pub fds_peak: Option<u64>,
    /// The most threads.
    #[serde(default)]
    pub threads_peak: Option<u64>,
    /// The memory that it may use, if a control group limits it: the lowest limit of its group and of the groups above.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// How often in the window the memory controller of the limiting group had to refuse or reclaim memory, including
    /// killed processes.
    #[serde(default)]
    pub memory_pressure_events: Option<u64>,
    /// The target's ends of the sessions' connections; `null` if they were not visible.
    #[serde(default)]
    pub sockets: Option<SocketResources>,
    /// CPU time of the busiest thread as a share of one core: for each second of the window its own busiest thread,
    /// then the mean over the seconds.
    #[serde(default)]
    pub busiest_thread_share: Option<f64>,
    /// The lowest share of the machine's memory that was available for programs.
    #[serde(default)]
    pub machine_memory_available_share: Option<f64>,
}

/// The memory of the target at moments of the trial outside the measured window, because the kernel walks all pages of a
/// process to count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetMemory {
    /// When it was ready, before the first connection.
    pub idle: Option<MemoryAt>,
    /// Under load, in the last second before the measured window; after the trial's first second if ramp and warm-up are
    /// shorter than that.
    pub loaded: Option<MemoryAt>,
    /// Some seconds after the last connection has closed; `null` if the workload does not wait for that.
    pub after: Option<MemoryAt>,
}

/// The memory of all processes of the target at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryAt {
    /// Resident set: a page that several processes map counts for each.
    pub rss_bytes: u64,
    /// Proportional set: such a page counts once in all; `null` if it could not be read.
    pub pss_bytes: Option<u64>,
}

/// What the core account contains beyond the charged account, in µs per session-second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BeyondCharged {
    /// Threads of other programs.
    pub others_us: f64,
    /// What the kernel wrote to disks, at most.
    pub kernel_writes_us: f64,
    /// The rest: packets that came while no thread ran, and the transitions into and out of idle.
    pub packets_and_wake_ups_us: f64,
}

impl TargetResources {
    /// The difference between the two accounts of CPU time; `None` if one is missing.
    #[must_use]
    pub fn beyond_charged(&self) -> Option<BeyondCharged> {
        let (charged_us, core_us) = self
            .cpu_us_per_session_second
            .zip(self.core_us_per_session_second)?;
        // If the target has whole CPUs to itself, both shares refer to the same time.
        let others_share = self.others_cpu_share.filter(|_| self.cpu_share > 0.0);
        let beyond_us = core_us - charged_us;
        let part_us = |share: Option<f64>, at_most_us: f64| {
            let us = share.unwrap_or(0.0) / self.cpu_share.max(1e-9) * charged_us;
            us.min(at_most_us).max(0.0)
        };
        let others_us = part_us(others_share, beyond_us);
        let kernel_writes_us = part_us(self.kernel_writes_cpu_share, beyond_us - others_us);
        Some(BeyondCharged {
            others_us,
            kernel_writes_us,
            packets_and_wake_ups_us: beyond_us - others_us - kernel_writes_us,
        })
    }

    /// The share of the window in which the target's CPUs were busy for it: its own CPU time, received packets and
    /// wake-ups, less what other programs used. `None` without a core account.
    #[must_use]
    pub fn core_share(&self) -> Option<f64> {
        let charged_us = self.cpu_us_per_session_second?;
        let beyond = self.beyond_charged()?;
        let packets_share = beyond.packets_and_wake_ups_us / charged_us.max(1e-9) * self.cpu_share;
        Some(self.cpu_share + packets_share)
    }
}

/// What one of Plimsoll's processes used over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessResources {
    /// CPU time in user mode.
    pub cpu_user_us: u64,
    /// CPU time in kernel mode.
    pub cpu_system_us: u64,
    /// Average number of busy CPUs.
    pub cpus_busy: f64,
    /// The peak resident set.
    pub rss_peak_bytes: u64,
    /// Time that its threads waited for a core, as a share of the window; can exceed 1 with several threads.
    pub run_queue_wait_share: Option<f64>,
    /// How often per second a thread gave up its CPU.
    pub voluntary_switches_per_s: Option<f64>,
    /// How often per second a CPU was taken from a thread.
    pub involuntary_switches_per_s: Option<f64>,
    /// The most open files.
    pub fds_peak: Option<u64>,
    /// The most threads.
    pub threads_peak: Option<u64>,
}

/// The target's ends of the sessions' TCP connections over the measured window, as the kernel counts them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketResources {
    /// The most connections seen at once.
    pub connections_peak: u64,
    /// Segments that the target's end retransmitted; `null` if the kernel does not report it.
    pub retransmits: Option<u64>,
    /// The most unread bytes of one connection: the client sent them and the target did not read them.
    pub receive_queue_peak_bytes: u64,
    /// Unread bytes of a connection, mean over connections and samples.
    pub receive_queue_mean_bytes: f64,
    /// The most unacknowledged bytes of one connection: the target sent them and the client did not take them.
    pub send_queue_peak_bytes: u64,
    /// Unacknowledged bytes of a connection, mean over connections and samples.
    pub send_queue_mean_bytes: f64,
    /// The most connections that waited to be accepted.
    pub accept_queue_peak: Option<u64>,
}

/// The program beside the target, such as its back end, over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Inference")]
pub struct CompanionWindow {
    /// Requests answered.
    pub requests: u64,
    /// CPU time of its process as a share of one core.
    pub busy_share: f64,
    /// CPU time per request.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of its process per session-second, counted as that of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_session_second: Option<f64>,
    /// Time that requests waited for a free slot.
    pub queue_wait: LagQuantiles,
    /// How much later than their drawn time the answers were given.
    pub answer_lateness: LagQuantiles,
    /// Bytes of the target's frames in the requests of the measured window.
    #[serde(default)]
    pub request_bytes: Option<u64>,
    /// Resources of its process.
    #[serde(default)]
    pub resources: Option<ProcessResources>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_the_two_accounts_is_told_apart() {
        let mut used = TargetResources {
            cpu_us_per_session_second: Some(300.0),
            core_us_per_session_second: Some(400.0),
            cpu_share: 0.6,
            others_cpu_share: Some(0.02),
            ..TargetResources::default()
        };
        let beyond = used.beyond_charged().expect("both are known");
        assert!((beyond.others_us - 10.0).abs() < 1e-9, "{beyond:?}");
        assert!((beyond.packets_and_wake_ups_us - 90.0).abs() < 1e-9);
        used.kernel_writes_cpu_share = Some(0.04);
        let beyond = used.beyond_charged().expect("both are known");
        assert!((beyond.kernel_writes_us - 20.0).abs() < 1e-9, "{beyond:?}");
        assert!((beyond.packets_and_wake_ups_us - 70.0).abs() < 1e-9);
        used.others_cpu_share = Some(0.9);
        let beyond = used.beyond_charged().expect("both are known");
        assert_eq!(beyond.packets_and_wake_ups_us, 0.0, "no more than there is");
        used.core_us_per_session_second = None;
        assert_eq!(used.beyond_charged(), None);
    }
}
