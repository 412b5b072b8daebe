//! The facts of one trial, row by row: ledger, client, target, machine.

use plimsoll_core::latency::Quantiles;
use plimsoll_core::record::{
    Client, CostAccount, Environment, MemoryAt, Network, NetworkEnd, NetworkReceive, ProbeFigure,
    Probes, TargetMemory, TargetResources, Trial,
};
use plimsoll_document::facts::lag;
use plimsoll_document::{Nouns, Tellers};

use super::{cpu_time, process, sockets};
use crate::words::{
    self, bytes, count, given, maybe, ms_digits, near_whole, number, percent, us, whole_bytes,
};

/// Heads of the table of latencies. A head that begins with `>` is of a column of numbers.
pub(crate) const LATENCY_COLUMNS: [&str; 9] = [
    "latency in ms",
    ">p50",
    ">p90",
    ">p95",
    ">p99",
    ">p99.9",
    ">max",
    ">samples",
    ">unanswered",
];

/// The cells of a series of latencies, in the order of [`LATENCY_COLUMNS`].
pub(crate) fn latency_cells(name: &str, quantiles: &Quantiles) -> [String; 9] {
    let value = |value| maybe(value, ms_digits);
    [
        name.to_owned(),
        value(quantiles.p50_ms),
        value(quantiles.p90_ms),
        value(quantiles.p95_ms),
        value(quantiles.p99_ms),
        value(quantiles.p999_ms),
        value(quantiles.max_ms),
        count(quantiles.count),
        count(quantiles.censored),
    ]
}

/// A name and its value, both as they are: text from outside is not escaped.
pub type Fact = (String, String);

/// What happened to every frame.
#[must_use]
pub fn ledger(trial: &Trial, tellers: Tellers) -> Vec<(String, u64)> {
    let ledger = &trial.ledger;
    let nouns = tellers.of(&trial.workload).nouns(trial);
    let Nouns {
        frames, answers, ..
    } = nouns;
    let unit = trial.load_unit;
    let sent = if unit.is_arrivals() { "begun" } else { "sent" };
    let sessions = unit.opened();
    let of_frames = [
        ("due in the measured window", ledger.frames_due),
        (sent, ledger.frames_sent),
        ("answered", ledger.frames_answered),
        ("errored", ledger.frames_errored),
        ("lost", ledger.frames_lost),
        ("duplicated", ledger.frames_duplicated),
        ("out of order", ledger.frames_out_of_order),
    ];
    let of_sessions = [
        ("started", ledger.sessions_started),
        ("failed", ledger.sessions_failed),
        ("died", ledger.sessions_died),
    ];
    let mut rows = Vec::new();
    let mut add = |name: String, value: u64| rows.push((name, value));
    for (what, value) in of_frames {
        add(format!("{frames} {what}"), value);
    }
    for (what, value) in of_sessions {
        add(format!("{sessions} {what}"), value);
    }
    for (name, value) in [
        (answers, ledger.partials),
        ("errors", ledger.errors),
        ("protocol faults", ledger.protocol_faults),
        ("answers recomputed", ledger.content_checked),
        ("answers wrong", ledger.content_wrong),
    ] {
        add(name.to_owned(), value);
    }
    let whole = "in the whole trial";
    add(
        format!("{frames} {sent} {whole}"),
        ledger.frames_sent_in_all,
    );
    add(format!("bytes sent {whole}"), ledger.bytes_sent);
    add(format!("bytes received {whole}"), ledger.bytes_received);
    rows
}

