//! What gateway, client and mock providers used, side by side.

use plimsoll_core::record::{ProcessResources, Trial};
use plimsoll_document::Table;
use plimsoll_document::words::{UNKNOWN, count, maybe, number, whole_bytes};

const COLUMNS: [&str; 6] = [
    "who",
    ">cores busy",
    ">memory peak",
    ">open files",
    ">threads",
    ">connections",
];

/// The table; what was not measured is unknown.
pub(crate) fn table(trial: &Trial) -> Table {
    let row = |who: &str, cores: Option<f64>, peaks: [Option<String>; 4]| {
        let [memory, files, threads, connections] =
            peaks.map(|peak| peak.unwrap_or_else(|| UNKNOWN.to_owned()));
        let cores = maybe(cores, number);
        [who.to_owned(), cores, memory, files, threads, connections]
    };
    let of_process = |who: &str, used: Option<&ProcessResources>| {
        let peaks = [
            used.map(|used| whole_bytes(used.rss_peak_bytes)),
            used.and_then(|used| used.fds_peak).map(count),
            used.and_then(|used| used.threads_peak).map(count),
            // The kernel is asked for the gateway's ends only.
            None,
        ];
        row(who, used.map(|used| used.cpus_busy), peaks)
    };
    let gateway = trial.target_resources.as_ref();
    let sockets = gateway.and_then(|used| used.sockets.as_ref());
    let peaks = [
        gateway.map(|used| whole_bytes(used.rss_peak_bytes)),
        gateway.and_then(|used| used.fds_peak).map(count),
        gateway.and_then(|used| used.threads_peak).map(count),
        sockets.map(|sockets| count(sockets.connections_peak)),
    ];
    let mocks = trial.companion.as_ref();
    let rows = [
        row("gateway", gateway.and_then(|used| used.cpus_busy), peaks),
        of_process("client", trial.client.resources.as_ref()),
        of_process(
            "mock providers",
            mocks.and_then(|mocks| mocks.resources.as_ref()),
        ),
    ];
    let caption = "Gateway, client and mock providers over the measured window";
    Table::new(caption, COLUMNS).hooked("sides").with_rows(rows)
}
