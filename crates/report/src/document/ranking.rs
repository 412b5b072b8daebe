//! Several targets: the table, the charts, and what was left out and why.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::ranking::{framework_costs, is_framework};
use plimsoll_core::record::Ranking;

use super::{
    Answer, Block, Blocks, Column, Detail, Document, Figure, List, Section, Span, Table, Text,
    belief, goals,
};
use crate::render;
use crate::words::{self, ranking as say};

pub(crate) fn document(ranking: &Ranking) -> Document {
    let mut evidence = Blocks::default();
    evidence.full(Figure {
        stem: render::RANKING.to_owned(),
        hook: "chart-ranking",
        alt: "Load lines and costs".to_owned(),
        caption: format!(
            "Load lines with the intervals of the edges, and what {} costs at the common load.",
            words::what_costs(ranking.load_unit)
        ),
    });
    let (measured, described) = tables(ranking);
    evidence.push(measured);
    if let Some(costs) = what_frameworks_cost(ranking) {
        evidence.push(costs);
    }
    evidence.push(key_findings(ranking));
    evidence.full(described);
    let doubted = ranking.rows.iter().flat_map(|row| {
        let name = words::target(&row.bracket.target);
        let told = |caveat: &Caveat| {
            Text::strong(name.clone())
                .then_plain(", ")
                .joined(Text::code(&caveat.id))
                .then_plain(format!(": {}", caveat.text))
        };
        row.caveats.iter().map(told).collect::<Vec<_>>()
    });
    evidence.push(List::of(doubted).hooked("row-caveats"));
    let targets = ranking.rows.iter().map(|row| &row.bracket.target);
    for target in targets {
        evidence.push(belief::deviations(target));
        evidence.full(belief::settings(target));
    }
    for sentence in say::legend(ranking) {
        evidence.full(Block::Note(Text::with_code(&sentence)));
    }
    let overlay = Figure {
        stem: render::OVERLAY.to_owned(),
        hook: "chart-overlay",
        alt: "Latency and cost over the load".to_owned(),
        caption: "Latency and cost of every target over the load, from the trials of its search."
            .to_owned(),
    };
    evidence.full(Section::of("overlay", "Over the load", overlay));
    let left_out = ranking.left_out.iter();
    let left_out =
        left_out.map(|left| Text::strong(&left.name).then_plain(format!(": {}", left.reason)));
    let left_out = List::of(left_out).hooked("caveats");
    evidence.push(Section::of("left-out", "Not measured", left_out));
    let measured_at = format!("Measured at {}.", ranking.started_at);
    evidence.full(Block::Note(measured_at.into()));
    Document {
        id: "ranking".to_owned(),
        entry: "Ranking".to_owned(),
        answer: Answer {
            title: "Ranking".to_owned(),
            verdict: None,
            claim: say::headline(ranking),
            bounds: String::new(),
            blocks: Blocks::default(),
            figure: None,
        },
        evidence,
    }
}

/// What became of the goals with each target; empty if none were set.
fn key_findings(ranking: &Ranking) -> Section {
    let rows = ranking.rows.iter().filter_map(|row| {
        let target = words::target(&row.bracket.target);
        Some((vec![target], row.bracket.goals.as_ref()?))
    });
    goals::section(&["target"], &rows.collect::<Vec<_>>())
}

fn caption(ranking: &Ranking) -> String {
    let whose = if ranking.rows.iter().any(is_framework) {
        "The targets of tier framework, then the others"
    } else {
        "The targets"
    };
    format!("{whose}, the highest load line first")
}

/// Each target of tier `framework` beside the tuned one; `None` if no such two were measured.
fn what_frameworks_cost(ranking: &Ranking) -> Option<Table> {
    let caption = "What the framework costs, beside the tuned target on the same runtime";
    let mut table = Table::new(caption, say::framework_heads(ranking)).hooked("framework-costs");
    for cost in framework_costs(&ranking.rows) {
        table.row(say::framework_cost(&cost));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What was measured: one row per target, with the name as a link to the target's own page. Then what the targets are.
fn tables(ranking: &Ranking) -> (Table, Table) {
    let unit = ranking.load_unit;
    let cost = Column::new(&format!(">{}", say::cost_head(ranking)));
    let memory = Column::new(&format!(">{}", say::memory_head(ranking)));
    let mut measured = Table {
        caption: caption(ranking),
        hook: "evidence",
        columns: vec![
            Column::new("target"),
            Column::new(">place"),
            Column::new("tier").only(Detail::Brief),
            Column::new(">load line"),
            Column::new(">edge"),
            Column::new(">per vCPU").only(Detail::Full),
            cost.short(say::at_common_load(
                words::cpu_cost_in_brief(unit).to_owned(),
                ranking,
            )),
            Column::new(&format!(">{}", say::latency_head(ranking))).only(Detail::Full),
            memory.short(format!("memory/{}", words::holder(unit))),
            Column::new(">lines").only(Detail::Brief),
            Column::new("broke first"),
        ],
        ..Table::default()
    };
    let columns = ["target", "tier", ">lines of code", "what it is", "versions"];
    let mut described = Table::new("What they are", columns).hooked("targets");
    for (row, of) in say::rows(ranking).into_iter().zip(&ranking.rows) {
        let what_it_is = format!("{}, {}", of.language, of.description);
        described.row([
            row.name.clone(),
            row.tier.clone(),
            row.lines_of_code.clone(),
            what_it_is,
            row.versions.clone(),
        ]);
        let further = [
            row.place,
            row.tier,
            row.load_line,
            row.edge,
            row.per_vcpu,
            row.cost,
            row.latency,
            row.memory,
            row.lines_of_code,
            row.first_broke,
        ];
        let name = Text(vec![Span::Folder(of.folder.clone(), row.name)]);
        measured.row(std::iter::once(name).chain(further.map(Text::from)));
    }
    (measured, described)
}