/// The load engine: whether it was on time, and what that cost.
#[must_use]
pub fn client(client: &Client) -> Vec<Fact> {
    let mut rows = facts([
        (
            "share of its core, busiest engine thread",
            percent(client.cpu_share),
        ),
        ("CPU per frame", maybe(client.cpu_us_per_frame, us)),
        (
            "CPU time taken by the hypervisor",
            maybe(client.steal_share, percent),
        ),
    ]);
    rows.extend(known([
        (
            "CPU per frame that TLS takes",
            client.tls_us_per_frame.map(us),
        ),
        ("CPU per TLS handshake", client.tls_handshake_us.map(us)),
        (
            "its cores not idle, share of the window",
            client.cores_awake_share.map(percent),
        ),
        (
            "its CPUs kept awake",
            client.cpus_kept_awake.map(|cpus| cpus.to_string()),
        ),
        (
            "processes that shared the sessions",
            client.processes.map(|processes| processes.to_string()),
        ),
    ]));
    rows.extend(lag("send lag", &client.send_lag));
    rows.extend(lag("send wait", &client.send_wait));
    rows.extend(known([
        (
            "offered load that it achieved",
            client.achieved_share.map(|share| near_whole(Some(share))),
        ),
        (
            "time that its busiest thread waited for a core, share of the window",
            client.run_queue_wait_share.map(percent),
        ),
        (
            "time that received packets waited for a core, share of the window",
            client.receive_wait_share.map(percent),
        ),
    ]));
    rows.extend(facts(client.resources.iter().flat_map(process)));
    rows
}

/// What the target used in a trial.
#[must_use]
pub fn target(trial: &Trial, resources: &TargetResources) -> Vec<Fact> {
    let share_of = format!("CPU, share of {}", given(trial.vcpu));
    let mut rows = facts([
        (
            words::cpu_cost(trial.load_unit).as_str(),
            maybe(resources.cpu_us_per_session_second, us),
        ),
        (&share_of, percent(resources.cpu_share)),
        ("CPU in user mode", cpu_time(resources.cpu_user_us)),
        ("CPU in kernel mode", cpu_time(resources.cpu_system_us)),
        ("RSS, peak", whole_bytes(resources.rss_peak_bytes)),
        (
            &words::rss_per_one(trial.load_unit),
            maybe(resources.rss_bytes_per_session, bytes),
        ),
        (
            "quota periods in which it was throttled",
            maybe(resources.throttled_share, percent),
        ),
        (
            "time waited for a core, share of the window",
            maybe(resources.run_queue_wait_share, percent),
        ),
    ]);
    if let Some(core_us) = resources.core_us_per_session_second {
        let beyond =
            words::beyond_charged(resources).map_or_else(String::new, |text| format!(" ({text})"));
        // After the charged cost, to which it belongs.
        let name = words::cpu_cost_by(CostAccount::Core, trial.load_unit);
        rows.insert(1, (name, us(core_us) + &beyond));
    }
    rows.extend(memory(resources));
    let start = trial.start_ms.map(words::ms);
    rows.extend(known([("from its start until it was ready", start)]));
    rows.extend(more_of_target(resources));
    rows.extend(facts(resources.sockets.iter().flat_map(sockets)));
    rows
}

/// Its memory at moments of the trial.
fn memory(resources: &TargetResources) -> Vec<Fact> {
    let at = |moment: fn(&TargetMemory) -> Option<MemoryAt>| {
        let memory = resources.memory.as_ref().and_then(moment);
        memory.map(words::memory)
    };
    known([
        ("memory when idle", at(|memory| memory.idle)),
        ("memory under load", at(|memory| memory.loaded)),
        ("memory after the last close", at(|memory| memory.after)),
    ])
}

/// The values that could be read.
fn more_of_target(resources: &TargetResources) -> Vec<Fact> {
    known([
        ("CPUs kept busy", resources.cpus_busy.map(number)),
        (
            "used by others, share of its CPUs",
            resources.others_cpu_share.map(percent),
        ),
        (
            "time that received packets waited for a core, share of the window",
            resources.receive_wait_share.map(percent),
        ),
        (
            "busiest thread, share of one core",
            resources.busiest_thread_share.map(percent),
        ),
        (
            "voluntary context switches per second",
            resources.voluntary_switches_per_s.map(number),
        ),
        (
            "involuntary context switches per second",
            resources.involuntary_switches_per_s.map(number),
        ),
        ("open files, peak", resources.fds_peak.map(count)),
        ("threads, peak", resources.threads_peak.map(count)),
        (
            "memory limit",
            resources.memory_limit_bytes.map(whole_bytes),
        ),
        (
            "times memory was refused or reclaimed",
            resources.memory_pressure_events.map(count),
        ),
        (
            "memory of the machine available, least",
            resources.machine_memory_available_share.map(percent),
        ),
    ])
}

