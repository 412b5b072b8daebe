//! Synthetic series for the tests.

use super::slope::Point;
use crate::schedule::mix;

/// A series with one point per second.
pub(super) fn series(seconds: usize, mut value: impl FnMut(f64) -> f64) -> Vec<Point> {
    (0..seconds)
        .map(|second| {
            let at_s = f64::from(u32::try_from(second).unwrap());
            Point {
                at_s,
                value: value(at_s),
            }
        })
        .collect()
}

/// A stationary AR(1) series: each value is `autocorrelation` times the previous one plus a standard normal draw.
pub(super) struct Noise {
    seed: u64,
    autocorrelation: f64,
    last: f64,
}

impl Noise {
    pub(super) fn new(seed: u64, autocorrelation: f64) -> Self {
        let mut noise = Self {
            seed: mix(seed),
            autocorrelation,
            last: 0.0,
        };
        noise.last = noise.normal() / (1.0 - autocorrelation * autocorrelation).sqrt();
        noise
    }

    pub(super) fn next(&mut self) -> f64 {
        self.last = self.autocorrelation * self.last + self.normal();
        self.last
    }

    /// A standard normal value, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform(), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Uniform in `0 < u <= 1`, so that the logarithm exists.
    pub(super) fn uniform(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(1);
        let bits = u32::try_from(mix(self.seed) >> 32).unwrap();
        (f64::from(bits) + 1.0) / 4_294_967_296.0
    }
}
