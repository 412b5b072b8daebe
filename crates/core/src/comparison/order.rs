//! The order in which the two sides of a pair run.

use crate::schedule::mix;

/// Whether `b` runs before `a` in this pair, counted from 0.
///
/// In every block of two pairs, one begins with `a` and one with `b` (ABBA or BAAB; the seed decides which). So a
/// steady drift of the machine, and any effect of the first trial on the second, affects both sides alike.
#[must_use]
pub fn b_goes_first(pair: u32, seed: u64) -> bool {
    let block = u64::from(pair / 2);
    let first_of_block = mix(mix(seed) ^ block) & 1 == 1;
    first_of_block ^ (pair % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_two_is_balanced_and_seeds_differ() {
        for seed in 0..50 {
            for block in 0..10 {
                assert_ne!(
                    b_goes_first(2 * block, seed),
                    b_goes_first(2 * block + 1, seed)
                );
            }
        }
        let firsts = (0..400).filter(|seed| b_goes_first(0, *seed)).count();
        assert!((150..250).contains(&firsts), "{firsts}");
    }
}
