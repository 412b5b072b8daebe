//! Several targets: the table, the charts, and what was left out and why.

use plimsoll_core::record::Ranking;

use crate::html::Page;
use crate::html::parts::{self, Cell, Contents, Levels, part};
use crate::html::write::Html;
use crate::render;
use crate::words::{self, ranking as say};

pub(in crate::html) fn write(
    html: &mut Html,
    contents: &mut Contents,
    page: &Page<'_>,
    ranking: &Ranking,
    level: Levels,
) {
    html.inside("article", &[("aria-labelledby", "ranking")], |html| {
        contents.push("ranking", "Ranking");
        let heading = [("id", "ranking"), ("data-test", "claim")];
        html.element(level.result, &heading, &format!("Ranking: {}", say::headline(ranking)));
        if let Some(svg) = page.chart(render::RANKING) {
            let caption = format!(
                "Load lines with the intervals of the edges, and what {} costs at the common load.",
                words::what_costs(ranking.load_unit)
            );
            parts::figure(html, "chart-ranking", svg, &caption);
        }
        tables(html, ranking);
        for sentence in say::legend(ranking) {
            parts::note(html, &sentence.replace('`', ""));
        }
        if let Some(svg) = page.chart(render::OVERLAY) {
            let title = ("ranking-overlay", "Over the load", level.part);
            part(html, contents, title, |html| {
                let caption = "Latency and cost of every target over the load, from the trials of its search.";
                parts::figure(html, "chart-overlay", svg, caption);
            });
        }
        if !ranking.left_out.is_empty() {
            let title = ("ranking-left-out", "Not measured", level.part);
            part(html, contents, title, |html| {
                let told = ranking.left_out.iter();
                let told: Vec<_> = told.map(|left| format!("{}: {}", left.name, left.reason)).collect();
                parts::list(html, &[("data-test", "caveats")], &told);
            });
        }
        parts::note(html, &format!("Measured at {}.", ranking.started_at));
    });
}

/// What was measured: one row per target, with the name as a link to the target's own page. Then what the targets are.
fn tables(html: &mut Html, ranking: &Ranking) {
    let cost = format!(">{}", say::cost_head(ranking));
    let memory = format!(">{}", say::memory_head(ranking));
    let columns = [
        "target",
        ">place",
        ">load line",
        ">edge",
        ">per vCPU",
        &cost,
        &memory,
        "broke first",
    ];
    let (mut measured, mut described) = (Vec::new(), Vec::new());
    for (row, of) in say::rows(ranking).into_iter().zip(&ranking.rows) {
        let own_page = format!("{}/{}", of.folder, render::REPORT);
        let what_it_is = format!("{}, {}", of.language, of.description);
        described.push(
            [row.name.clone(), row.tier, row.lines_of_code, what_it_is]
                .map(Cell::Text)
                .to_vec(),
        );
        let told = [
            row.place,
            row.load_line,
            row.edge,
            row.per_vcpu,
            row.cost,
            row.memory,
            row.first_broke,
        ];
        let mut cells = vec![Cell::Link(own_page, row.name)];
        cells.extend(told.map(Cell::Text));
        measured.push(cells);
    }
    html.inside("div", &[("data-test", "evidence")], |html| {
        parts::table(
            html,
            "The targets, the highest load line first",
            &columns,
            measured,
        );
    });
    html.inside("div", &[("data-test", "targets")], |html| {
        let columns = ["target", "tier", ">lines of code", "what it is"];
        parts::table(html, "What they are", &columns, described);
    });
}
