//! Where the edge lies, with its confidence, from all trials of a search.
//!
//! The **edge** is the load at which half of the full trials pass, apart from disturbances. [`EdgePosterior`] is a
//! Bayesian posterior for it, recomputed from the counts per load. So the order of the trials does not matter, and
//! nothing needs to be kept between them.
//!
//! # The model
//!
//! A full trial at load `x` passes with probability
//!
//! ```text
//! g + (1 - g - f) / (1 + c · exp((ln x - ln edge) / s))
//! ```
//!
//! `s` is the softness of the edge, `f` the share of trials that fail by a disturbance at any load, and `g` the small
//! share that passes by accident; `c` makes the probability one half at the edge. None of them is known, so all are
//! weighed. The priors are the constants of this module. The prior of the edge is flat on a logarithmic scale, from an
//! eighth of the lowest load tried to eight times the highest. A short trial has the same edge with an additional blur
//! ([`SHORT_BLUR`]), wide enough for short trials that flatter the target by a few per cent. So short trials say much
//! about loads far away and little about loads near by.
//!
//! Trials on one machine are not independent draws (the machine drifts, or is disturbed for a while), so their evidence
//! is discounted: the likelihood is raised to the power [`EVIDENCE_WORTH`] (a "power posterior").
//!
//! Fails at a load where more than two thirds of the trials were invalid do not count: the measurement was at its limit
//! there, and what it let through says little about the target. (Half would be too strict: on a small machine, a target
//! that is overloaded makes the client late.) Passes do count: a weak client does not make a target look better.

use crate::profile::Length;
use crate::record::{Edge, LoadEvidence};

/// How soft edges may be (the scale of the logistic, as a share of the load), with prior weights. The softest value
/// stands for an edge that wanders by a sixth of its value during the search. The less weight it has, the more of the
/// intervals of such servers miss the edge.
const SOFTNESS: [(f64, f64); 5] = [
    (0.003, 0.15),
    (0.01, 0.25),
    (0.025, 0.25),
    (0.06, 0.2),
    (0.15, 0.15),
];
/// Share of trials that may fail by a disturbance, with prior weights.
const FALSE_FAILS: [(f64, f64); 3] = [(0.005, 0.5), (0.03, 0.3), (0.12, 0.2)];
/// Share of trials that pass by accident.
const FALSE_PASSES: f64 = 0.005;
/// Added to the softness for short trials.
const SHORT_BLUR: f64 = 0.025;
/// How much a trial counts, compared with an independent one.
const EVIDENCE_WORTH: f64 = 0.9;

/// Fails count at a load with at most so many invalid trials for each valid one.
pub(super) const INVALID_PER_VALID: u32 = 2;

/// Cells less likely than this do not matter for the choice of the next trial.
const NEGLIGIBLE: f64 = 1e-6;
/// Natural logarithm of how far the edge may lie from the loads tried.
const BEYOND_LN: f64 = 2.08;
/// Number of cells on each side beyond the loads tried.
const CELLS_BEYOND: usize = 8;
/// Width of a cell between two neighbouring loads, unless that makes too many cells.
const CELL_LN: f64 = 0.0025;
/// The most cells between two neighbouring loads; see [`CELL_LN`].
const CELLS_BETWEEN_MAX: f64 = 8.0;

/// The posterior distribution of the edge; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
pub struct EdgePosterior {
    /// Logarithms of the cells' bounds, ascending; one more than there are cells. The density is flat within a cell.
    bounds_ln: Vec<f64>,
    /// For each pair of softness and false fails, the weight of each cell.
    weights: Vec<Vec<f64>>,
    /// The cells that matter for the choice of the next trial, aligned with `weights`.
    cells: Vec<Cell>,
    /// The probability of each cell; the sum is 1.
    mass: Vec<f64>,
    /// The highest load at which a trial passed.
    highest_pass: u32,
    /// The highest load with a verdict that counts.
    highest_tried: u32,
}

/// A range of the logarithm of the edge.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    centre_ln: f64,
    width_ln: f64,
}

/// The counts of a load that say something about the target.
#[derive(Debug, Clone, Copy)]
struct Counted {
    load: u32,
    passed: u32,
    failed: u32,
    short_passed: u32,
    short_failed: u32,
}

impl Counted {
    fn of(evidence: &LoadEvidence) -> Option<Self> {
        let &LoadEvidence {
            sessions: load,
            passed,
            short_passed,
            invalid,
            ..
        } = evidence;
        let valid = passed + evidence.failed + short_passed + evidence.short_failed;
        let (failed, short_failed) = if invalid > INVALID_PER_VALID * valid {
            (0, 0)
        } else {
            (evidence.failed, evidence.short_failed)
        };
        let any = passed + failed + short_passed + short_failed > 0;
        (load > 0 && any).then_some(Self {
            load,
            passed,
            failed,
            short_passed,
            short_failed,
        })
    }
}

