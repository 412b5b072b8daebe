//! A comparison in words and numbers.

use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::record::{
    Carried, Comparison, Conclusion, CostAccount, LoadCosts, LoadUnit, Pair, Side,
};
use plimsoll_core::stats::Ratio;

use super::{UNKNOWN, count};

/// The conclusion in words.
#[must_use]
pub fn conclusion(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::NoDifferenceShown => "No difference shown",
        Conclusion::Better => "B is better",
        Conclusion::Worse => "B is worse",
    }
}

/// The sentence for a comparison that was ended early.
pub const INTERRUPTED: &str = "It was interrupted: this is the state at that point.";

/// What an interval shows by itself. For costs, less is better; for load lines, more.
#[must_use]
pub fn shows(ratio: Option<Ratio>, less_is_better: bool) -> &'static str {
    match ratio {
        None => "not compared",
        Some(ratio) if ratio.high < 1.0 && less_is_better => "better",
        Some(ratio) if ratio.high < 1.0 => "worse",
        Some(ratio) if ratio.low > 1.0 && less_is_better => "worse",
        Some(ratio) if ratio.low > 1.0 => "better",
        Some(_) => "no difference",
    }
}

/// Why the searches of the two sides ended, in one sentence each, if there were searches.
#[must_use]
pub fn search_ends(comparison: &Comparison) -> Vec<String> {
    let end = |(letter, side): (&str, &Side)| {
        let end = side.search.as_ref()?;
        let end = end.trim_end_matches('.');
        Some(format!("Why the search of {letter} ended: {end}."))
    };
    [("A", &comparison.a), ("B", &comparison.b)]
        .into_iter()
        .filter_map(end)
        .collect()
}

/// The target of a side, with its variant where it has one.
#[must_use]
pub fn target(side: &Side) -> String {
    super::with_variant(&side.name, side.variant.as_deref())
}

/// A ratio with three decimals: `1.049`.
#[must_use]
pub fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

/// The interval of a ratio: `1.031 to 1.067`.
#[must_use]
pub fn interval(of: Ratio) -> String {
    format!("{} to {}", ratio(of.low), ratio(of.high))
}

/// The cost that is compared: `CPU per session-second, its cores`.
#[must_use]
pub fn cost(comparison: &Comparison) -> String {
    super::cpu_cost_by(comparison.cost_account, comparison.load_unit)
}

/// The ratio of a pair's costs.
#[must_use]
pub fn of_pair(pair: &Pair, account: CostAccount) -> Option<f64> {
    let (a, b) = pair.costs(account)?;
    (a > 0.0).then(|| b / a)
}

/// The costs of a pair. Each is shown even where the other is unknown.
#[must_use]
pub fn costs_of_pair(pair: &Pair, account: CostAccount) -> [String; 2] {
    pair.each_cost(account)
        .map(|cost| super::maybe(cost, super::us))
}

/// The costs of a load on either side: `301 µs, 306 µs`.
#[must_use]
pub fn costs_of_load(load: &LoadCosts, account: CostAccount) -> [String; 2] {
    let listed = |costs: &[f64]| {
        let costs: Vec<String> = costs.iter().map(|cost| super::us(*cost)).collect();
        costs.join(", ")
    };
    let (a, b) = load.costs(account);
    [listed(a), listed(b)]
}

/// Which target carried the load of the pairs: `Carrying 400 sessions, by pairs of valid trials: both 0, only A 8, only
/// B 0, neither 0 (exact sign test, p = 0.0078): worse`.
#[must_use]
pub fn carried(carried: &Carried, unit: LoadUnit) -> String {
    let p = match carried.p_value {
        p if p >= 1.0 => "p = 1".to_owned(),
        p if p >= 0.000_1 => format!("p = {p:.4}"),
        _ => "p under 0.0001".to_owned(),
    };
    format!(
        "Carrying {}, by pairs of valid trials: both {}, only A {}, only B {}, neither {} (exact sign test, {p}): {}",
        super::load(carried.sessions, unit),
        count(carried.both.into()),
        count(carried.only_a.into()),
        count(carried.only_b.into()),
        count(carried.neither.into()),
        carried.shows.word()
    )
}

/// Where a side's edge lies: `1,020 (1,001–1,040)`.
#[must_use]
pub fn edge(side: &Side) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a load, shown as a whole number"
    )]
    let load = |load: f64| count(load.max(0.0).round() as u64);
    side.edge.map_or_else(
        || UNKNOWN.to_owned(),
        |edge| {
            let high = edge.high.map_or_else(|| "?".to_owned(), load);
            format!("{} ({}–{high})", load(edge.value), load(edge.low))
        },
    )
}

/// The length of a trial in one word.
#[must_use]
pub fn length(length: Length) -> &'static str {
    match length {
        Length::Full => "full",
        Length::Short => "short",
    }
}

/// The command that repeats the comparison, as far as the record and the flags of its trials' parameters allow.
#[must_use]
pub fn command(comparison: &Comparison, parameters: Option<&str>) -> String {
    let what = |side: &Side| shell_word(side.folder.as_ref().unwrap_or(&side.name));
    let mut words = vec![
        "plimsoll compare".to_owned(),
        what(&comparison.a),
        what(&comparison.b),
    ];
    let measured = comparison.a.folder.is_none();
    if measured && !comparison.workload.is_empty() {
        words.push(format!("--workload {}", comparison.workload));
    }
    let parameters = parameters.filter(|flags| measured && !flags.is_empty());
    words.extend(parameters.map(str::to_owned));
    if measured && Profile::by_name(&comparison.profile).is_some() {
        words.push(format!("--profile {}", comparison.profile));
    }
    if let Some(vcpu) = comparison.vcpu.filter(|_| measured) {
        words.push(format!("--vcpu {vcpu}"));
    }
    let searched = comparison.a.search.is_some();
    if let (true, Some(pair)) = (measured && !searched, comparison.pairs.first()) {
        words.push(format!("--sessions {}", pair.sessions));
    }
    words.push(format!("--confidence {}", comparison.confidence));
    words.push(format!("--seed {}", comparison.seed));
    words.join(" ")
}

/// Text from outside as one word of a shell command.
fn shell_word(text: &str) -> String {
    let text = super::plain(text);
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if !text.is_empty() && text.chars().all(bare) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
