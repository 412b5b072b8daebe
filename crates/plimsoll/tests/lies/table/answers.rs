//! Answers that are missing, duplicated, out of order or wrong, and messages that are not answers.

use crate::entry::{HARMFUL, Lie, exactly, within};

const THIRD: &[(&str, &str)] = &[("EVERY", "3")];

/// Frames that no answer named are in all four latencies, once each, with at least the time from the window's end to
/// the end of grace, 2 s. With 1,500 of them beside 90 answers, they are the median too.
const LOST: &[&str] = &[
    "newest_p50_ms",
    "newest_p95_ms",
    "oldest_p50_ms",
    "oldest_p95_ms",
    "frames_lost",
];
const LOST_AND_FAULTY: &[&str] = &[
    "newest_p50_ms",
    "newest_p95_ms",
    "oldest_p50_ms",
    "oldest_p95_ms",
    "error_rate",
    "frames_lost",
];

pub(super) const LIES: &[Lie] = &[
    // 30 · 50. We waited for what never came until grace was over: at least 2 s, and up to 4.2 s (due at 2, until 6.2).
    Lie {
        name: "skip_flush",
        lie: "skip_flush",
        parameters: THIRD,
        fault: "every third answer is swallowed",
        gates: LOST,
        counters: &[
            exactly("ledger.frames_due", 4500),
            within("ledger.frames_lost", 1350.0, 1650.0),
            within("latency.newest.from_schedule.censored", 1350.0, 1650.0),
            within("latency.newest.from_schedule.max_ms", 2000.0, 4700.0),
        ],
        ..HARMFUL
    },
    // Every frame of one session in ten: 3 · 3 · 50, each due from 1.2 on and waited for until 6.2.
    Lie {
        name: "never_answer_some",
        lie: "never_answer_some",
        parameters: &[("SHARE", "0.1")],
        fault: "one session in ten gets no answer at all",
        gates: LOST,
        counters: &[
            exactly("ledger.frames_lost", 450),
            exactly("latency.newest.from_schedule.censored", 450),
            within("latency.newest.from_schedule.max_ms", 4990.0, 5500.0),
        ],
        ..HARMFUL
    },
    // 30 · 50, and nothing else is wrong.
    Lie {
        name: "answer_twice",
        lie: "answer_twice",
        parameters: THIRD,
        fault: "every third answer is given twice",
        gates: &["frames_duplicated"],
        counters: &[within("ledger.frames_duplicated", 1350.0, 1650.0)],
        ..HARMFUL
    },
    // 30 · 50. The third answer waits a second for the fourth: its newest frame is 1.075 s old, its oldest a second
    // more. They are a third of the answers, so p95 shows them and p50 does not. They are late, not lost.
    Lie {
        name: "out_of_order",
        lie: "out_of_order",
        parameters: THIRD,
        fault: "every third answer comes after its successor",
        gates: &["newest_p95_ms", "oldest_p95_ms", "frames_out_of_order"],
        counters: &[
            within("ledger.frames_out_of_order", 1350.0, 1650.0),
            within("latency.newest.from_schedule.p95_ms", 1000.0, 1600.0),
            within("latency.oldest.from_schedule.p95_ms", 1900.0, 2600.0),
        ],
        ..HARMFUL
    },
    // One per session. The checksum chooses the word, so an answer whose checksum is off by one contradicts itself.
    // Each is found without a sample.
    Lie {
        name: "wrong_content",
        lie: "wrong_content",
        parameters: THIRD,
        fault: "the checksum of every third answer is off by one",
        gates: &["content_wrong"],
        counters: &[exactly("ledger.content_wrong", 30)],
        reason: "partial whose sizes or word are wrong",
        ..HARMFUL
    },
    // Each answer is right in itself, so only recomputing shows the fault: the first answer of each session, and 1 in
    // 64 of the 90 others. All are struck except the very first, because then there is nobody to take from: 29, and one
    // or two more (with eight, the sample would not be 1 in 64).
    Lie {
        name: "others_content",
        lie: "others_content",
        parameters: &[("EVERY", "1")],
        fault: "answers carry another session's content, in the right shape",
        gates: &["content_wrong"],
        counters: &[within("ledger.content_wrong", 29.0, 37.0)],
        ..HARMFUL
    },
    // With two sessions there is only one to take from: the second's first answer is the first's last. None of the
    // first's answers is certain to be checked.
    Lie {
        name: "others_content_of_two",
        lie: "others_content",
        parameters: &[("EVERY", "1")],
        fault: "the same with two sessions, each other's only neighbour",
        sessions: 2,
        gates: &["content_wrong"],
        counters: &[within("ledger.content_wrong", 1.0, 4.0)],
        ..HARMFUL
    },
    // The third answer of each session, and the sixth of those that the client still listens to.
    Lie {
        name: "garbage",
        lie: "garbage",
        parameters: THIRD,
        fault: "a text that is no JSON before every third answer",
        gates: &["error_rate"],
        counters: &[within("ledger.protocol_faults", 30.0, 60.0)],
        reason: "neither a partial nor an error",
        ..HARMFUL
    },
    // A message that is not in the contract answers nothing, so its frames are lost as well: 30 · 50.
    Lie {
        name: "extra_field",
        lie: "extra_field",
        parameters: THIRD,
        fault: "every third answer has a field more than the contract",
        gates: LOST_AND_FAULTY,
        counters: &[
            within("ledger.protocol_faults", 30.0, 60.0),
            within("ledger.frames_lost", 1350.0, 1650.0),
        ],
        reason: "neither a partial nor an error",
        ..HARMFUL
    },
    // The same for a message that names frames that were never sent.
    Lie {
        name: "wrong_seq",
        lie: "wrong_seq",
        parameters: THIRD,
        fault: "every third answer names frames that were never sent",
        gates: LOST_AND_FAULTY,
        counters: &[
            within("ledger.protocol_faults", 30.0, 60.0),
            within("ledger.frames_lost", 1350.0, 1650.0),
        ],
        reason: "names frames that were never sent",
        ..HARMFUL
    },
    // The client hangs up because of the declared length. All 30 die at their third answer, and lose it and everything
    // due since: the flush before it was at 2.1 to 3.1, so (4.2 − 2.6) · 50 · 30 = 2,400. And the message is not
    // buffered: 30 times what a socket holds is received at most, not 30 · 2 MiB.
    Lie {
        name: "oversize",
        lie: "oversize",
        parameters: THIRD,
        fault: "a frame of 2 MiB before every third answer",
        gates: &[
            "newest_p50_ms",
            "newest_p95_ms",
            "frames_lost",
            "sessions_died",
        ],
        gates_perhaps: &["oldest_p95_ms"],
        counters: &[
            exactly("ledger.sessions_died", 30),
            within("ledger.frames_lost", 2040.0, 2760.0),
            within("ledger.bytes_received", 1.0, 30.0 * 262_144.0),
        ],
        reason: "over the limit of",
        ..HARMFUL
    },
    // Three sessions in 30 get their last answer again every millisecond, from their first one after 2.1 (2.1 to 3.2)
    // until the answer that covers nothing measured (5.2 at the latest): 3 · 1000/s · 50 frames · 1 to 3.2 s. The other
    // sessions' latencies do not change: no latency gate fails, and p95 is that of an honest server.
    Lie {
        name: "flood",
        lie: "flood",
        parameters: &[("AFTER_MS", "2000")],
        fault: "one session in ten gets its last answer again every millisecond",
        gates: &["frames_duplicated"],
        counters: &[
            within("ledger.frames_duplicated", 150_000.0, 480_000.0),
            within("latency.newest.from_schedule.p95_ms", 75.0, 350.0),
        ],
        ..HARMFUL
    },
];
