//! Finds the highest load at which something holds: the client is on time, or a server answers.

use crate::error::Result;

/// How often a load is tried. If it was too much, it is tried once more, because a shared machine has bad seconds that are
/// not a limit.
const ATTEMPTS: u32 = 2;

/// The ratio of a load to the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// After a load that holds.
    pub(super) up: f64,
    /// After one that does not.
    pub(super) down: f64,
}

impl Step {
    /// A tenth: near the limit.
    pub(super) const TENTH: Self = Self { up: 1.1, down: 0.9 };
    /// Doubled and halved: where nothing is known.
    pub(super) const DOUBLE: Self = Self { up: 2.0, down: 0.5 };
}

/// A search from a guess, down or up from there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    /// The first load to try, which follows from the cost.
    pub(super) guess: f64,
    /// Loads are multiples of this, and at least this. It is not zero.
    pub(super) grain: u32,
    /// The highest load to try.
    pub(super) max: u32,
    /// The most loads to try.
    pub(super) loads: u32,
    /// How far the next load is.
    pub(super) step: Step,
}

impl Search {
    /// The highest load for which `attempt` returns an answer, with that answer; `None` if there is none.
    ///
    /// # Errors
    /// As `attempt`.
    pub(super) fn greatest<T>(
        self,
        mut attempt: impl FnMut(u32) -> Result<Option<T>>,
    ) -> Result<Option<(u32, T)>> {
        let mut attempts = |load| -> Result<Option<T>> {
            for _ in 0..ATTEMPTS {
                if let Some(answer) = attempt(load)? {
                    return Ok(Some(answer));
                }
            }
            Ok(None)
        };
        let mut load = self.rounded(self.guess).min(self.max);
        let mut best = None;
        let mut failed_above = false;
        for _ in 0..self.loads {
            if let Some(answer) = attempts(load)? {
                best = Some((load, answer));
                if failed_above || load >= self.max {
                    break;
                }
                let up = self.rounded(f64::from(load) * self.step.up);
                load = up.max(load + self.grain).min(self.max);
            } else {
                if best.is_some() || load <= self.grain {
                    break;
                }
                failed_above = true;
                load = self.rounded(f64::from(load) * self.step.down);
            }
        }
        Ok(best)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded down, and clamped; what is no number is the least"
    )]
    fn rounded(self, load: f64) -> u32 {
        let grains = (load / f64::from(self.grain)) as u32;
        grains.clamp(1, 1_000_000).saturating_mul(self.grain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with a client that is on time up to a limit. Returns the load found, and the loads that were tried.
    fn found(search: Search, limit: u32) -> (Option<u32>, Vec<u32>) {
        let mut tried = Vec::new();
        let best = search.greatest(|load| {
            tried.push(load);
            Ok((load <= limit).then_some(()))
        });
        (best.expect("no error").map(|(load, ())| load), tried)
    }

    const SEARCH: Search = Search {
        guess: 1_040.0,
        grain: 50,
        max: 10_000,
        loads: 10,
        step: Step::TENTH,
    };

    #[test]
    fn up_until_it_is_late_twice() {
        let (best, tried) = found(SEARCH, 1_120);
        assert_eq!(best, Some(1_100));
        assert_eq!(tried, [1_000, 1_100, 1_200, 1_200]);
    }

    #[test]
    fn down_until_it_is_on_time() {
        let (best, tried) = found(SEARCH, 860);
        assert_eq!(best, Some(800));
        assert_eq!(tried, [1_000, 1_000, 900, 900, 800]);
    }

    #[test]
    fn a_small_load_still_grows_and_shrinks() {
        let small = Search {
            guess: 3.7,
            grain: 1,
            max: 6,
            ..SEARCH
        };
        assert_eq!(found(small, 100), (Some(6), vec![3, 4, 5, 6]));
        assert_eq!(found(small, 1), (Some(1), vec![3, 3, 2, 2, 1]));
        assert_eq!(found(small, 0).0, None);
        let nothing_known = Search {
            guess: f64::NAN,
            ..SEARCH
        };
        assert_eq!(found(nothing_known, 0), (None, vec![50, 50]));
    }

    #[test]
    fn a_coarse_search_doubles_and_halves() {
        let coarse = Search {
            guess: 10.0,
            grain: 1,
            max: 100,
            step: Step::DOUBLE,
            ..SEARCH
        };
        assert_eq!(found(coarse, 45), (Some(40), vec![10, 20, 40, 80, 80]));
        assert_eq!(found(coarse, 300), (Some(100), vec![10, 20, 40, 80, 100]));
        assert_eq!(found(coarse, 3), (Some(2), vec![10, 10, 5, 5, 2]));
    }

    #[test]
    fn it_gives_up() {
        let search = Search { loads: 2, ..SEARCH };
        assert_eq!(found(search, 100), (None, vec![1_000, 1_000, 900, 900]));
        assert_eq!(found(search, 9_000), (Some(1_100), vec![1_000, 1_100]));
    }

    #[test]
    fn one_bad_run_is_no_limit() {
        let mut runs = 0;
        let best = SEARCH.greatest(|load| {
            runs += 1;
            Ok((runs != 1 && load <= 1_000).then_some(load))
        });
        assert_eq!(best.expect("no error"), Some((1_000, 1_000)));
    }
}