impl EdgePosterior {
    /// The posterior from all trials; `None` if none passed, because the edge may then lie anywhere below.
    #[must_use]
    pub fn of(evidence: &[LoadEvidence]) -> Option<Self> {
        let mut counted: Vec<Counted> = evidence.iter().filter_map(Counted::of).collect();
        counted.sort_unstable_by_key(|counts| counts.load);
        let passes = |counts: &&Counted| counts.passed + counts.short_passed > 0;
        let highest_pass = counted.iter().rfind(passes)?.load;
        let highest_tried = counted.last()?.load;
        let mut loads_ln: Vec<f64> = counted.iter().map(|c| f64::from(c.load).ln()).collect();
        // The counts of a load may come in several pieces, and a cell without width would have no density.
        loads_ln.dedup();
        let bounds_ln = bounds(&loads_ln);
        let cells: Vec<Cell> = bounds_ln
            .windows(2)
            .map(|pair| Cell {
                centre_ln: (pair[0] + pair[1]) / 2.0,
                width_ln: pair[1] - pair[0],
            })
            .collect();
        let weights = weights(&cells, &counted);
        let mut mass: Vec<f64> = (0..cells.len())
            .map(|cell| weights.iter().map(|of_pair| of_pair[cell]).sum())
            .collect();
        let total: f64 = mass.iter().sum();
        mass.iter_mut().for_each(|m| *m /= total);
        let mut posterior = Self {
            bounds_ln,
            weights,
            cells,
            mass,
            highest_pass,
            highest_tried,
        };
        posterior.drop_unlikely_cells();
        Some(posterior)
    }

    /// Reduces `weights` and `cells` to what matters for the next choice.
    fn drop_unlikely_cells(&mut self) {
        let matters: Vec<bool> = self.mass.iter().map(|mass| *mass > NEGLIGIBLE).collect();
        let mut keep = matters.iter();
        self.cells.retain(|_| *keep.next().unwrap_or(&true));
        for of_pair in &mut self.weights {
            let mut keep = matters.iter();
            of_pair.retain(|_| *keep.next().unwrap_or(&true));
        }
    }

    /// The load below which the edge lies with probability `q`, in sessions. `q` is clamped to 0 to 1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> f64 {
        let q = if q.is_finite() {
            q.clamp(0.0, 1.0)
        } else {
            0.5
        };
        let mut below = 0.0;
        for (cell, mass) in self.mass.iter().enumerate() {
            if below + mass >= q && *mass > 0.0 {
                let (low, high) = (self.bounds_ln[cell], self.bounds_ln[cell + 1]);
                return (low + (high - low) * (q - below) / mass).exp();
            }
            below += mass;
        }
        // Reached only through rounding.
        self.bounds_ln.last().map_or(f64::INFINITY, |ln| ln.exp())
    }

    /// The probability that the edge lies below that load.
    #[must_use]
    pub fn below(&self, load: f64) -> f64 {
        let ln = load.max(f64::MIN_POSITIVE).ln();
        let of_cell = |(cell, mass): (usize, &f64)| {
            let (low, high) = (self.bounds_ln[cell], self.bounds_ln[cell + 1]);
            mass * ((ln - low) / (high - low)).clamp(0.0, 1.0)
        };
        self.mass.iter().enumerate().map(of_cell).sum()
    }

    /// The median, with the interval between the quantiles that leave out half of `1 - confidence` on either side.
    ///
    /// If the upper end lies above every load tried, no trial bounds it: `high` is `None`, and `low` and `value` are at
    /// most the highest load that passed.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Edge {
        let tail = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
        let (low, value, high) = (
            self.quantile(tail),
            self.quantile(0.5),
            self.quantile(1.0 - tail),
        );
        if high <= f64::from(self.highest_tried) {
            return Edge {
                value,
                low,
                high: Some(high),
                confidence,
            };
        }
        let shown = f64::from(self.highest_pass);
        Edge {
            value: value.min(shown),
            low: low.min(shown),
            high: None,
            confidence,
        }
    }

    /// The bits that the verdict of a trial at `load` is expected to say about the edge: their mutual information.
    pub(super) fn expected_bits(&self, load: u32, length: Length) -> f64 {
        let load_ln = f64::from(load.max(1)).ln();
        let blur = blur(length);
        let mut odds = vec![0.0; self.cells.len()];
        // For each cell, its weight if the trial passes, and its weight now.
        let mut sums = vec![(0.0, 0.0); self.cells.len()];
        for ((softness, _), of_softness) in
            SOFTNESS.iter().zip(self.weights.chunks(FALSE_FAILS.len()))
        {
            against(&mut odds, &self.cells, load_ln, softness + blur);
            for (of_pair, (share, _)) in of_softness.iter().zip(FALSE_FAILS) {
                let curve = PassCurve::of(share);
                for (((passing, all), weight), odds) in sums.iter_mut().zip(of_pair).zip(&odds) {
                    *passing += weight * curve.at(*odds);
                    *all += weight;
                }
            }
        }
        let (mut passing, mut all, mut left) = (0.0, 0.0, 0.0);
        for (of_cell, weight) in sums.into_iter().filter(|(_, weight)| *weight > 0.0) {
            passing += of_cell;
            all += weight;
            left += weight * entropy(of_cell / weight);
        }
        entropy(passing / all) - left / all
    }
}

