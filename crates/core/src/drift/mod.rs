//! Drift: how latency, memory and CPU changed over the measured window, and when a change is a leak.
//!
//! Each slope has an interval that allows for autocorrelation ([`slope`]). Every trial whose window is long enough
//! reports the slopes. A soak also has two gates, [`RSS_GATE`] and [`LATENCY_GATE`].
//!
//! A gate observes the growth that is certain and continues. This is the smaller of these two:
//!
//! - **Certain:** the lower end of the slope's interval, so that noise is not growth: over the whole window or its last
//!   two thirds, whichever is greater. (Growth that begins late, or accelerates, is not a straight line; its bend
//!   widens the interval over the whole window.)
//! - **Continues:** the slope in the second third of the window, or in the last, whichever is less, so that a single
//!   event (a step, a pool that fills, an allocator that warms up) is not a leak.
//!
//! The threshold is the greater of
//!
//! - the value in the first third of the window, divided by [`DOUBLING_H`] hours. Memory limits are commonly set to
//!   about twice what is used. A server that gets there within a day does not survive the night; one that takes longer
//!   meets the next deployment first;
//! - the least growth that can be distinguished from none, divided by the window: [`RSS_RESOLUTION_BYTES`] for memory;
//!   for latency, what the client itself may distort (a twentieth of the tightest gate). So a short soak finds only
//!   large leaks, and a long one finds small ones: the threshold it shows includes its resolution.

mod slope;
#[cfg(test)]
mod synthetic;

pub use slope::{BLOCKS, CONFIDENCE, POINTS_MIN, Point, slope_per_hour};

use crate::record::{Drift, GateResult, Phase, Second};

/// The shortest window for which drift is reported, in seconds.
pub const WINDOW_MIN_S: f64 = 30.0;
/// A target whose memory or latency would double within this time does not pass a soak.
pub const DOUBLING_H: f64 = 24.0;
/// Memory that grows by less than this over a window does not count as growing: one huge page (x86-64 and aarch64 with
/// 4 KiB pages). The kernel may make all of it resident when its first byte is touched (Linux,
/// admin-guide/mm/transhuge).
pub const RSS_RESOLUTION_BYTES: f64 = 2_097_152.0;
/// Name of the gate on memory.
pub const RSS_GATE: &str = "rss_growth_bytes_per_session_hour";
/// Name of the gate on latency.
pub const LATENCY_GATE: &str = "newest_p95_growth_ms_per_hour";

/// Whether a gate of that name belongs to a soak. The thresholds of these gates differ from trial to trial.
#[must_use]
pub fn is_soak_gate(name: &str) -> bool {
    [RSS_GATE, LATENCY_GATE].contains(&name)
}

/// The measured window of a trial, second by second.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    lasts_h: f64,
    /// Open sessions, mean over the window.
    sessions_open: f64,
    newest_p95_ms: Vec<Point>,
    rss_bytes: Vec<Point>,
    cpu_cores: Vec<Point>,
}

impl Window {
    /// The measured rows of a trial; `None` if they cover less than [`WINDOW_MIN_S`] seconds.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds, sessions and bytes of a trial are far below 2^53"
    )]
    pub fn of(seconds: &[Second]) -> Option<Self> {
        let rows: Vec<&Second> = seconds
            .iter()
            .filter(|second| second.phase == Phase::Measured)
            .collect();
        let lasts_s = rows.len() as f64;
        if lasts_s < WINDOW_MIN_S {
            return None;
        }
        let points = |rows: &[&Second], of: fn(&Second) -> Option<f64>| -> Vec<Point> {
            let point = |row: &&Second| {
                let at_s = row.at_s as f64;
                of(row).map(|value| Point { at_s, value })
            };
            rows.iter().filter_map(point).collect()
        };
        Some(Self {
            lasts_h: lasts_s / 3600.0,
            sessions_open: rows.iter().map(|row| row.sessions_open as f64).sum::<f64>() / lasts_s,
            // The percentile of the first second has only its quick answers; the slow ones arrive in the next second.
            newest_p95_ms: points(&rows[1..], |row| row.newest_p95_ms),
            rss_bytes: points(&rows, |row| row.target_rss_bytes.map(|bytes| bytes as f64)),
            cpu_cores: points(&rows, |row| row.target_cpu_cores),
        })
    }

    /// Every slope that can be computed.
    #[must_use]
    pub fn drift(&self) -> Drift {
        let rss = slope_per_hour(&self.rss_bytes);
        Drift {
            newest_p95_ms_per_hour: slope_per_hour(&self.newest_p95_ms),
            rss_bytes_per_hour: rss,
            rss_bytes_per_session_hour: rss.filter(|_| self.sessions_open > 0.0).map(
                |mut slope| {
                    slope.value /= self.sessions_open;
                    slope.low /= self.sessions_open;
                    slope.high /= self.sessions_open;
                    slope
                },
            ),
            cpu_cores_per_hour: slope_per_hour(&self.cpu_cores),
        }
    }
}

/// The two gates of a soak. `resolution_ms` is how much the client may distort a latency. A gate without an observation
/// does not hold: a soak whose window is too short, without the target's memory, or without sessions has not shown that
/// nothing leaks.
#[must_use]
pub fn soak_gates(window: Option<&Window>, resolution_ms: f64) -> [GateResult; 2] {
    let rss = window
        .filter(|window| window.sessions_open > 0.0)
        .and_then(|window| {
            let growth = Growth::of(&window.rss_bytes)?;
            let limit = growth.limit_per_hour(RSS_RESOLUTION_BYTES, window.lasts_h);
            let per_session = |bytes_per_hour: f64| bytes_per_hour / window.sessions_open;
            Some((per_session(growth.per_hour), per_session(limit)))
        });
    let latency = window.and_then(|window| {
        let growth = Growth::of(&window.newest_p95_ms)?;
        let limit = growth.limit_per_hour(resolution_ms, window.lasts_h);
        Some((growth.per_hour, limit))
    });
    [gate(RSS_GATE, rss), gate(LATENCY_GATE, latency)]
}

/// Growth that is certain and continues.
struct Growth {
    /// Growth per hour; below zero if nothing grows for certain.
    per_hour: f64,
    /// Mean over the first third of the window.
    at_first: f64,
}

impl Growth {
    fn of(points: &[Point]) -> Option<Self> {
        let (first, rest) = points.split_at(points.len() / 3);
        let (second, last) = rest.split_at(rest.len() / 2);
        let whole = slope_per_hour(points)?.low;
        let certain = slope_per_hour(rest).map_or(whole, |later| later.low.max(whole));
        let goes_on = slope::plain_slope_per_hour(second)?.min(slope::plain_slope_per_hour(last)?);
        Some(Self {
            per_hour: certain.min(goes_on),
            at_first: slope::mean(first, |point| point.value),
        })
    }

    /// The most growth that passes. `resolution` is the growth over the window that cannot be distinguished from none.
    fn limit_per_hour(&self, resolution: f64, window_h: f64) -> f64 {
        (self.at_first / DOUBLING_H).max(resolution / window_h)
    }
}

fn gate(name: &str, observed_and_threshold: Option<(f64, f64)>) -> GateResult {
    let (observed, threshold) = observed_and_threshold.unzip();
    let threshold = threshold.unwrap_or(0.0);
    GateResult {
        name: name.to_owned(),
        threshold,
        observed,
        pass: observed.is_some_and(|value| value <= threshold),
    }
}

#[cfg(test)]
mod tests;
