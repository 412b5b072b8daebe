//! What a visitor of test `mixed` asks, on a connection of its own.

use std::collections::VecDeque;

use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::schedule::{SessionPlan, mix};

use super::request::{Asked, Kind};

/// Of all arrivals, so many percent are calls; the others are visitors.
pub(crate) const CALLS_PERCENT: u64 = 30;
/// Of all visitors, so many percent ask for the voices, and so many for a text to be spoken.
const VOICES_PERCENT: u64 = 30;
const SPEAK_PERCENT: u64 = 20;
/// Texts to be spoken for each arrival.
pub(crate) const SPEAKS_PER_ARRIVAL: f64 = 0.7 * 0.2;
/// From one request of a visitor to the next. The schedule is fixed: a late answer moves no request.
const APART_NS: u64 = 300 * NS_PER_MS;

/// What the draws are for, so that they do not shift each other.
#[derive(Debug, Clone, Copy)]
enum Draw {
    Arrival = 0x5645_5349,
    Voices,
    Speak,
}

fn happens(seed: u64, what: Draw, percent: u64) -> bool {
    mix(seed ^ mix(what as u64)) % 100 < percent
}

/// Whether this arrival is a call.
pub(crate) fn is_call(plan: &SessionPlan) -> bool {
    happens(plan.seed, Draw::Arrival, CALLS_PERCENT)
}

/// What this visitor asks: `GET /` as soon as it comes, then the others.
pub(crate) fn requests(plan: &SessionPlan) -> VecDeque<Asked> {
    let also = [
        (Kind::Voices, Draw::Voices, VOICES_PERCENT),
        (Kind::Speak, Draw::Speak, SPEAK_PERCENT),
    ];
    let drawn = also
        .into_iter()
        .filter(|(_, what, percent)| happens(plan.seed, *what, *percent));
    let kinds = [Kind::Root].into_iter().chain(drawn.map(|(kind, ..)| kind));
    let asked = (0..).zip(kinds).map(|(place, kind): (u64, _)| {
        let at_ns = plan.first_due_ns + place * APART_NS;
        Asked {
            kind,
            vu: plan.id,
            seed: plan.seed,
            at_ns,
            measured: plan.window.contains(at_ns),
        }
    });
    asked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use plimsoll_core::schedule::session_plan;

    #[test]
    fn arrivals_and_requests_have_their_shares() {
        let plans = (0..10_000).map(|id| session_plan(id, 10_000, &Profile::quick(), 7));
        let (calls, visitors): (Vec<_>, Vec<_>) = plans.partition(is_call);
        assert!((2_850..3_150).contains(&calls.len()), "{}", calls.len());
        let asks = |kind| {
            let all = visitors.iter().map(requests);
            all.filter(|asked| asked.iter().any(|one| one.kind == kind))
                .count()
        };
        assert_eq!(asks(Kind::Root), visitors.len());
        let percent = |count: usize| 100.0 * count as f64 / visitors.len() as f64;
        assert!((28.0..32.0).contains(&percent(asks(Kind::Voices))));
        assert!((18.0..22.0).contains(&percent(asks(Kind::Speak))));
    }

    #[test]
    fn a_visitors_schedule_is_fixed() {
        let plan = session_plan(3, 10, &Profile::quick(), 7);
        let asked = requests(&plan);
        assert_eq!(asked, requests(&plan));
        for (place, one) in (0..).zip(&asked) {
            assert_eq!(one.at_ns, plan.first_due_ns + place * APART_NS);
            assert_eq!(one.measured, plan.window.contains(one.at_ns));
        }
    }
}
