//! What lies beyond a load line in words.

use plimsoll_core::record::{Collapse, Escalation, Knee, LoadUnit};

use super::{count, load, number};

/// `190 callers (goodput 23.8/s)`; `at least` where no higher load did less.
#[must_use]
pub fn knee(knee: &Knee, unit: LoadUnit) -> String {
    let at_least = if knee.is_passed { "" } else { "at least " };
    format!(
        "{at_least}{} (goodput {}/s)",
        load(knee.load, unit),
        number(knee.goodput_per_s)
    )
}

/// Where the collapse is, or up to where there is none; `None` if nothing is known.
#[must_use]
pub fn collapse(escalation: &Escalation, unit: LoadUnit) -> Option<String> {
    let found = |collapse: &Collapse| {
        let above = collapse
            .highest_without
            .map_or_else(String::new, |without| {
                format!(" (not yet at {})", count(without.into()))
            });
        let because = collapse.sign.words();
        format!("{}{above}, because {because}", load(collapse.load, unit))
    };
    let not_found = |up_to| format!("not found up to {}", load(up_to, unit));
    let of_record = escalation.collapse.as_ref().map(found);
    of_record.or_else(|| escalation.no_collapse_up_to.map(not_found))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::record::CollapseSign;

    use super::*;

    const CALLERS: &str = "callers";

    #[test]
    fn three_loads_are_told_apart() {
        let unit = LoadUnit::of(CALLERS);
        let mut at = Knee {
            load: 1_190,
            goodput_per_s: 23.75,
            is_passed: true,
        };
        assert_eq!(knee(&at, unit), "1,190 callers (goodput 23.8/s)");
        at.is_passed = false;
        assert!(knee(&at, unit).starts_with("at least 1,190 callers"));

        let mut escalation = Escalation::default();
        assert_eq!(collapse(&escalation, unit), None);
        escalation.no_collapse_up_to = Some(1_900);
        let not_found = collapse(&escalation, unit);
        assert_eq!(not_found.as_deref(), Some("not found up to 1,900 callers"));
        escalation.collapse = Some(Collapse {
            load: 2_000,
            highest_without: Some(1_920),
            sign: CollapseSign::TooManyFailed,
        });
        assert_eq!(
            collapse(&escalation, unit).as_deref(),
            Some("2,000 callers (not yet at 1,920), because 5 % of what was due failed, or more")
        );
    }
}
