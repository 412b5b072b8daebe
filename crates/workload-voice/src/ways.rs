//! Overhead by its parts: *in*, from the schedule until the provider has read the request, and *out*, from the provider's
//! handing over until the arrival. With the provider's time between them they are the leg, end to end.

use plimsoll_core::durations::{Collected, Durations};

use crate::caller::Claim;
use crate::tally::Tally;
use crate::turns::Leg;

/// How long the ways to the provider and back took, of all turns.
#[derive(Debug, Default)]
struct Ways {
    to_provider: Collected,
    from_provider: Collected,
}

impl Ways {
    /// Adds a leg, if the provider marked it. The marks and the trial's beginning are of one clock.
    fn add(&mut self, leg: Option<Leg>, began_ns: u64) {
        let Some((leg, read_ns, provider_ns)) =
            leg.and_then(|leg| Some((leg, leg.read_ns?, leg.provider_ns?)))
        else {
            return;
        };
        let to_ns = read_ns.saturating_sub(began_ns + leg.due_ns);
        self.to_provider.came(to_ns);
        let before_ns = to_ns + provider_ns;
        self.from_provider
            .came(leg.end_to_end_ns.saturating_sub(before_ns));
    }

    fn durations(self) -> (Durations, Durations) {
        (self.to_provider.durations(), self.from_provider.durations())
    }
}

impl Tally {
    /// Splits the overhead of each leg. `began_ns` is when the trial began, by the clock of the marks.
    pub(crate) fn split_overhead(&mut self, claims: &[Claim], began_ns: u64) {
        let mut ways = [Ways::default(), Ways::default()];
        for claim in claims {
            if let Claim::Turn(turn) = claim {
                ways[0].add(turn.result, began_ns);
                ways[1].add(turn.first_audio, began_ns);
            }
        }
        for (leg, ways) in [&mut self.result, &mut self.first_audio]
            .into_iter()
            .zip(ways)
        {
            (leg.to_provider, leg.from_provider) = ways.durations();
        }
    }

    /// Nobody knows whether the marks are of this machine's clock.
    pub(crate) fn forget_ways(&mut self) {
        for leg in [&mut self.result, &mut self.first_audio] {
            (leg.to_provider, leg.from_provider) = (Durations::default(), Durations::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns;
    use plimsoll_core::profile::NS_PER_MS;

    #[test]
    fn in_provider_and_out_are_the_whole_way() {
        const BEGAN_NS: u64 = 77 << 40;
        let legs = (0..100).map(|number: u64| Leg {
            end_to_end_ns: (100 + number) * NS_PER_MS,
            due_ns: number * NS_PER_MS,
            // 5 ms in, 80 ms at the provider, the rest out.
            read_ns: Some(BEGAN_NS + (number + 5) * NS_PER_MS),
            provider_ns: Some(80 * NS_PER_MS),
        });
        let turn = |result: Option<Leg>| {
            Claim::Turn(turns::Claim {
                result,
                ..turns::Claim::never_written(1, 1, 0, 9_000 * NS_PER_MS)
            })
        };
        let mut claims: Vec<Claim> = legs.map(|leg| turn(Some(leg))).collect();
        // What never came has no way back, and what has no marks none at all.
        claims.push(turn(None));
        let mut tally = Tally::of(&claims, None);
        tally.split_overhead(&claims, BEGAN_NS);
        let leg = &tally.result;
        assert_eq!((leg.to_provider.samples, leg.overhead.samples), (100, 101));
        assert_eq!(leg.to_provider.p50_ms, Some(5.0));
        assert_eq!(leg.to_provider.max_ms, Some(5.0));
        assert_eq!(leg.from_provider.p50_ms, Some(64.0));
        assert_eq!(leg.from_provider.p95_ms, Some(109.0));
        assert_eq!(tally.first_audio.to_provider, Durations::default());
        tally.forget_ways();
        assert_eq!(tally.result.to_provider, Durations::default());
    }
}
