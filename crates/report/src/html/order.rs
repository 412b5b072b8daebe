//! Decides which trials get the available room: the most informative ones first.

use std::collections::BTreeSet;

use plimsoll_core::record::Verdict;

use crate::choice;
use crate::folder::{Results, StoredTrial};

/// How many invalid trials of a search or of a comparison show their seconds. More would only repeat the same reason.
pub(super) const INVALID_MAX: usize = 6;
/// How many trials of a comparison's pairs show their seconds: two pairs.
const OF_PAIRS_MAX: usize = 4;

/// A trial, and why its seconds need not be shown.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    pub(super) stored: StoredTrial,
    /// `None` when they are worth showing.
    pub(super) passed_over: Option<&'static str>,
}

const FAR: &str = "valid, but not chosen to represent a load near the edge";
const ENOUGH: &str = "invalid, like others that are shown";
const OTHER_PAIRS: &str = "valid, but not in the first two pairs";

/// Every trial of a folder once. Those of a search are as its first SLO judges them.
pub(super) fn of(results: &Results) -> Vec<Ranked> {
    let mut order = Order::default();
    if let Some(view) = results.searches().first() {
        let of_search = view.of_search();
        let line = choice::most_telling(Some(view.bracket), &of_search);
        order.worth_showing(line);
        order.worth_showing(choice::around_edge(view));
        order.invalid(of_search.iter().copied());
        order.passed_over(of_search, FAR);
    }
    if results.comparison.is_some() {
        order.invalid(results.trials.iter());
        order.worth_showing(results.trials.iter().take(OF_PAIRS_MAX));
        order.passed_over(&results.trials, OTHER_PAIRS);
    }
    order.worth_showing(results.other_trials());
    // Trials that only a further SLO's record names.
    order.passed_over(&results.trials, FAR);
    order.ranked
}

#[derive(Default)]
struct Order {
    ranked: Vec<Ranked>,
    stems: BTreeSet<String>,
}

impl Order {
    fn worth_showing<'a>(&mut self, trials: impl IntoIterator<Item = &'a StoredTrial>) {
        for stored in trials {
            self.add(stored, None);
        }
    }

    fn passed_over<'a>(
        &mut self,
        trials: impl IntoIterator<Item = &'a StoredTrial>,
        why: &'static str,
    ) {
        for stored in trials {
            self.add(stored, Some(why));
        }
    }

    /// The first invalid trials are worth showing, the others are not.
    fn invalid<'a>(&mut self, trials: impl Iterator<Item = &'a StoredTrial>) {
        let invalid = trials.filter(|stored| stored.trial.verdict == Verdict::Invalid);
        for (index, stored) in invalid.enumerate() {
            self.add(stored, (index >= INVALID_MAX).then_some(ENOUGH));
        }
    }

    /// Does not add a trial twice: the first call decides.
    fn add(&mut self, stored: &StoredTrial, passed_over: Option<&'static str>) {
        if self.stems.insert(stored.stem.clone()) {
            self.ranked.push(Ranked {
                stored: stored.clone(),
                passed_over,
            });
        }
    }
}
