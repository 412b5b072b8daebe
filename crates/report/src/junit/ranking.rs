//! A ranking as a suite: one case for each target. A target that was left out is skipped, with the reason.

use plimsoll_core::record::{RankedTarget, Ranking};

use super::document::{Case, CaseResult, Reason, Suite};
use super::{class, load_unit};
use crate::words::{self, ranking as say};

pub(super) fn suite(ranking: &Ranking) -> Suite {
    let measured = ranking.rows.iter().map(|row| Case {
        class: class("find", &row.bracket.target.name),
        name: "load line".to_owned(),
        outcome: outcome(row),
    });
    let left_out = ranking.left_out.iter().map(|left| Case {
        class: class("find", &left.name),
        name: "load line".to_owned(),
        outcome: CaseResult::Skipped(left.reason.clone()),
    });
    let cost = words::cpu_cost(ranking.load_unit);
    let told = say::rows(ranking).into_iter().map(|row| {
        format!(
            "{}: load line {}, edge {}, {cost} {}",
            row.name, row.load_line, row.edge, row.cost
        )
    });
    Suite {
        name: "ranking".to_owned(),
        started_at: ranking.started_at.clone(),
        properties: [
            ("workload", ranking.workload.clone()),
            ("profile", ranking.profile.clone()),
            ("vcpu", ranking.vcpu.to_string()),
        ]
        .into_iter()
        .chain(load_unit(ranking.load_unit))
        .collect(),
        cases: measured.chain(left_out).collect(),
        output: told.collect(),
    }
}

fn outcome(row: &RankedTarget) -> CaseResult {
    let bracket = &row.bracket;
    match (bracket.confirmed, bracket.first_fail) {
        (Some(_), _) => CaseResult::Passed,
        (None, Some(_)) => {
            CaseResult::Failed(Reason::new("load line", words::without_a_line(bracket)))
        }
        (None, None) => CaseResult::Error(Reason::new("load line", words::without_a_line(bracket))),
    }
}
