//! The load at which several targets are compared, the order in which they take turns, and the order in which they are
//! ranked.

use crate::caveat::{Caveat, Doubt};
use crate::comparison::{edge_of, load_line_ratio};
use crate::latency::Dual;
use crate::record::{Bracket, CostAccount, CostAtLoad, RankedTarget, Trial, Verdict};
use crate::schedule::mix;
use crate::stats::{Mean, Ratio};

/// The common load is at most this share of the lowest load line, because near its edge a target's cost curve bends.
pub const SHARE_OF_LOWEST: f64 = 0.8;

/// The load at which all targets are compared: a round number (1, 1.5, 2, 3, 5 or 7 times a power of ten) not above
/// [`SHARE_OF_LOWEST`] of the lowest load line. A target takes part only if that share of its load line is at least
/// `least`, because too few sessions give too few samples. `None` if no target takes part.
#[must_use]
pub fn common_load<'a>(brackets: impl Iterator<Item = &'a Bracket>, least: u32) -> Option<u32> {
    let carried = brackets.filter_map(|bracket| bracket.confirmed);
    let reach = |confirmed: u32| f64::from(confirmed) * SHARE_OF_LOWEST;
    let lowest = carried
        .map(reach)
        .filter(|reach| *reach >= f64::from(least));
    lowest.reduce(f64::min).map(round_down)
}

/// The greatest round number not above a value of at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number below that of a load"
)]
fn round_down(value: f64) -> u32 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [7.0, 5.0, 3.0, 2.0, 1.5, 1.0];
    let fits = steps
        .into_iter()
        .find(|step| step * power <= value * (1.0 + 1e-9));
    (fits.unwrap_or(1.0) * power).floor() as u32
}

/// The order in which `count` targets take their turns in round `round`. It is drawn again for each round, so that no
/// target profits from its place.
#[must_use]
pub fn turns(count: usize, round: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|place| mix(mix(seed ^ u64::from(round) << 32) ^ *place as u64));
    order
}

/// Whether it is of tier `framework`: what the users of a framework get.
#[must_use]
pub fn is_framework(row: &RankedTarget) -> bool {
    row.bracket.target.tier == "framework"
}

/// Sorts by load line, the highest first. If two are the same, the target with the higher edge comes first. Targets of
/// tier `framework` come before all others.
pub fn sort(rows: &mut [RankedTarget]) {
    let key = |row: &RankedTarget| {
        let edge = row.bracket.edge.map_or(0.0, |edge| edge.value);
        (row.bracket.confirmed.unwrap_or(0), edge)
    };
    rows.sort_by(|a, b| {
        let ((a_line, a_edge), (b_line, b_edge)) = (key(a), key(b));
        is_framework(b)
            .cmp(&is_framework(a))
            .then(b_line.cmp(&a_line))
            .then(b_edge.total_cmp(&a_edge))
            .then_with(|| a.bracket.target.name.cmp(&b.bracket.target.name))
    });
}

/// The cost at a load from its trials, each given with the name of its file; `None` if none of them counts. A failed
/// trial does not count: a target that does not keep up leaves work undone, and so looks cheap.
#[must_use]
pub fn cost_at_load(trials: &[(Trial, String)]) -> Option<CostAtLoad> {
    let counted: Vec<_> = trials
        .iter()
        .filter(|(trial, _)| trial.verdict == Verdict::Pass)
        .filter_map(|(trial, file)| {
            let resources = trial.target_resources.as_ref()?;
            let cost = resources.cpu_us_per_session_second?;
            Some((trial, resources, cost, file))
        })
        .collect();
    let costs: Vec<f64> = counted.iter().map(|(_, _, cost, _)| *cost).collect();
    let mean = |values: &[f64]| Mean::of(values).map(|mean| mean.value);
    let memory = counted
        .iter()
        .filter_map(|(_, resources, ..)| resources.rss_bytes_per_session);
    let cores: Vec<f64> = counted
        .iter()
        .filter_map(|(_, resources, ..)| resources.core_us_per_session_second)
        .collect();
    let latency = |of: fn(&Dual) -> Option<f64>| {
        let newest = counted.iter().map(|(trial, ..)| &trial.latency.newest);
        mean(&newest.filter_map(of).collect::<Vec<_>>())
    };
    Some(CostAtLoad {
        cpu_us_per_session_second: mean(&costs)?,
        core_us_per_session_second: mean(&cores),
        low: costs.iter().copied().reduce(f64::min)?,
        high: costs.iter().copied().reduce(f64::max)?,
        core_low: cores.iter().copied().reduce(f64::min),
        core_high: cores.iter().copied().reduce(f64::max),
        rss_bytes_per_session: mean(&memory.collect::<Vec<_>>()),
        newest_p95_ms: latency(|newest| newest.from_schedule.p95_ms),
        newest_p99_ms: latency(|newest| newest.from_schedule.p99_ms),
        newest_write_p50_ms: latency(|newest| newest.from_write.p50_ms),
        trials: counted.iter().map(|(.., file)| (*file).clone()).collect(),
        left_out: u32::try_from(trials.len() - counted.len()).unwrap_or(u32::MAX),
    })
}

/// A latency below this many times the floor's is mostly the client's and the network's.
pub const NEAR_FLOOR: f64 = 2.0;