/// The machine, the placement, the versions.
#[must_use]
pub fn environment(trial: &Trial) -> Vec<Fact> {
    let environment = &trial.environment;
    let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
    let mut rows: Vec<Fact> = environment.machine.iter().map(owned).collect();
    rows.extend(facts([
        ("client cores", cores(&environment.client_cpus)),
        ("target cores", cores(&environment.target_cpus)),
        ("isolation of the target", environment.isolation.clone()),
        ("vCPU of the target", maybe(trial.vcpu, number)),
        ("target tier", trial.target.tier.clone()),
    ]));
    let variant = trial.target.variant.iter();
    rows.extend(variant.map(|variant| ("target variant".to_owned(), variant.clone())));
    let settings = trial.target.settings.iter();
    rows.extend(settings.map(|setting| ("target setting".to_owned(), setting.clone())));
    let sizes = [
        ("size of the target's own files", trial.target.ships_bytes),
        ("size of its runtime", trial.target.runtime_bytes),
    ];
    let size = |(name, bytes): (&str, Option<u64>)| {
        bytes.map(|bytes| (name.to_owned(), words::whole_bytes(bytes)))
    };
    rows.extend(sizes.into_iter().filter_map(size));
    rows.extend(environment.network.iter().map(network));
    let data = environment.data_file_system.iter();
    rows.extend(data.map(|kind| ("file system of its data".to_owned(), kind.clone())));
    let tls = environment.tls.iter();
    rows.extend(tls.map(|tls| ("TLS".to_owned(), tls.to_string())));
    rows.extend(environment.probes.iter().flat_map(probes));
    for (name, version) in &trial.target.versions {
        rows.push((format!("target: {name}"), version.clone()));
    }
    let engine = format!(
        "{}, tick {} µs",
        environment.engine_backend, environment.engine_tick_us
    );
    let nodelay = if environment.nodelay { "yes" } else { "no" };
    rows.extend(facts([
        ("plimsoll", plimsoll(environment)),
        ("engine", engine),
        ("TCP_NODELAY at the client", nodelay.to_owned()),
    ]));
    rows
}

/// What the machine took for the same small piece of work, before and after.
fn probes(probes: &Probes) -> Vec<Fact> {
    let after = probes.after.map(|after| after.figures());
    let row = |(index, figure): (usize, ProbeFigure)| {
        let mut value = format!("{} {}", number(figure.value), figure.unit);
        if let Some(after) = after {
            let after = number(after[index].value);
            value.push_str(&format!(", after the trial {after} {}", figure.unit));
        }
        (format!("probe: {}", figure.name), value)
    };
    let before = probes.before.figures().into_iter();
    before.enumerate().map(row).collect()
}

/// The network to the target.
fn network(network: &Network) -> Fact {
    let end = |end: &NetworkEnd| {
        let cpus = cores(&end.receive_cpus);
        let by = match end.receive {
            NetworkReceive::Steering => "CPU",
            NetworkReceive::Thread => "a thread on CPU",
        };
        format!("{} received by {by} {cpus}", end.address)
    };
    let mut parts = vec![network.mode.name().to_owned()];
    parts.extend(network.why.clone());
    parts.extend(
        network
            .client
            .as_ref()
            .map(|client| format!("client {}", end(client))),
    );
    parts.extend(
        network
            .target
            .as_ref()
            .map(|target| format!("target {}", end(target))),
    );
    parts.extend(network.mtu_bytes.map(|bytes| format!("MTU {bytes}")));
    if let Some(target) = &network.target {
        parts.extend(target.offloads.iter().cloned());
    }
    ("network".to_owned(), parts.join(", "))
}

/// The version, and the build where the record names it.
fn plimsoll(environment: &Environment) -> String {
    let version = environment.plimsoll_version.clone();
    if environment.build.is_unknown() {
        return version;
    }
    format!("{version}, {}", environment.build)
}

/// A list of cores.
pub(crate) fn cores(cores: &[impl ToString]) -> String {
    let cores: Vec<_> = cores.iter().map(ToString::to_string).collect();
    match cores.len() {
        0 => "not placed".to_owned(),
        _ => cores.join(","),
    }
}

fn facts<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> Vec<Fact> {
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    rows.into_iter().map(owned).collect()
}

fn known<const N: usize>(rows: [(&'static str, Option<String>); N]) -> Vec<Fact> {
    facts(rows.into_iter().filter_map(super::row_if_known))
}
