//! Counters summed over members that come and go: processes of a tree, threads of a process.
//!
//! A member that ends takes its counters with it. What it had when last seen is kept, so the sum never runs backwards.
//! What it counted after that is lost, at most one sampling interval's worth. (A control group loses nothing.)

use std::collections::BTreeMap;

/// The sum of `N` counters over members identified by `Key`.
#[derive(Debug, Clone)]
pub(super) struct Members<Key, const N: usize> {
    last: BTreeMap<Key, [u64; N]>,
    gone: [u64; N],
}

impl<Key: Ord, const N: usize> Default for Members<Key, N> {
    fn default() -> Self {
        Self {
            last: BTreeMap::new(),
            gone: [0; N],
        }
    }
}

impl<Key: Ord, const N: usize> Members<Key, N> {
    /// Takes the current counters of every living member. Returns the sums over all members that ever existed.
    pub(super) fn update(&mut self, now: BTreeMap<Key, [u64; N]>) -> [u64; N] {
        for (member, last) in &self.last {
            let ended = match now.get(member) {
                None => true,
                // The name is the same, but its counters started anew: this is another member.
                Some(counters) => counters.iter().zip(last).any(|(now, last)| now < last),
            };
            if ended {
                add(&mut self.gone, last);
            }
        }
        let mut sum = self.gone;
        for counters in now.values() {
            add(&mut sum, counters);
        }
        self.last = now;
        sum
    }
}

fn add<const N: usize>(sum: &mut [u64; N], counters: &[u64; N]) {
    for (sum, counter) in sum.iter_mut().zip(counters) {
        *sum = sum.saturating_add(*counter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_come_go_and_their_names_are_used_again() {
        let mut members = Members::default();
        assert_eq!(members.update([(1, [10])].into()), [10]);
        assert_eq!(members.update([(1, [15]), (2, [1])].into()), [16]);
        assert_eq!(
            members.update([(2, [4])].into()),
            [19],
            "member 1 is gone, its 15 stay"
        );
        assert_eq!(
            members.update([(2, [1])].into()),
            [20],
            "another member 2: 15 + 4 + 1"
        );
        assert_eq!(members.update(BTreeMap::new()), [20]);
    }

    proptest! {
        #[test]
        fn sums_never_run_backwards(rounds in proptest::collection::vec(proptest::collection::btree_map(0u8..5, [0u64..100, 0u64..100], 0..5), 1..20)) {
            let mut members = Members::default();
            let mut before = [0, 0];
            for now in rounds {
                let sum = members.update(now);
                prop_assert!(sum[0] >= before[0] && sum[1] >= before[1]);
                before = sum;
            }
        }
    }
}