/// Adds a caveat to each target whose median latency at the common load is near that of the floor: the target of that
/// name. Nothing is added if the floor was not measured there.
pub fn note_the_floor(rows: &mut [RankedTarget], floor: &str) {
    let p50_ms = |row: &RankedTarget| row.at_common_load.as_ref()?.newest_write_p50_ms;
    let found = rows.iter().find(|row| row.bracket.target.name == floor);
    let Some(floor_ms) = found.and_then(p50_ms) else {
        return;
    };
    let others = rows.iter_mut();
    for row in others.filter(|row| row.bracket.target.name != floor) {
        let near = p50_ms(row).filter(|p50_ms| *p50_ms < NEAR_FLOOR * floor_ms);
        row.caveats.extend(near.map(|p50_ms| {
            Caveat::from(&Doubt::NearFloor {
                p50_ms,
                floor: floor.to_owned(),
                floor_ms,
            })
        }));
    }
}

/// Places `from..=to` for each row of a sorted ranking: among those of tier `framework`, or among the others. Rows whose
/// edges' intervals overlap cannot be told apart, so they share their places.
///
/// A row without an interval has the place that its load line gives it.
#[must_use]
pub fn places(rows: &[RankedTarget]) -> Vec<(usize, usize)> {
    let overlaps = |a: &RankedTarget, b: &RankedTarget| match (a.bracket.edge, b.bracket.edge) {
        (Some(a), Some(b)) => {
            a.low <= b.high.unwrap_or(f64::INFINITY) && b.low <= a.high.unwrap_or(f64::INFINITY)
        }
        _ => false,
    };
    let place = |index: usize| {
        let row = &rows[index];
        let alike = |other: &&RankedTarget| is_framework(other) == is_framework(row);
        let apart = |other: &&RankedTarget| !overlaps(row, other);
        let better = rows[..index].iter().filter(alike).filter(apart);
        let worse = rows[index + 1..].iter().filter(alike).filter(apart);
        let all = rows.iter().filter(alike).count();
        (better.count() + 1, all - worse.count())
    };
    (0..rows.len()).map(place).collect()
}

/// A target of tier `framework` beside the one of tier `tuned` on the same runtime.
#[derive(Debug, Clone, Copy)]
pub struct FrameworkCost<'a> {
    /// What the framework's users get.
    pub framework: &'a RankedTarget,
    /// What the runtime can do.
    pub tuned: &'a RankedTarget,
}

impl FrameworkCost<'_> {
    /// The framework's edge as a share of the tuned one's. The interval has the confidence of its edge's own. `None` if
    /// the trials do not bound both edges from both sides.
    #[must_use]
    pub fn edge(&self) -> Option<Ratio> {
        let of = |row: &RankedTarget| edge_of(&row.bracket.evidence);
        let (tuned, framework) = (of(self.tuned)?, of(self.framework)?);
        let bracket = &self.framework.bracket;
        load_line_ratio(
            |q| tuned.quantile(q),
            |q| framework.quantile(q),
            bracket.edge?.confidence,
            bracket.seed,
        )
    }

    /// CPU time per unit of load with the framework, as a multiple of the tuned one's, at the common load. It is the busy
    /// time of their cores if both have it. The interval is that of the trials that lie furthest apart.
    #[must_use]
    pub fn cpu(&self) -> Option<(CostAccount, Ratio)> {
        let above = self.framework.at_common_load.as_ref()?;
        let below = self.tuned.at_common_load.as_ref()?;
        [CostAccount::Core, CostAccount::Charged]
            .into_iter()
            .find_map(|account| Some((account, ratio(above.by(account)?, below.by(account)?)?)))
    }
}

/// One (value, low, high) by another.
fn ratio(above: (f64, f64, f64), below: (f64, f64, f64)) -> Option<Ratio> {
    (below.1 > 0.0).then(|| Ratio {
        value: above.0 / below.0,
        low: above.1 / below.2,
        high: above.2 / below.1,
    })
}

/// The account by which the costs of all rows can be compared: their cores', if each cost has it, at the common load and
/// over the load.
#[must_use]
pub fn common_account(rows: &[RankedTarget]) -> CostAccount {
    let costs = rows.iter().filter_map(|row| row.at_common_load.as_ref());
    let at_common_load = costs.map(|cost| cost.by(CostAccount::Core).is_some());
    let points = rows.iter().flat_map(|row| &row.bracket.cost_curve);
    let over_the_load = points.map(|point| point.by(CostAccount::Core).is_some());
    let known: Vec<bool> = at_common_load.chain(over_the_load).collect();
    if !known.is_empty() && known.into_iter().all(|known| known) {
        CostAccount::Core
    } else {
        CostAccount::Charged
    }
}

/// What each framework costs whose gateway was measured beside the tuned one, in the order of the rows.
#[must_use]
pub fn framework_costs(rows: &[RankedTarget]) -> Vec<FrameworkCost<'_>> {
    let pairs = rows.iter().filter_map(|framework| {
        let name = framework.tuned.as_ref()?;
        let tuned = rows.iter().find(|row| row.bracket.target.name == *name)?;
        Some(FrameworkCost { framework, tuned })
    });
    pairs.collect()
}

#[cfg(test)]
pub(crate) mod tests;
