//! Every lie and what a trial must report about it, with the arithmetic.
//!
//! All of it rests on this timeline, in seconds of the trial. Sessions connect in `0..0.2` and start at once. Each
//! flushes once a second, with a jitter that the server draws from `0..1`. So its k-th answer comes in `k..k+1.2` (and
//! 75 ms later) and covers one second of audio, 50 frames. With `LIE_EVERY=3` the third answer is struck: it comes in
//! `3..4.3` and covers frames due in `2..4.2`, all of which are measured (`1.2..4.2`, [`super::entry::SHORT`]). The
//! sixth comes after 6 and covers nothing measured. So such a lie strikes exactly one measured answer of each session:
//! 30 · 50 = 1,500 frames.
//!
//! The server draws the jitter, without a seed. A session's share of a sum that rests on it is uniform over 50 frames,
//! with a standard deviation of 14.4; for 30 sessions it is 79. Bounds are ± 360 frames, 4.5 of those. Flushes are not
//! punctual to the frame: where a batch is counted, it is one second of audio ± 10 %.

mod answers;
mod connections;
mod processes;
mod time;

use super::entry::Lie;

/// All of them, in the table's order.
pub(crate) fn all() -> impl Iterator<Item = &'static Lie> {
    [
        time::LIES,
        answers::LIES,
        connections::LIES,
        processes::LIES,
    ]
    .into_iter()
    .flatten()
}

/// The lie with this name.
pub(crate) fn named(name: &str) -> &'static Lie {
    let found = all().find(|lie| lie.name == name);
    found.unwrap_or_else(|| panic!("no {name} in the table"))
}