/// The entropy, in bits, of a verdict that is a pass with this probability.
fn entropy(pass: f64) -> f64 {
    let of = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    of(pass) + of(1.0 - pass)
}

fn blur(length: Length) -> f64 {
    match length {
        Length::Full => 0.0,
        Length::Short => SHORT_BLUR,
    }
}

/// How the share of passes grows with the distance of a load below the edge.
struct PassCurve {
    share: f64,
    /// Shifts the logistic so that half of the trials pass at distance zero.
    odds: f64,
}

impl PassCurve {
    fn of(false_fails: f64) -> Self {
        let share = 1.0 - FALSE_PASSES - false_fails;
        let half = (0.5 - FALSE_PASSES) / share;
        Self {
            share,
            odds: (1.0 - half) / half,
        }
    }

    /// The share of passes at the odds from [`against`].
    fn at(&self, against: f64) -> f64 {
        FALSE_PASSES + self.share / (1.0 + self.odds * against)
    }
}

/// For each cell, the odds against a trial at that load, apart from disturbances.
fn against(odds: &mut [f64], cells: &[Cell], load_ln: f64, softness: f64) {
    for (odds, cell) in odds.iter_mut().zip(cells) {
        // Beyond this, the exponential changes nothing.
        let z = ((load_ln - cell.centre_ln) / softness).clamp(-30.0, 30.0);
        *odds = z.exp();
    }
}

/// Divides the range of the edge so that it is fine where the loads tried are close together.
fn bounds(loads_ln: &[f64]) -> Vec<f64> {
    let (first, last) = (loads_ln[0], loads_ln[loads_ln.len() - 1]);
    let beyond = |i: usize| BEYOND_LN * (i as f64 / CELLS_BEYOND as f64).powi(2);
    let mut bounds: Vec<f64> = (1..=CELLS_BEYOND)
        .rev()
        .map(|i| first - beyond(i))
        .collect();
    for pair in loads_ln.windows(2) {
        let gap = pair[1] - pair[0];
        let cells = (gap / CELL_LN).ceil().clamp(1.0, CELLS_BETWEEN_MAX);
        bounds.extend((0..cells as u32).map(|i| pair[0] + gap * f64::from(i) / cells));
    }
    bounds.extend((0..=CELLS_BEYOND).map(|i| last + beyond(i)));
    bounds
}

/// Prior times likelihood, for each pair in each cell.
fn weights(cells: &[Cell], counted: &[Counted]) -> Vec<Vec<f64>> {
    let mut weights = vec![vec![1.0; cells.len()]; SOFTNESS.len() * FALSE_FAILS.len()];
    let mut odds = vec![0.0; cells.len()];
    for counts in counted {
        let load_ln = f64::from(counts.load).ln();
        let kinds = [
            (counts.passed, counts.failed, 0.0),
            (counts.short_passed, counts.short_failed, SHORT_BLUR),
        ];
        for (passed, failed, blur) in kinds {
            if passed + failed == 0 {
                continue;
            }
            let (passed, failed) = (passed.cast_signed(), failed.cast_signed());
            for ((softness, _), of_softness) in
                SOFTNESS.iter().zip(weights.chunks_mut(FALSE_FAILS.len()))
            {
                against(&mut odds, cells, load_ln, softness + blur);
                for (of_pair, (share, _)) in of_softness.iter_mut().zip(FALSE_FAILS) {
                    let curve = PassCurve::of(share);
                    for (weight, odds) in of_pair.iter_mut().zip(&odds) {
                        let pass = curve.at(*odds);
                        *weight *= pass.powi(passed) * (1.0 - pass).powi(failed);
                    }
                }
            }
        }
        // Only ratios of weights matter; scaling them keeps long searches from underflow.
        let greatest = weights.iter().flatten().copied().fold(0.0, f64::max);
        weights.iter_mut().flatten().for_each(|w| *w /= greatest);
    }
    let priors = SOFTNESS
        .iter()
        .flat_map(|(_, softness)| FALSE_FAILS.iter().map(move |(_, share)| softness * share));
    for (of_pair, prior) in weights.iter_mut().zip(priors) {
        for (weight, cell) in of_pair.iter_mut().zip(cells) {
            *weight = weight.powf(EVIDENCE_WORTH) * prior * cell.width_ln;
        }
    }
    weights
}

#[cfg(test)]
pub(crate) mod tests;
