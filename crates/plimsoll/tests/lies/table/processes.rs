//! Faults of the process as a whole: it ends, leaks, burns CPU, miscounts, serves others, asks nobody.

use crate::entry::{HARMFUL, HARMLESS, Lie, Manifest, SOAK, Verdict, at_least, exactly, within};

pub(super) const LIES: &[Lie] = &[
    // The process is dead from 3.0 to 4.2. A session's last answered flush was at 1.9 to 2.9, so
    // (4.2 − 2.425) · 50 · 30 = 2,660 frames are lost. (There are no resources: a process that was gone before the
    // window's end has none.)
    Lie {
        name: "die",
        lie: "die",
        parameters: &[("AFTER_MS", "3000")],
        fault: "the process exits with status 1",
        gates: &[
            "newest_p50_ms",
            "newest_p95_ms",
            "frames_lost",
            "sessions_died",
            "target_died",
        ],
        gates_perhaps: &["oldest_p95_ms"],
        caveats_perhaps: &["back-end-unchecked", "no-resources"],
        counters: &[
            exactly("ledger.sessions_died", 30),
            within("ledger.frames_lost", 2300.0, 3020.0),
        ],
        reason: "the target ended during the trial: exit status: 1",
        ..HARMFUL
    },
    // The same. That it is healthy again after half a second, with counters that begin at 0, excuses nothing.
    Lie {
        name: "restart",
        lie: "restart",
        parameters: &[("AFTER_MS", "3000"), ("MS", "500")],
        fault: "all connections are dropped, counters are reset, and it serves again",
        gates: &[
            "newest_p50_ms",
            "newest_p95_ms",
            "frames_lost",
            "sessions_died",
        ],
        gates_perhaps: &["oldest_p95_ms"],
        counters: &[
            exactly("ledger.sessions_died", 30),
            within("ledger.frames_lost", 2300.0, 3020.0),
        ],
        ..HARMFUL
    },
    // Four answers of each session by the window's end, 256 KiB each: 1 MiB, on top of the 50 to 60 KiB that an honest
    // session needs. The trial passes, because only a soak has a gate on memory; the record shows the leak.
    Lie {
        name: "leak_memory",
        lie: "leak_memory",
        parameters: &[("BYTES", "262144")],
        fault: "every answer leaves 256 KiB behind",
        counters: &[
            within("target_resources.rss_bytes_per_session", 1.0e6, 1.45e6),
            at_least("target_resources.rss_peak_bytes", 60.0 * 1.0e6),
        ],
        ..HARMLESS
    },
    // One answer per session-second, 64 KiB: 3600 · 65,536 = 236 MB per session-hour.
    Lie {
        name: "leak_memory_in_a_soak",
        lie: "leak_memory",
        parameters: &[("BYTES", "65536")],
        fault: "every answer leaves 64 KiB behind, under `--profile soak`",
        sessions: 20,
        flags: SOAK,
        gates: &["rss_growth_bytes_per_session_hour"],
        counters: &[
            exactly("ledger.frames_answered", 40_000),
            within("drift.rss_bytes_per_session_hour.value", 2.1e8, 2.6e8),
        ],
        ..HARMFUL
    },
    // The control: an honest soak of the same length passes.
    Lie {
        name: "honest_soak",
        lie: "none",
        fault: "none, under `--profile soak`",
        sessions: 20,
        flags: SOAK,
        counters: &[exactly("ledger.frames_answered", 40_000)],
        ..HARMLESS
    },
    // A thread that always wants to run has a core or waits for one: busy and waiting time together are at least one
    // CPU, whatever else runs on it. The answers do not suffer, and the record shows the cost. A core over 60 sessions
    // is 16,700 µs per session-second if the thread has the core to itself; an honest session costs less than 1,500.
    Lie {
        name: "burn_core",
        lie: "burn_core",
        fault: "a thread spins beside the work, on the target's own core",
        counters: &[
            exactly("ledger.frames_answered", 12_000),
            at_least("target_resources.cpu_us_per_session_second", 4000.0),
            at_least("target_resources.cpu_share", 0.25),
        ],
        ..HARMLESS
    },
    // On the client's core nothing can be said about the target: neither that it is good nor that it is bad.
    Lie {
        name: "burn_core_of_the_client",
        lie: "burn_core",
        fault: "the same on the client's core",
        flags: "--client-cpus 0 --target-cpus 0 --ramp 0.2 --warm-up 1 --measured 4 --grace 2",
        verdict: Verdict::Invalid,
        gates_perhaps: &["newest_p95_ms", "oldest_p95_ms"],
        caveats: &["shared-cores"],
        caveats_perhaps: &[
            "back-end-unchecked",
            "send-lag",
            "client-busy",
            "client-starved",
            "achieved-load",
        ],
        ..HARMLESS
    },
    // 60 sessions send 50 frames a second from their start, on average at 0.6, until the last answer, at 6.2 at the
    // latest: 16,500 to 17,500 frames. The server says that there were a tenth more than were sent.
    Lie {
        name: "lie_in_metrics",
        lie: "lie_in_metrics",
        parameters: &[("EVERY", "10")],
        fault: "`/metrics` counts every tenth frame twice",
        verdict: Verdict::Invalid,
        caveats: &["metrics-disagree"],
        counters: &[
            exactly("ledger.frames_answered", 12_000),
            within("ledger.frames_sent_in_all", 16_200.0, 17_600.0),
            within("sanity.metrics_frames.high", 16_200.0, 17_600.0),
            within("sanity.metrics_frames.observed", 17_820.0, 19_360.0),
        ],
        ..HARMLESS
    },
    // 60 sessions of ours and 10 of somebody else's.
    Lie {
        name: "foreign_load",
        lie: "foreign_load",
        parameters: &[("SESSIONS", "10")],
        fault: "somebody else has ten sessions there too",
        verdict: Verdict::Invalid,
        caveats: &["metrics-disagree"],
        counters: &[
            exactly("ledger.sessions_started", 60),
            exactly("sanity.metrics_sessions.high", 60),
            exactly("sanity.metrics_sessions.observed", 70),
        ],
        ..HARMLESS
    },
    // Its answers are right, but nobody was asked for them. If a gateway claims to ask, 12,000 frames of 640 bytes must
    // have reached the simulator.
    Lie {
        name: "bypass",
        lie: "none",
        fault: "a gateway that answers by itself and never asks the inference server",
        manifest: Manifest::ThatClaimsToAsk,
        verdict: Verdict::Invalid,
        caveats: &["back-end-bypassed"],
        caveats_perhaps: &[],
        counters: &[
            exactly("ledger.frames_answered", 12_000),
            exactly("inference.requests", 0),
            exactly("sanity.back_end_bytes.observed", 0),
        ],
        ..HARMLESS
    },
];
