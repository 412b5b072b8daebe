//! The table of results.

use plimsoll_report::facts;
use plimsoll_report::history::{Broken, Entry, Filter, History};
use plimsoll_report::words::{UNKNOWN, maybe, number, plain};

use super::columns::{aligned, cost};
use crate::failure::Failure;
use crate::output;

pub(super) fn show(
    history: &History,
    filter: &Filter,
    broken: &[Broken],
    json: bool,
) -> Result<(), Failure> {
    let results = history.list(filter)?;
    if json {
        return output::print_json(&serde_json::json!({
            "results": results,
            "broken": broken,
        }));
    }
    output::print(&table(&results, broken));
    Ok(())
}

/// The results newest first, then the folders that cannot be read.
fn table(results: &[Entry], broken: &[Broken]) -> String {
    let header = [
        "WHEN",
        "KIND",
        "TARGET",
        "VCPU",
        "RESULT",
        "EDGE",
        "CPU/SESSION/S",
        "FOLDER",
    ];
    let mut text = if results.is_empty() {
        "no result\n".to_owned()
    } else {
        let header = std::iter::once(header.map(str::to_owned));
        let rows: Vec<_> = header.chain(results.iter().map(row)).collect();
        aligned(&rows, &[3, 6])
    };
    for folder in broken {
        text.push_str(&format!(
            "broken: {}: {}\n",
            plain(&folder.folder),
            plain(&folder.why)
        ));
    }
    text
}

fn row(entry: &Entry) -> [String; 8] {
    let interrupted = if entry.interrupted {
        ", interrupted"
    } else {
        ""
    };
    [
        plain(&entry.started_at),
        entry.kind.word().to_owned(),
        short(&plain(&entry.target())),
        maybe(entry.vcpu, number),
        format!("{}{interrupted}", plain(&entry.in_short())),
        entry
            .edge
            .as_ref()
            .map_or_else(|| UNKNOWN.to_owned(), facts::edge),
        cost(entry),
        plain(&entry.folder),
    ]
}

/// Shortens the names of a ranking's targets, which would push everything else out of sight; `--json` has them all.
fn short(names: &str) -> String {
    const MOST: usize = 32;
    if names.chars().count() <= MOST {
        return names.to_owned();
    }
    let kept: String = names.chars().take(MOST - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use plimsoll_report::history::Kind;

    use super::*;

    fn entry() -> Entry {
        serde_json::from_value(serde_json::json!({
            "folder": "20260102-find", "kind": "find", "targets": ["rust-axum"], "workload": "stt", "profile": "quick",
            "slo": "stt", "vcpu": 0.25, "started_at": "2026-01-02T03:04:05Z", "verdict": null, "claim": "",
            "sessions": null, "load_line": 750, "edge": {"value": 825.0, "low": 789.0, "high": 858.0, "confidence": 0.95},
            "lower_bound_only": false, "interrupted": false,
            "cost": {"sessions": 750, "cpu_us_per_session_second": 333.0, "low": 332.0, "high": 334.0, "trials": 2,
                     "rss_bytes_per_session": null},
            "cpu_model": "", "cores": "", "trials": 9,
        }))
        .expect("an entry")
    }

    #[test]
    fn a_row_says_what_was_found_and_where() {
        let mut run = entry();
        run.kind = Kind::Run;
        run.targets = vec!["x\u{1b}[2J".repeat(20)];
        run.verdict = Some("fail".to_owned());
        run.sessions = Some(500);
        run.edge = None;
        run.cost = None;
        run.interrupted = true;
        let broken = Broken {
            folder: "odd\nname".to_owned(),
            why: "it is broken".to_owned(),
        };
        let table = table(&[entry(), run], &[broken]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[1].contains("750 sessions"), "{table}");
        assert!(lines[1].contains("825 (789 to 858, 95 %)"), "{table}");
        assert!(lines[1].contains("333 µs"), "{table}");
        assert!(lines[2].contains("fail at 500, interrupted"), "{table}");
        assert!(!table.contains('\u{1b}'), "{table}");
        assert_eq!(lines[3], "broken: odd name: it is broken");
    }

    #[test]
    fn nothing_found_says_so() {
        assert_eq!(super::table(&[], &[]), "no result\n");
    }
}
