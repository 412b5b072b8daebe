//! Compares two targets, or two results: which differences are shown, and which are noise.
//!
//! All ratios are `b / a`: `a` is the baseline.
//!
//! - `order`: the order in which pairs of trials run, so that a drift of the machine affects both sides alike;
//! - `cost`: the ratio of CPU time per session-second, from pairs of trials or from two separate sets of them;
//! - `carrying`: which side carries a load that the other does not, from pairs of trials;
//! - `load_line`: the ratio of two edges, each of which is known as a distribution;
//! - `pairs`: everything that pairs of trials and two edges show, with the error divided among the statements;
//! - `verdict`: the conclusion from all of these, in one word and one sentence;
//! - `differences`: whether two trials were run under the same conditions at all;
//! - `folders`: two sets of trials that were measured apart from each other.
//!
//! # How often it is wrong
//!
//! Two statements, each of which may be wrong by chance, would together raise twice as many false alarms. So the
//! requested confidence is that of *all* statements together ([`confidence_of_each`], Bonferroni's inequality). With
//! 0.95 and two equal sides, at most 5 of 100 comparisons claim a difference. That holds for pairs that were
//! interleaved in one session. Two folders were measured at different times: what changed in between is in the ratio,
//! but not in its interval.

mod carrying;
mod cost;
mod differences;
mod folders;
mod load_line;
mod order;
mod pairs;
mod verdict;

pub use carrying::{carried, sign_test_p, unanimous_pairs_needed};
pub use cost::{CostsAtLoad, paired_cost_ratio, unpaired_cost_ratio};
pub use differences::{Difference, differences, differences_of_targets};
pub use folders::{Incomparable, Measured, compare_measured};
pub use load_line::{edge_of, load_line_ratio};
pub use order::b_goes_first;
pub use pairs::{costs_of_pairs, findings_of_pairs};
pub use verdict::{Findings, Judgement, conclude};

/// The confidence that each of `statements` statements needs so that all of them hold together with `confidence`. By
/// Bonferroni's inequality, the error `1 − confidence` is divided evenly.
#[must_use]
pub fn confidence_of_each(confidence: f64, statements: u32) -> f64 {
    1.0 - (1.0 - confidence) / f64::from(statements.max(1))
}

#[cfg(test)]
mod tests;
