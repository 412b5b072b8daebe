//! The section of a ranking: the table, the chart, and what was left out and why.

use plimsoll_core::record::Ranking;

use super::{Page, Table, escape};
use crate::render;
use crate::words::ranking as say;

pub(super) fn section(page: &mut Page, ranking: &Ranking) {
    page.heading(1, "Ranking");
    page.paragraph(&format!("**{}**.", escape(&say::headline(ranking))));
    page.table(&table(ranking));
    for sentence in say::legend(ranking) {
        // Our own words, so code spans in them are intended.
        page.paragraph(&sentence);
    }
    if ranking
        .rows
        .iter()
        .any(|row| row.bracket.confirmed.is_some())
    {
        page.paragraph(&format!("![Load lines and costs]({})", render::RANKING_SVG));
    }
    let left_out = left_out(ranking);
    if !left_out.is_empty() {
        page.heading(2, "Not measured");
        page.list(&left_out);
    }
    page.heading(2, "Evidence");
    page.paragraph("Every target has a result folder of its own, with each trial of its search and those at the common load:");
    let folders: Vec<_> = ranking
        .rows
        .iter()
        .map(|row| {
            let folder = escape(&row.folder);
            format!(
                "[{folder}]({folder}/summary.md): {}, {}",
                escape(&row.language),
                escape(&row.description)
            )
        })
        .collect();
    page.list(&folders);
    page.paragraph(&format!("Measured at {}.", escape(&ranking.started_at)));
}

/// One row per target.
pub(crate) fn table(ranking: &Ranking) -> Table {
    let cost = format!(">{}", say::cost_head(ranking));
    let memory = format!(">{}", say::memory_head(ranking));
    let mut table = Table::new(&[
        ">place",
        "target",
        "tier",
        ">load line",
        ">edge",
        ">per vCPU",
        &cost,
        &memory,
        ">lines of code",
        "broke first",
    ]);
    for row in say::rows(ranking) {
        table.row([
            row.place,
            escape(&row.name),
            escape(&row.tier),
            row.load_line,
            row.edge,
            row.per_vcpu,
            row.cost,
            row.memory,
            row.lines_of_code,
            escape(&row.first_broke),
        ]);
    }
    table
}

/// What was not measured, and why.
pub(crate) fn left_out(ranking: &Ranking) -> Vec<String> {
    let line = |left: &plimsoll_core::record::LeftOut| {
        format!("**{}**: {}", escape(&left.name), escape(&left.reason))
    };
    ranking.left_out.iter().map(line).collect()
}
