//! Answers that are right but late.

use crate::entry::{
    EVERY_LATENCY, HARMFUL, HARMLESS, LONG, Lie, SOAK, TIMED, at_least, exactly, within,
};

const SECONDS_OF_STALL: &[&str] = &["newest_p95_ms", "oldest_p95_ms"];

pub(super) const LIES: &[Lie] = &[
    // The control: the number of frames due is simple arithmetic, 60 · 4 · 50. The partials are each session's four
    // flushes within the window, and the one after it that covers the rest.
    Lie {
        name: "none",
        lie: "none",
        fault: "none: the same server, honest",
        counters: &[
            exactly("ledger.frames_due", 12_000),
            exactly("ledger.frames_answered", 12_000),
            within("ledger.partials", 240.0, 300.0),
            within("latency.newest.from_schedule.p95_ms", 75.0, 200.0),
        ],
        ..HARMLESS
    },
    // Tools that stamp the actual send, or wait for an answer before the next request, do not see this. Everything
    // stops from `t` to `t + 2`. A session whose last flush was before `t` has frames at the server until `t`, the
    // newest due at most 20 ms before it. They are flushed when the server wakes, at `t + 2`, and answered 75 ms later
    // (`MODEL_DELAY_MS`): their newest frame has waited for 2.075 to 2.095 s. An answer that was under way at `t` comes
    // at `t + 2`, 2.0 to 2.075 s after its newest frame. So every session has one answer of about 2 s. The flush due in
    // between found nothing to do, so of the window's six answers a session has five. It has six with the one under
    // way, or four if its next flush came due within 75 ms of the waking and was put off by the answer then under way;
    // each of these two cases is one session in thirteen. The bad answer is at least a sixth of all: p90, p95 and max
    // all show it, p50 does not. The oldest frame of that answer came up to a second earlier: at most 3.095 s. Frames
    // due during the stall lay in the kernel, are read at `t + 2` and answered with the next flush. Their oldest was
    // due at `t`, so it waited for 2.0 to 3.1 s as well. The upper bounds have room for a machine that wakes the server
    // late; the lower bounds have none except the histogram's 0.1 %. The write stamps would say about the same here,
    // because the client kept to its schedule all the while.
    Lie {
        name: "stall_once",
        lie: "stall_once",
        parameters: &[("AFTER_MS", "3000"), ("MS", "2000")],
        fault: "reading and sending stop once for 2 s, then the backlog is answered",
        sessions: 60,
        flags: LONG,
        gates: SECONDS_OF_STALL,
        counters: &[
            exactly("ledger.frames_due", 18_000),
            within("latency.newest.from_schedule.p50_ms", 75.0, 500.0),
            within("latency.newest.from_schedule.p90_ms", 1995.0, 2600.0),
            within("latency.newest.from_schedule.p95_ms", 1995.0, 2600.0),
            within("latency.newest.from_schedule.max_ms", 2070.0, 2600.0),
            within("latency.newest.from_schedule.count", 270.0, 330.0),
            within("latency.oldest.from_schedule.max_ms", 2900.0, 3700.0),
            at_least("latency.newest.from_write.p95_ms", 1900.0),
        ],
        ..HARMFUL
    },
    // The same at the end of a period of 5 s, with certainty, so this trial is a bad one: the stall is from 5 to 7, and
    // the next from 10 on, after the trial. (`searches.rs` has the search in which only one trial is bad.)
    Lie {
        name: "stall_rarely",
        lie: "stall_rarely",
        parameters: &[("AFTER_MS", "5000"), ("MS", "2000"), ("SHARE", "1")],
        fault: "the same by chance, here in a trial that is struck",
        sessions: 60,
        flags: LONG,
        gates: SECONDS_OF_STALL,
        counters: &[
            exactly("ledger.frames_due", 18_000),
            within("latency.newest.from_schedule.max_ms", 2070.0, 2600.0),
        ],
        ..HARMFUL
    },
    // Answers are held until 6.0 to 6.2. The window ends at 5.2 and grace at 7.2, so all come within grace and none is
    // lost. The first flush with a measured newest frame is at 1.2 to 2.2, so that frame waits for 3.8 to 5 s; in the
    // longest of 60 sessions, for nearly 5.
    Lie {
        name: "late_after_window",
        lie: "late_after_window",
        parameters: &[("MS", "6000")],
        fault: "no answer until the window is over, then all at once",
        sessions: 60,
        flags: TIMED,
        gates: EVERY_LATENCY,
        counters: &[
            exactly("ledger.frames_answered", 12_000),
            exactly("latency.newest.from_schedule.censored", 0),
            within("latency.newest.from_schedule.max_ms", 4000.0, 5600.0),
        ],
        ..HARMFUL
    },
    // Held for a minute, which is never within the trial: everything due is lost. The record has it with the time
    // waited until the end of grace at 7.2: from 2.0 s (due at 5.2) to 6.0 s (due at 1.2). No answer is not a good
    // answer: the error rate was not observed, so its gate does not hold either.
    Lie {
        name: "late_for_ever",
        lie: "late_after_window",
        parameters: &[("MS", "60000")],
        fault: "no answer within the trial at all",
        sessions: 60,
        flags: TIMED,
        gates: &[
            "newest_p50_ms",
            "newest_p95_ms",
            "oldest_p50_ms",
            "oldest_p95_ms",
            "error_rate",
            "frames_lost",
        ],
        counters: &[
            exactly("ledger.frames_lost", 12_000),
            exactly("ledger.partials", 0),
            exactly("latency.newest.from_schedule.censored", 12_000),
            within("latency.newest.from_schedule.max_ms", 5990.0, 6500.0),
        ],
        ..HARMFUL
    },
    // The n-th answer is n · 200 ms late, and in the window n is 1 to 5 (a flush after its end is the 5th or 6th, and
    // comes at most 1.2 s late, within the grace of 3 s). Half of them have n ≤ 3: the median is that of n = 3,
    // 600 + 75 + 10 ms, and the worst percentiles are those of n = 4 and 5.
    Lie {
        name: "grow_latency",
        lie: "grow_latency",
        parameters: &[("MS", "200")],
        fault: "each answer of a session is 200 ms later than the one before",
        sessions: 60,
        flags: "--ramp 0.2 --warm-up 1 --measured 4 --grace 3",
        gates: EVERY_LATENCY,
        counters: &[
            exactly("ledger.frames_answered", 12_000),
            within("latency.newest.from_schedule.p50_ms", 475.0, 900.0),
            within("latency.newest.from_schedule.p95_ms", 875.0, 1300.0),
        ],
        ..HARMFUL
    },
    // At 4 ms per answer, the trial is over before a gate notices: 75 + 20 + 6 · 4 at the most. It is right that it
    // passes: 4 s are too short to tell.
    Lie {
        name: "grow_latency_slowly",
        lie: "grow_latency",
        parameters: &[("MS", "4")],
        fault: "each answer is 4 ms later: fails only late, after the trial",
        counters: &[
            exactly("ledger.frames_answered", 12_000),
            within("latency.newest.from_schedule.max_ms", 85.0, 250.0),
        ],
        ..HARMLESS
    },
    // A soak shows it before any latency gate fails. After 43 s an answer is 43 · 4 = 172 ms late, with p95 below
    // 75 + 20 + 172 < 350 ms and p50 at 75 + 10 + 23 · 4 = 177 < 200 ms. The slope is 4 ms per second, 14,400 ms per
    // hour.
    Lie {
        name: "grow_latency_slowly_in_a_soak",
        lie: "grow_latency",
        parameters: &[("MS", "4")],
        fault: "the same under `--profile soak`",
        sessions: 20,
        flags: SOAK,
        gates: &["newest_p95_growth_ms_per_hour"],
        counters: &[
            exactly("ledger.frames_answered", 40_000),
            within("drift.newest_p95_ms_per_hour.value", 12_500.0, 16_500.0),
        ],
        ..HARMFUL
    },
];
