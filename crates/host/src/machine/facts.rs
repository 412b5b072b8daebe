//! What a result must say about the machine it was measured on.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::limits::Limits;
use crate::isolation::{CpuList, Layout};
use crate::resources::CpuTimes;

/// The machine of a measurement. A fact that the machine does not report is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The distribution's name for itself.
    pub os: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor architecture.
    pub arch: String,
    /// The processor's model name.
    pub cpu_model: String,
    /// CPUs (hardware threads) that are online.
    pub cores: u64,
    /// The CPUs that we may use.
    pub cpus_allowed: String,
    /// Whether cores run two threads at once. A CPU is then less than a core.
    pub smt: Option<bool>,
    /// Whether the machine runs under a hypervisor.
    pub virtual_machine: bool,
    /// Main memory, bytes.
    pub memory_bytes: u64,
    /// The clock source from which the kernel reads the time.
    pub clock_source: Option<String>,
    /// The kind of control groups: "v1", "v2", "hybrid" or "none".
    pub cgroup: String,
    /// The frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Our limit of open files, which everything we start inherits.
    pub fd_limit: u64,
    /// The first and the last port for outgoing connections.
    pub port_range: Option<(u16, u16)>,
    /// The longest possible queue of connections waiting to be accepted.
    pub somaxconn: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// The share of all CPU time since boot that the hypervisor gave to others.
    pub steal_share: f64,
    /// The one-minute load average when these facts were read.
    pub load_average: Option<f64>,
}

impl MachineFacts {
    /// Reads the facts of this machine.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let cpu_times = CpuTimes::read();
        let total = cpu_times.as_ref().map(CpuTimes::total).unwrap_or_default();
        Self {
            os: os_name(&read("/etc/os-release").unwrap_or_default()),
            kernel: read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into()),
            arch: std::env::consts::ARCH.into(),
            cpu_model: cpu_model(&cpuinfo),
            cores: cpu_times
                .as_ref()
                .map_or(0, |times| times.cpus.len() as u64),
            cpus_allowed: CpuList::allowed_to_us()
                .map_or_else(|_| "unknown".into(), |list| list.to_string()),
            smt: read_trimmed("/sys/devices/system/cpu/smt/active").map(|text| text == "1"),
            virtual_machine: has_flag(&cpuinfo, "hypervisor"),
            memory_bytes: memory_bytes(&read("/proc/meminfo").unwrap_or_default()).unwrap_or(0),
            clock_source: read_trimmed(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            cgroup: Layout::of_this_machine().kind().into(),
            governor: read_trimmed("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            fd_limit: Limits::of_this_process().fd_soft,
            port_range: ephemeral_ports(),
            somaxconn: read_trimmed("/proc/sys/net/core/somaxconn")
                .and_then(|text| text.parse().ok()),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| bracketed(&text)),
            // Rounded to parts per million. Ticks are no more precise, and a short number survives being written and
            // read.
            steal_share: (total.steal_share() * 1e6).round() / 1e6,
            load_average: read("/proc/loadavg").and_then(|text| load_average(&text)),
        }
    }

    /// The same facts by name, as in a result file.
    #[must_use]
    pub fn facts(&self) -> BTreeMap<String, String> {
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(self) else {
            return BTreeMap::new();
        };
        let text = |value: serde_json::Value| match value {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some(text),
            serde_json::Value::Array(ends) => Some(
                ends.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("-"),
            ),
            other => Some(other.to_string()),
        };
        fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, text(value)?)))
            .collect()
    }
}

/// The range from which the kernel takes ports for outgoing connections, first and last.
#[must_use]
pub fn ephemeral_ports() -> Option<(u16, u16)> {
    parse_ports(&read("/proc/sys/net/ipv4/ip_local_port_range")?)
}

fn parse_ports(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace();
    let (low, high) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (low <= high).then_some((low, high))
}

fn os_name(os_release: &str) -> String {
    let name = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(
        || std::env::consts::OS.into(),
        |name| name.trim_matches('"').to_owned(),
    )
}

/// x86 has "model name"; Arm has it only on some machines.
fn cpu_model(cpuinfo: &str) -> String {
    let value_of = |key: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines
            .filter(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim().to_owned());
        values.find(|value| !value.is_empty())
    };
    let part = || {
        Some(format!(
            "implementer {} part {}",
            value_of("CPU implementer")?,
            value_of("CPU part")?
        ))
    };
    value_of("model name")
        .or_else(|| value_of("Model"))
        .or_else(part)
        .unwrap_or_else(|| "unknown".into())
}

fn has_flag(cpuinfo: &str, flag: &str) -> bool {
    let flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags
        .into_iter()
        .any(|line| line.split_whitespace().any(|word| word == flag))
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn load_average(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The word in brackets, as in `always [madvise] never`.
fn bracketed(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(chosen, _)| chosen.to_owned())
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(path)).ok()
}

fn read_trimmed(path: &str) -> Option<String> {
    read(path)
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_kernel_are_read() {
        assert_eq!(parse_ports("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(parse_ports("60999 32768"), None);
        assert_eq!(
            os_name("NAME=\"x\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            "Debian GNU/Linux 12"
        );
        assert_eq!(os_name(""), "linux");
        assert_eq!(
            memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            Some(16_777_216)
        );
        assert_eq!(load_average("0.07 0.02 0.00 1/86 3976\n"), Some(0.07));
        assert_eq!(
            bracketed("always [madvise] never\n").as_deref(),
            Some("madvise")
        );
    }

    #[test]
    fn the_processor_is_named_on_x86_and_on_arm() {
        let x86 =
            "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(cpu_model(x86), "AMD EPYC");
        assert!(has_flag(x86, "hypervisor"));
        assert!(!has_flag(x86, "visor"));
        assert_eq!(
            cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "implementer 0x41 part 0xd0c"
        );
        assert_eq!(cpu_model(""), "unknown");
    }

    #[test]
    fn this_machine_has_facts_that_survive_writing() {
        let environment = MachineFacts::of_this_machine();
        assert!(environment.cores > 0 && environment.memory_bytes > 0 && environment.fd_limit > 0);
        let text = serde_json::to_string(&environment).expect("json");
        assert_eq!(
            serde_json::from_str::<MachineFacts>(&text).expect("json"),
            environment
        );
        let facts = environment.facts();
        assert_eq!(facts["cores"], environment.cores.to_string());
        assert_eq!(facts["kernel"], environment.kernel);
        if let Some((low, high)) = environment.port_range {
            assert_eq!(facts["port_range"], format!("{low}-{high}"));
        }
    }
}
