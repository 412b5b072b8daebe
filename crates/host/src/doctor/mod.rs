//! Finds what is wrong with this machine for measuring, and says how to fix it.
//!
//! Looking ([`Observed::of_this_machine`]) is separate from judging ([`findings`]), so that tests can check every
//! judgement on a machine that does not exist.

mod observed;

use serde::Serialize;

pub use observed::Observed;

use crate::machine::{Limits, Stops};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Info,
    /// Results from this machine will carry a caveat, or large loads will not fit.
    Warning,
    /// Plimsoll cannot measure here.
    Error,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name, stable for scripts.
    pub id: String,
    /// Whether nothing is wrong.
    pub ok: bool,
    /// How much it matters if something is wrong.
    pub level: Level,
    /// What was found.
    pub text: String,
    /// How to fix it, in one line. `None` if nothing is wrong or nothing can be done.
    pub remedy: Option<String>,
}

impl Finding {
    /// Nothing is wrong.
    #[must_use]
    pub fn good(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ok: true,
            level: Level::Info,
            text: text.into(),
            remedy: None,
        }
    }

    /// Something is wrong.
    #[must_use]
    pub fn bad(
        id: impl Into<String>,
        level: Level,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            ok: false,
            level,
            text: text.into(),
            remedy: Some(remedy.into()),
        }
    }
}

/// Judges the observations. Returns what is fine and what is not, in the order in which a user should read it.
#[must_use]
pub fn findings(seen: &Observed) -> Vec<Finding> {
    let mut all = vec![cores(seen)];
    all.extend(shared_core(seen));
    all.extend([clock(seen), load(seen), steal(seen)]);
    all.extend(stops(seen));
    all.extend(awake(seen));
    all.extend(governor(seen));
    all.extend(cgroups(seen));
    all.push(network(seen));
    all.extend([open_files(seen), ports(seen)]);
    all.extend(queues(seen));
    all.extend(conntrack(seen));
    all.extend(time_wait(seen));
    all
}

fn cores(seen: &Observed) -> Finding {
    let (cpus, model) = (seen.cpus, &seen.environment.cpu_model);
    let text = format!("{cpus} usable CPUs ({model})");
    if cpus >= 2 {
        return Finding::good("cores", text);
    }
    let remedy = "use a machine with at least 2 CPUs; on one, target and client compete for it and every trial carries a caveat";
    Finding::bad("cores", Level::Warning, text, remedy)
}

fn shared_core(seen: &Observed) -> Option<Finding> {
    let (target, client) = seen.shared_core?;
    let text = format!(
        "CPU {target} (target) and CPU {client} (client) are two threads of one core, so the client's load slows the target"
    );
    let remedy = "choose CPUs of different cores with --target-cpus and --client-cpus (see lscpu -e), or turn SMT off";
    Some(Finding::bad("shared-core", Level::Warning, text, remedy))
}

fn clock(seen: &Observed) -> Finding {
    // Reading these does not enter the kernel. Other clocks cost a system call per reading, and some (hpet, acpi_pm)
    // cost microseconds.
    const FAST: [&str; 4] = [
        "tsc",
        "kvm-clock",
        "arch_sys_counter",
        "hyperv_clocksource_tsc_page",
    ];
    let name = seen
        .environment
        .clock_source
        .as_deref()
        .unwrap_or("unknown");
    if FAST.contains(&name) {
        return Finding::good("clock", format!("the clock source is {name}"));
    }
    let remedy = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
    Finding::bad(
        "clock",
        Level::Warning,
        format!("the clock source {name} is slow to read"),
        remedy,
    )
}

#[allow(clippy::cast_precision_loss)] // A count of CPUs.
fn load(seen: &Observed) -> Finding {
    let load = seen.environment.load_average.unwrap_or(0.0);
    let text = format!(
        "the load average is {load:.2} on {} CPUs",
        seen.environment.cores
    );
    if load <= 0.1 * seen.environment.cores.max(1) as f64 {
        return Finding::good("load", text);
    }
    Finding::bad(
        "load",
        Level::Warning,
        text,
        "stop other processes (see top) and wait a minute",
    )
}

fn steal(seen: &Observed) -> Finding {
    let share = seen.environment.steal_share;
    let text = format!(
        "the hypervisor took {:.2} % of the CPU time since boot",
        share * 100.0
    );
    if share < 0.01 {
        return Finding::good("steal", text);
    }
    Finding::bad(
        "steal",
        Level::Warning,
        text,
        "use a dedicated machine or instances with whole cores",
    )
}

fn stops(seen: &Observed) -> Option<Finding> {
    let Stops {
        seconds,
        count,
        longest_ms,
    } = seen.stops?;
    if count == 0 {
        let text = format!("no CPU was stopped for 1 ms while all were busy for {seconds:.0} s");
        return Some(Finding::good("stops", text));
    }
    let times = if count == 1 {
        "once"
    } else {
        &format!("{count} times")
    };
    let text = format!(
        "while all CPUs were busy for {seconds:.0} s, the hypervisor stopped one {times} for 1 ms or more, at most {longest_ms:.1} ms"
    );
    let remedy = "expect send lag and slow answers of that length near the load line; instances with whole cores have none";
    Some(Finding::bad("stops", Level::Warning, text, remedy))
}

