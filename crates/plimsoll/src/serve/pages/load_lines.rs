//! Load lines on one axis, each with the interval of its edge: an SVG, coloured by the style of the site.

use plimsoll_report::history::Entry;
use plimsoll_report::html::Html;
use plimsoll_report::words::count;

const WIDTH: f64 = 720.0;
/// The ends of the axis, left and right.
const LEFT: f64 = 16.0;
const RIGHT: f64 = 704.0;
const TOP: f64 = 8.0;
const ROW: f64 = 46.0;
/// Half the height of an interval's ends.
const CAP: f64 = 6.0;

/// One result, drawn at its place on the axis.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    letter: char,
    label: String,
    load_line: Option<f64>,
    /// Ends of the interval; without an upper one it continues to the right.
    interval: Option<(f64, Option<f64>)>,
}

/// The highest load to show. The axis begins at 0, so that lengths can be compared.
fn greatest(rows: &[Row]) -> f64 {
    let of = |row: &Row| {
        let ends = row.interval.map(|(low, high)| high.unwrap_or(low * 1.1));
        [row.load_line, ends]
    };
    let all = rows.iter().flat_map(of).flatten();
    all.filter(|load| load.is_finite()).fold(1.0, f64::max)
}

/// Loads to label on the axis: multiples of 1, 2 or 5 times a power of ten, at most six of them.
fn round_loads(greatest: f64) -> Vec<f64> {
    let power = 10_f64.powf((greatest / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let fits = |step: &f64| greatest / step <= 5.0;
    let step = steps.into_iter().find(fits).unwrap_or(greatest).max(1.0);
    let loads = std::iter::successors(Some(0.0), |load| Some(load + step));
    loads.take_while(|load| *load <= greatest).collect()
}

/// The horizontal position of a load.
fn at(load: f64, greatest: f64) -> f64 {
    LEFT + (load / greatest).clamp(0.0, 1.0) * (RIGHT - LEFT)
}

/// Draws the load lines of results, labelled A, B, C, D.
pub(super) fn draw(html: &mut Html, entries: &[&Entry]) {
    let rows: Vec<Row> = ('A'..)
        .zip(entries)
        .map(|(letter, it)| row(letter, it))
        .collect();
    let most = greatest(&rows);
    let bottom = rows.iter().fold(TOP, |top, _| top + ROW);
    let height = bottom + 30.0;
    let told: Vec<String> = rows.iter().map(|row| row.label.clone()).collect();
    let view = format!("0 0 {WIDTH} {height}");
    let label = format!("Load lines: {}", told.join("; "));
    let svg = [
        ("viewBox", view.as_str()),
        ("role", "img"),
        ("aria-label", label.as_str()),
        ("class", "load-lines"),
        ("data-test", "load-lines"),
    ];
    html.inside("svg", &svg, |html| {
        let mut top = TOP;
        for row in &rows {
            draw_row(html, row, top, most);
            top += ROW;
        }
        line(html, "axis", (LEFT, bottom), (RIGHT, bottom));
        for load in round_loads(most) {
            let x = at(load, most);
            line(html, "axis", (x, bottom), (x, bottom + 5.0));
            let place = (x, bottom + 20.0);
            text(html, place, anchor(load / most), &whole(load));
        }
    });
}

fn anchor(share: f64) -> &'static str {
    if share < 0.25 {
        "start"
    } else if share > 0.75 {
        "end"
    } else {
        "middle"
    }
}

fn row(letter: char, entry: &Entry) -> Row {
    let edge = entry.edge.map_or_else(String::new, |edge| {
        format!(", edge {}", plimsoll_report::facts::edge(&edge))
    });
    Row {
        letter,
        label: format!("{letter}: {}, {}{edge}", entry.target(), entry.in_short()),
        load_line: entry.load_line.map(f64::from),
        interval: entry.edge.map(|edge| (edge.low, edge.high)),
    }
}

fn draw_row(html: &mut Html, row: &Row, top: f64, most: f64) {
    text(html, (LEFT, top + 13.0), "start", &row.label);
    let middle = top + 28.0;
    let class = format!("interval series-{}", row.letter.to_ascii_lowercase());
    if let Some((low, high)) = row.interval {
        let (from, to) = (at(low, most), high.map_or(RIGHT, |high| at(high, most)));
        line(html, &class, (from, middle), (to, middle));
        line(html, &class, (from, middle - CAP), (from, middle + CAP));
        if high.is_some() {
            line(html, &class, (to, middle - CAP), (to, middle + CAP));
        } else {
            line(html, &class, (to - CAP, middle - CAP), (to, middle));
            line(html, &class, (to - CAP, middle + CAP), (to, middle));
        }
    }
    if let Some(load) = row.load_line {
        let class = format!("mark series-{}", row.letter.to_ascii_lowercase());
        let (x, y) = (places(at(load, most)), places(middle));
        let circle = [
            ("cx", x.as_str()),
            ("cy", y.as_str()),
            ("r", "5"),
            ("class", class.as_str()),
        ];
        html.inside("circle", &circle, |_| ());
    }
}

fn line(html: &mut Html, class: &str, from: (f64, f64), to: (f64, f64)) {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(places);
    let attributes = [
        ("x1", x1.as_str()),
        ("y1", y1.as_str()),
        ("x2", x2.as_str()),
        ("y2", y2.as_str()),
        ("class", class),
    ];
    html.inside("line", &attributes, |_| ());
}

fn text(html: &mut Html, (x, y): (f64, f64), anchor: &str, text: &str) {
    let (x, y) = (places(x), places(y));
    let attributes = [
        ("x", x.as_str()),
        ("y", y.as_str()),
        ("text-anchor", anchor),
    ];
    html.element("text", &attributes, text);
}

fn places(value: f64) -> String {
    format!("{value:.1}")
}

/// A load, rounded to a whole number.
fn whole(load: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a load, not negative; one beyond what counts go to stays at their end"
    )]
    let load = load.round() as u64;
    count(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_names_round_loads() {
        assert_eq!(
            round_loads(2_090.0),
            [0.0, 500.0, 1_000.0, 1_500.0, 2_000.0]
        );
        assert_eq!(
            round_loads(1_000.0),
            [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0]
        );
        assert_eq!(round_loads(1.0), [0.0, 1.0]);
    }

    fn entry(load_line: Option<u32>, edge: Option<(f64, Option<f64>)>) -> Entry {
        serde_json::from_value(serde_json::json!({
            "folder": "f", "kind": "find", "targets": ["<b>x</b>"], "workload": "stt", "profile": "quick", "slo": "stt",
            "vcpu": 1.0, "started_at": "", "verdict": null, "claim": "", "sessions": null, "load_line": load_line,
            "edge": edge.map(|(low, high)| serde_json::json!({"value": low, "low": low, "high": high, "confidence": 0.95})),
            "lower_bound_only": false, "interrupted": false, "cost": null, "cpu_model": "", "cores": "", "trials": 1,
        }))
        .expect("an entry")
    }

    #[test]
    fn the_axis_begins_at_nothing_and_ends_at_the_greatest() {
        assert_eq!(places(at(0.0, 800.0)), "16.0");
        assert_eq!(places(at(800.0, 800.0)), "704.0");
        assert_eq!(places(at(400.0, 800.0)), "360.0");
        assert_eq!(places(at(f64::INFINITY, 800.0)), "704.0");
        let rows = [row('A', &entry(Some(750), Some((789.0, Some(858.0)))))];
        assert!((greatest(&rows) - 858.0).abs() < 1e-9);
        assert!((greatest(&[]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn marks_and_intervals_are_where_their_loads_are_and_names_are_text() {
        let (a, b) = (
            entry(Some(400), Some((300.0, Some(800.0)))),
            entry(None, Some((200.0, None))),
        );
        let mut html = Html::default();
        draw(&mut html, &[&a, &b]);
        let page = html.finish();
        assert_eq!(page.matches("<circle").count(), 1, "{page}");
        assert!(page.contains("cx=\"360.0\""), "{page}");
        assert!(
            page.contains("x1=\"274.0\" y1=\"36.0\" x2=\"704.0\" y2=\"36.0\""),
            "{page}"
        );
        assert!(!page.contains("<b>"), "{page}");
        assert!(page.contains("A: &lt;b&gt;x"), "{page}");
    }
}
