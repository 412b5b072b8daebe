//! A target's load line and cost over time.

use plimsoll_report::facts;
use plimsoll_report::history::{Filter, History, TrendGroup, TrendPoint};
use plimsoll_report::words::{UNKNOWN, count, cpu_cost_in_brief, maybe, plain, us};

use super::columns::aligned;
use crate::failure::Failure;
use crate::output;

/// Width of the bars in characters.
const BAR: usize = 32;

pub(super) fn show(
    history: &History,
    target: &str,
    filter: &Filter,
    json: bool,
) -> Result<(), Failure> {
    let groups = history.trend(target, filter)?;
    if json {
        return output::print_json(&serde_json::json!({ "target": target, "groups": groups }));
    }
    if groups.is_empty() {
        output::print(&format!("no load line of {}\n", plain(target)));
    }
    for group in &groups {
        output::print(&text(target, group));
    }
    Ok(())
}

fn text(target: &str, group: &TrendGroup) -> String {
    let axis = Axis::of(&group.points);
    let ends = axis.as_ref().map_or_else(String::new, Axis::ends);
    let cost = cpu_cost_in_brief(group.conditions.load_unit).to_uppercase();
    let header = [
        "WHEN",
        "LOAD LINE",
        "EDGE",
        &ends,
        &cost,
        "CORE ACCOUNT",
        "WAKE-UP",
        "TIMER",
        "FOLDER",
    ];
    let rows = group.points.iter().map(|point| {
        let at_least = if point.lower_bound_only {
            "at least "
        } else {
            ""
        };
        let interrupted = if point.interrupted {
            " (interrupted)"
        } else {
            ""
        };
        let line = point.load_line.map_or_else(
            || UNKNOWN.to_owned(),
            |load| format!("{at_least}{}", count(load.into())),
        );
        let edge = point.edge.as_ref();
        let cost = point.cost.as_ref();
        [
            plain(&point.started_at),
            line,
            edge.map_or_else(|| UNKNOWN.to_owned(), facts::edge),
            axis.as_ref()
                .map_or_else(String::new, |axis| axis.bar(point)),
            maybe(cost.map(|cost| cost.cpu_us_per_session_second), us),
            maybe(cost.and_then(|cost| cost.core_us_per_session_second), us),
            maybe(point.probe.map(|probe| probe.wake_up_us), us),
            maybe(point.probe.map(|probe| probe.timer_cpu_us), us),
            format!("{}{interrupted}", plain(&point.folder)),
        ]
    });
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned))
        .chain(rows)
        .collect();
    format!(
        "{}: {}\n{}\n",
        plain(target),
        group.conditions.words(),
        aligned(&rows, &[1, 4, 5, 6, 7])
    )
}

/// The range of loads that the bars of a group cover.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// From the lowest to the highest load to show; `None` if there is none.
    fn of(points: &[TrendPoint]) -> Option<Self> {
        let shown = |point: &TrendPoint| {
            let edge = point.edge;
            [
                point.load_line.map(f64::from),
                edge.map(|edge| edge.low),
                edge.and_then(|edge| edge.high),
            ]
        };
        let values = points.iter().flat_map(shown).flatten();
        values
            .filter(|value| value.is_finite())
            .fold(None, |axis: Option<Self>, value| {
                let axis = axis.unwrap_or(Self {
                    low: value,
                    high: value,
                });
                Some(Self {
                    low: axis.low.min(value),
                    high: axis.high.max(value),
                })
            })
    }

    /// The labels of both ends.
    fn ends(&self) -> String {
        let [low, high] = [self.low, self.high].map(|load| format!("{load:.0}"));
        let room = BAR.saturating_sub(low.len() + high.len());
        format!("{low}{}{high}", " ".repeat(room.max(1)))
    }

    /// The column of a load.
    fn column(&self, load: f64) -> usize {
        let span = self.high - self.low;
        if span <= 0.0 {
            return BAR / 2;
        }
        let share = ((load - self.low) / span).clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a column of a few dozen"
        )]
        let column = (share * (BAR - 1) as f64).round() as usize;
        column
    }

    /// `├──●──┤`: the edge's interval with the load line; `→` if it has no upper end.
    fn bar(&self, point: &TrendPoint) -> String {
        let mut cells = vec![' '; BAR];
        if let Some(edge) = point.edge {
            let from = self.column(edge.low);
            let to = edge.high.map_or(BAR - 1, |high| self.column(high));
            let (from, to) = (from.min(to), from.max(to));
            cells[from..=to].fill('─');
            cells[from] = '├';
            cells[to] = if edge.high.is_some() { '┤' } else { '→' };
        }
        if let Some(load) = point.load_line {
            cells[self.column(f64::from(load))] = '●';
        }
        cells.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::record::Edge;
    use plimsoll_report::history::ResultConditions;

    use super::*;

    fn point(day: u32, load_line: Option<u32>, low: f64, high: Option<f64>) -> TrendPoint {
        TrendPoint {
            folder: format!("find-{day}"),
            started_at: format!("2026-01-{day:02}T00:00:00Z"),
            load_line,
            edge: Some(Edge {
                value: low + 10.0,
                low,
                high,
                confidence: 0.95,
            }),
            lower_bound_only: high.is_none(),
            interrupted: false,
            cost: None,
            probe: None,
        }
    }

    #[test]
    fn bars_share_their_axis() {
        let points = [
            point(1, Some(500), 500.0, Some(655.0)),
            point(2, Some(655), 655.0, Some(810.0)),
            point(3, Some(700), 700.0, None),
            point(4, None, 500.0, Some(500.0)),
        ];
        let axis = Axis::of(&points).expect("an axis");
        assert_eq!(axis.ends(), format!("500{}810", " ".repeat(26)));
        let bars: Vec<String> = points.iter().map(|point| axis.bar(point)).collect();
        assert!(bars.iter().all(|bar| bar.chars().count() == BAR));
        let columns = |bar: &str, mark| bar.chars().position(|cell| cell == mark);
        assert_eq!(columns(&bars[0], '●'), Some(0));
        assert_eq!(columns(&bars[0], '┤'), columns(&bars[1], '●'));
        assert_eq!(columns(&bars[1], '┤'), Some(BAR - 1));
        assert_eq!(columns(&bars[2], '→'), Some(BAR - 1));
        assert_eq!(columns(&bars[3], '●'), None);
    }

    #[test]
    fn a_group_names_its_conditions_and_one_line_for_each_result() {
        let group = TrendGroup {
            conditions: ResultConditions {
                test: None,
                load_unit: plimsoll_core::record::LoadUnit::default(),
                workload: "stt".to_owned(),
                profile: "quick".to_owned(),
                slo: "stt".to_owned(),
                vcpu: Some(0.25),
                cpu_model: "Example\u{1b}[2J".to_owned(),
                cores: "4".to_owned(),
            },
            points: vec![
                point(1, Some(500), 500.0, Some(655.0)),
                point(3, Some(700), 700.0, None),
            ],
        };
        let text = text("rust-axum", &group);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("rust-axum: workload stt"), "{text}");
        assert!(lines[3].contains("at least 700"), "{text}");
        assert!(lines[2].ends_with("find-1"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn one_load_is_in_the_middle_and_none_is_no_axis() {
        let only = [TrendPoint {
            edge: None,
            ..point(1, Some(7), 0.0, None)
        }];
        let axis = Axis::of(&only).expect("an axis");
        assert_eq!(axis.bar(&only[0]).trim(), "●");
        assert!(Axis::of(&[]).is_none());
    }
}