fn awake(seen: &Observed) -> Option<Finding> {
    let Err(why) = seen.awake? else {
        let text = "the client's CPUs can be kept awake during a trial";
        return Some(Finding::good("awake", text));
    };
    let text = format!("the client's CPUs cannot be kept awake: {why}");
    let (level, remedy) = if seen.environment.virtual_machine {
        (
            Level::Warning,
            "expect more send lag and stolen time, because a virtual CPU that halts may come back late",
        )
    } else {
        (Level::Info, "expect wake-ups up to 0.2 ms late")
    };
    Some(Finding::bad("awake", level, text, remedy))
}

fn governor(seen: &Observed) -> Option<Finding> {
    let governor = seen.environment.governor.as_deref()?;
    let text = format!("the frequency governor is {governor}");
    if governor == "performance" {
        return Some(Finding::good("governor", text));
    }
    let remedy = "cpupower frequency-set -g performance";
    Some(Finding::bad("governor", Level::Warning, text, remedy))
}

fn cgroups(seen: &Observed) -> Vec<Finding> {
    if seen.missing.is_empty() {
        let text = format!(
            "control groups ({}) provide quota, CPU set and CPU time",
            seen.environment.cgroup
        );
        return vec![Finding::good("cgroup", text)];
    }
    let missing = seen.missing.iter().map(|missing| {
        let text = missing.to_string();
        let text = text
            .strip_suffix(missing.remedy())
            .unwrap_or(&text)
            .trim_end_matches("; ")
            .to_owned();
        Finding::bad("cgroup", Level::Warning, text, missing.remedy())
    });
    missing.collect()
}

fn network(seen: &Observed) -> Finding {
    match &seen.network {
        Ok(()) => Finding::good("network", "a target can have its own network"),
        Err(why) => Finding::bad(
            "network",
            Level::Warning,
            format!(
                "a target cannot have its own network ({why}), so the cost of what the target receives is charged to the client"
            ),
            "run as root and install iproute2 (apt-get install iproute2)",
        ),
    }
}

fn open_files(seen: &Observed) -> Finding {
    let Limits {
        fd_soft, fd_hard, ..
    } = seen.limits;
    let text = format!("{fd_soft} open files per process ({fd_hard} at most)");
    if fd_soft >= 20_000 {
        return Finding::good("open-files", text);
    }
    let remedy = if fd_hard >= 20_000 {
        "ulimit -n 20000"
    } else {
        "raise `nofile` in /etc/security/limits.conf (or LimitNOFILE of the service) to 65536"
    };
    Finding::bad(
        "open-files",
        Level::Warning,
        format!("{text}: too few for many sessions"),
        remedy,
    )
}

fn ports(seen: &Observed) -> Finding {
    let Some((low, high)) = seen.limits.ports else {
        return Finding::good("ports", "the range of outgoing ports is unknown");
    };
    let count = u32::from(high) - u32::from(low) + 1;
    let text = format!("{count} outgoing ports ({low}-{high})");
    if count >= 20_000 {
        return Finding::good("ports", text);
    }
    let remedy = "sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\"";
    Finding::bad(
        "ports",
        Level::Warning,
        format!("{text}: too few for many sessions"),
        remedy,
    )
}

/// Sessions start over a ramp. So even for thousands of them, a queue needs room only for what arrives while the target
/// is busy for some tens of ms.
fn queues(seen: &Observed) -> Vec<Finding> {
    let queue = |id: &str, setting: &str, length: Option<u64>, least: u64| {
        let length = length?;
        let text = format!("{setting} is {length}");
        Some(if length >= least {
            Finding::good(id, text)
        } else {
            let text = format!("{text}: connections may be refused while sessions start");
            Finding::bad(
                id,
                Level::Warning,
                text,
                format!("sysctl -w {setting}={least}"),
            )
        })
    };
    let somaxconn = queue(
        "somaxconn",
        "net.core.somaxconn",
        seen.environment.somaxconn,
        1024,
    );
    let syn_backlog = queue(
        "syn-backlog",
        "net.ipv4.tcp_max_syn_backlog",
        seen.syn_backlog,
        512,
    );
    somaxconn.into_iter().chain(syn_backlog).collect()
}

fn conntrack(seen: &Observed) -> Option<Finding> {
    let most = seen.conntrack_max?;
    let text = format!("the firewall tracks at most {most} connections");
    Some(if most >= 65_536 {
        Finding::good("conntrack", text)
    } else {
        Finding::bad(
            "conntrack",
            Level::Warning,
            text,
            "sysctl -w net.netfilter.nf_conntrack_max=262144",
        )
    })
}

fn time_wait(seen: &Observed) -> Option<Finding> {
    let reuse = seen.time_wait_reuse?;
    Some(if reuse == 0 {
        let text = "ports of closed connections stay in use for a minute (net.ipv4.tcp_tw_reuse is 0), so back-to-back trials may run out of ports";
        Finding::bad(
            "time-wait",
            Level::Warning,
            text,
            "sysctl -w net.ipv4.tcp_tw_reuse=2",
        )
    } else {
        Finding::good(
            "time-wait",
            format!("ports of closed connections are reused (net.ipv4.tcp_tw_reuse is {reuse})"),
        )
    })
}

#[cfg(test)]
mod tests;
