//! Measures several targets at one load, in rounds. In each round every target has one trial, in a newly drawn order,
//! so that changes of the machine affect all targets alike.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::profile::Length;
use plimsoll_core::ranking::turns;
use plimsoll_core::record::{Trial, Verdict};
use plimsoll_core::schedule::mix;
use plimsoll_host::signals::Stop;

use crate::campaign::{Campaign, Contender, KeptTrial, Observer, Wanted, must_be_the_same_target};
use crate::error::{Error, Result};

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct RoundsPlan {
    /// The load.
    pub sessions: u32,
    /// The number of rounds.
    pub rounds: u32,
    /// The seed of the order and of the trials.
    pub seed: u64,
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// The trials of each contender, in the order of the contenders. Each comes with the name under which it was kept.
    pub trials: Vec<Vec<(Trial, String)>>,
    /// Whether something ended the measurement early.
    pub interrupted: bool,
    /// The error that ended it early, unless it was a signal.
    pub cut_short: Option<Error>,
}

/// Runs the rounds. An invalid trial is repeated once at the end of its round, unless no further trial can be better.
///
/// `earlier` has the trials of each contender from before; those of these rounds are not run again.
#[must_use]
pub fn measure(
    contenders: &[Contender<'_>],
    plan: RoundsPlan,
    earlier: &[&[KeptTrial]],
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Measured {
    let mut bench = RealBench {
        campaign: Campaign::new(contenders, stop, observer),
        plan,
        earlier,
    };
    let mut trials = vec![Vec::new(); contenders.len()];
    let ended = rounds(&mut bench, plan, &mut trials);
    Measured {
        trials,
        interrupted: ended.is_err(),
        cut_short: ended
            .err()
            .filter(|error| !matches!(error, Error::Interrupted(_))),
    }
}

/// A trial that has run, with what decides whether it is repeated.
struct Ran<T> {
    invalid: bool,
    /// No further trial of this contender can be better.
    hopeless: bool,
    kept: T,
}

/// Where trials run: on the machine, or from a table in tests.
trait Bench<T> {
    /// Runs a trial of one contender. If a signal cut the trial short, it is kept and an error is returned.
    fn run(&mut self, which: usize, seed: u64, trials_left: u32) -> Result<Ran<T>>;
}

struct RealBench<'a> {
    campaign: Campaign<'a>,
    plan: RoundsPlan,
    earlier: &'a [&'a [KeptTrial]],
}

impl Bench<(Trial, String)> for RealBench<'_> {
    fn run(&mut self, which: usize, seed: u64, trials_left: u32) -> Result<Ran<(Trial, String)>> {
        // No other trial of this load has this seed.
        let known = |kept: &&KeptTrial| {
            (kept.trial.sessions, kept.trial.seed) == (self.plan.sessions, seed)
        };
        let earlier = self.earlier[which];
        let KeptTrial { trial, file } = match earlier.iter().find(known) {
            Some(kept) => kept.clone(),
            None => self.campaign.run_if(
                &Wanted {
                    which,
                    sessions: self.plan.sessions,
                    length: Length::Full,
                    seed,
                    why: "cost at the common load",
                    trials_left,
                },
                |trial| {
                    let first = earlier.first();
                    first.map_or(Ok(()), |first| must_be_the_same_target(&first.trial, trial))
                },
            )?,
        };
        if trial.interrupted {
            return Err(Error::Interrupted("measuring costs".to_owned()));
        }
        Ok(Ran {
            invalid: trial.verdict == Verdict::Invalid,
            hopeless: trial.caveats.iter().any(Caveat::hopeless),
            kept: (trial, file),
        })
    }
}

fn rounds<T>(bench: &mut dyn Bench<T>, plan: RoundsPlan, trials: &mut [Vec<T>]) -> Result<()> {
    let count = trials.len();
    let all = u32::try_from(count).unwrap_or(u32::MAX);
    let mut hopeless = vec![false; count];
    for round in 0..plan.rounds {
        let left_after = (plan.rounds - round - 1) * all;
        let mut again = Vec::new();
        // The first trials of a round share a seed, and so do its repetitions. No other round has these seeds.
        let seed =
            |attempt: u64| mix(plan.seed ^ (u64::from(round) << 8 | attempt | 1 << 41)) >> 32;
        for (left, which) in (0..all).rev().zip(turns(count, round, plan.seed)) {
            if hopeless[which] {
                continue;
            }
            let ran = bench.run(which, seed(0), left_after + left + 1)?;
            if ran.invalid {
                hopeless[which] = ran.hopeless;
                again.push(which);
            }
            trials[which].push(ran.kept);
        }
        for which in again.into_iter().filter(|which| !hopeless[*which]) {
            let ran = bench.run(which, seed(1), left_after + 1)?;
            trials[which].push(ran.kept);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers from a table, and records which contender was asked.
    struct Table {
        /// How many of contender 1's first trials are invalid.
        invalid: usize,
        hopeless: bool,
        asked: Vec<(usize, u64)>,
    }

    impl Bench<u64> for Table {
        fn run(&mut self, which: usize, seed: u64, _left: u32) -> Result<Ran<u64>> {
            let before = self.asked.iter().filter(|(asked, _)| *asked == 1).count();
            if self.asked.len() == 20 {
                return Err(Error::Interrupted("a test".to_owned()));
            }
            self.asked.push((which, seed));
            Ok(Ran {
                invalid: which == 1 && before < self.invalid,
                hopeless: self.hopeless,
                kept: seed,
            })
        }
    }

    fn ran(invalid: usize, hopeless: bool, rounds: u32) -> (Table, Vec<Vec<u64>>, Result<()>) {
        let plan = RoundsPlan {
            sessions: 100,
            rounds,
            seed: 7,
        };
        let mut table = Table {
            invalid,
            hopeless,
            asked: Vec::new(),
        };
        let mut trials = vec![Vec::new(); 3];
        let ended = super::rounds(&mut table, plan, &mut trials);
        (table, trials, ended)
    }

    #[test]
    fn each_round_has_each_once_with_one_seed() {
        let (table, trials, ended) = ran(0, false, 3);
        assert!(ended.is_ok());
        assert!(trials.iter().all(|trials| trials.len() == 3));
        for round in table.asked.chunks(3) {
            let mut who: Vec<_> = round.iter().map(|(who, _)| *who).collect();
            who.sort_unstable();
            assert_eq!(who, [0, 1, 2]);
            assert!(round.iter().all(|(_, seed)| *seed == round[0].1));
        }
        assert_ne!(table.asked[0].1, table.asked[3].1);
    }

    #[test]
    fn an_invalid_trial_is_run_again_once_within_its_round() {
        let (table, trials, _) = ran(1, false, 2);
        assert_eq!(table.asked[3].0, 1);
        assert_ne!(table.asked[3].1, table.asked[0].1);
        assert_eq!(trials[1].len(), 3);
        assert_eq!(trials[0].len(), 2);
        let (_, trials, _) = ran(99, false, 2);
        assert_eq!(trials[1].len(), 4);
    }

    #[test]
    fn what_is_hopeless_is_not_tried_again() {
        let (_, trials, _) = ran(99, true, 3);
        let lengths: Vec<_> = trials.iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 1, 3]);
    }

    #[test]
    fn what_was_measured_before_an_interruption_is_kept() {
        let (_, trials, ended) = ran(0, false, 10);
        assert!(ended.is_err());
        assert_eq!(trials.iter().map(Vec::len).sum::<usize>(), 20);
    }
}
