//! Connections that are not accepted, not read, closed or reset.

use crate::entry::{HARMFUL, LONGER, Lie, at_least, exactly, within};

const LOST: &[&str] = &[
    "newest_p50_ms",
    "newest_p95_ms",
    "oldest_p50_ms",
    "oldest_p95_ms",
    "frames_lost",
];
const DIED: &[&str] = &[
    "newest_p50_ms",
    "newest_p95_ms",
    "oldest_p95_ms",
    "frames_lost",
    "sessions_died",
];

pub(super) const LIES: &[Lie] = &[
    // A session is no longer read from 2.0 to 2.2 on (2 s after its start). What is due from then to 6.2 is lost:
    // 4.1 · 50 · 30 = 6,150. This is the target's back-pressure: its receive queue, and frames that were due and never
    // left. The buffers of both ends (32 KiB there with the kernel's doubling, 64 KiB here) take 50 to 200 frames of a
    // session, so 1,350 + 30 · (50 to 200) of the 7,500 are sent. All of that is the target's doing: no send lag, no
    // caveat.
    Lie {
        name: "stop_reading",
        lie: "stop_reading",
        parameters: &[("AFTER_MS", "2000")],
        fault: "sessions are not read any more",
        flags: LONGER,
        gates: LOST,
        counters: &[
            exactly("ledger.frames_due", 7500),
            within("ledger.frames_lost", 5800.0, 6500.0),
            within("ledger.frames_sent", 2850.0, 7350.0),
            at_least(
                "target_resources.sockets.receive_queue_peak_bytes",
                8.0 * 1024.0,
            ),
        ],
        ..HARMFUL
    },
    // From 2.1 on, 5 frames a second are read of 50 due. By the last flush, at 7.2 to 8.2, some 28 frames of a session
    // have been read of the 205 due from 2.1 to 6.2: 177 · 30 = 5,310 are lost. The buffers fill with 45 frames a
    // second. After some 3 s the socket is full, and from then on a frame waits until one is read, which happens five
    // times a second: the fifth frame waits a second. This is send wait and not send lag: the lag would block.
    Lie {
        name: "read_slowly",
        lie: "read_slowly",
        parameters: &[("AFTER_MS", "2000"), ("MS", "200")],
        fault: "sessions are read at a tenth of their pace",
        flags: LONGER,
        gates: LOST,
        counters: &[
            within("ledger.frames_lost", 4900.0, 5700.0),
            within("client.send_wait.max_us", 1e6, 5e6),
            at_least(
                "target_resources.sockets.receive_queue_peak_bytes",
                8.0 * 1024.0,
            ),
        ],
        ..HARMFUL
    },
    // All 30 end at 2.0 to 2.2 (2 s after their start). What the server had received since a session's last flush, 1.0
    // to 2.0, is lost with it: from 1.54 on average (nothing before 1.2 counts) to 4.2, which makes
    // 2.66 · 50 · 30 = 3,990.
    Lie {
        name: "half_close",
        lie: "half_close",
        parameters: &[("AFTER_MS", "2000")],
        fault: "the server shuts its half of the connection and goes on reading",
        gates: DIED,
        gates_perhaps: &["oldest_p50_ms"],
        counters: &[
            exactly("ledger.sessions_died", 30),
            within("ledger.frames_lost", 3630.0, 4350.0),
        ],
        reason: "connection closed by the target",
        ..HARMFUL
    },
    // The first answer after 2.0 to 2.2 is cut off. The flush before it was at 1.0 to 2.1, and from then on everything
    // is lost, as above.
    Lie {
        name: "reset_mid_frame",
        lie: "reset_mid_frame",
        parameters: &[("AFTER_MS", "2000")],
        fault: "the connection is reset in the middle of an answer",
        gates: DIED,
        gates_perhaps: &["oldest_p50_ms"],
        counters: &[
            exactly("ledger.sessions_died", 30),
            within("ledger.frames_lost", 3630.0, 4350.0),
        ],
        reason: "connection reset by the target",
        ..HARMFUL
    },
    // A session that was never open has no frames. No answer is not a good answer: a gate on what was not observed does
    // not hold.
    Lie {
        name: "never_upgrade",
        lie: "never_upgrade",
        fault: "upgrades are accepted and never answered",
        gates: &[
            "newest_p50_ms",
            "newest_p95_ms",
            "oldest_p50_ms",
            "oldest_p95_ms",
            "error_rate",
            "sessions_failed",
        ],
        counters: &[
            exactly("ledger.sessions_failed", 30),
            exactly("ledger.sessions_started", 0),
            exactly("ledger.frames_due", 0),
        ],
        reason: "not open in time",
        ..HARMFUL
    },
    // One in five: 6 sessions fail, and the 24 others are served well.
    Lie {
        name: "never_upgrade_some",
        lie: "never_upgrade",
        parameters: &[("SHARE", "0.2")],
        fault: "the same to one upgrade in five",
        gates: &["sessions_failed"],
        counters: &[
            exactly("ledger.sessions_failed", 6),
            exactly("ledger.sessions_started", 24),
            exactly("ledger.frames_answered", 3600),
        ],
        reason: "not open in time",
        ..HARMFUL
    },
    // The server accepts ten connections a second. By 1.2 s, when a session must be open, it has accepted eleven to
    // thirteen. The other 17 of the 30 have failed (more if the server's timer is late). Meanwhile they wait in the
    // kernel's queue.
    Lie {
        name: "slow_accept",
        lie: "slow_accept",
        parameters: &[("MS", "100")],
        fault: "connections are accepted one in 100 ms",
        gates: &["sessions_failed"],
        counters: &[
            within("ledger.sessions_failed", 15.0, 20.0),
            within("ledger.sessions_started", 10.0, 15.0),
            at_least("target_resources.sockets.accept_queue_peak", 1.0),
        ],
        reason: "not open in time",
        ..HARMFUL
    },
];
