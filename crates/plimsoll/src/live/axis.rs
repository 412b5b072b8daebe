//! The bracket closing in, as a line of loads with marks.

use plimsoll_core::record::{Live, LiveBracket};
use plimsoll_report::words;

use super::line::{Line, Paint};

/// The highest load that passed.
pub(super) const PASS: char = '●';
/// The lowest load that failed.
pub(super) const FAIL: char = '×';
/// The load being tried now.
pub(super) const NOW: char = '◆';

/// An axis over all loads tried on this target, with its ends written beside it.
pub(super) fn line(live: &Live, columns: usize) -> Line {
    let LiveBracket {
        highest_pass,
        lowest_fail,
    } = live.bracket;
    let now = live.trial.as_ref().map(|trial| trial.sessions);
    let tried = live
        .trials
        .iter()
        .filter(|ended| ended.target == live.target)
        .map(|ended| ended.sessions)
        .chain(now);
    let Some((low, high)) = tried.fold(None, |ends: Option<(u32, u32)>, load| {
        let (low, high) = ends.unwrap_or((load, load));
        Some((low.min(load), high.max(load)))
    }) else {
        return Line::default();
    };
    let left = format!("{} ", words::count(u64::from(low)));
    let right = format!(" {}", words::count(u64::from(high)));
    let width = columns.saturating_sub(left.len() + right.len()).min(80);
    if width == 0 {
        return Line::default();
    }
    let at = |load: u32| position(load, low, high, width);
    let mut cells = vec![(Paint::Dim, '─'); width];
    if let (Some(pass), Some(fail)) = (highest_pass, lowest_fail)
        && pass < fail
    {
        cells[at(pass)..=at(fail)].fill((Paint::Plain, '━'));
    }
    // Where marks meet the last one wins, because readers look for what happens now.
    let marks = [
        (highest_pass, Paint::Good, PASS),
        (lowest_fail, Paint::Bad, FAIL),
        (now, Paint::Bold, NOW),
    ];
    for (load, paint, mark) in marks {
        if let Some(load) = load {
            cells[at(load)] = (paint, mark);
        }
    }
    let line = Line::default().with(Paint::Dim, left);
    let line = cells.into_iter().fold(line, |line, (paint, cell)| {
        line.with(paint, cell.to_string())
    });
    line.with(Paint::Dim, right)
}

/// The column of a load, from 0; the middle if there is only one load.
fn position(load: u32, low: u32, high: u32, width: usize) -> usize {
    let last = width.saturating_sub(1);
    let span = u64::from(high.saturating_sub(low));
    if span == 0 {
        return last / 2;
    }
    let offset = u64::from(load.clamp(low, high) - low);
    let columns = u64::try_from(last).unwrap_or(u64::MAX);
    let column = (offset.saturating_mul(columns) + span / 2) / span;
    usize::try_from(column).map_or(last, |column| column.min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_at_the_ends_and_one_load_is_in_the_middle() {
        assert_eq!(position(400, 400, 1_600, 61), 0);
        assert_eq!(position(1_600, 400, 1_600, 61), 60);
        assert_eq!(position(1_000, 400, 1_600, 61), 30);
        assert_eq!(position(400, 400, 400, 61), 30);
        assert_eq!(position(1, 0, u32::MAX, 1), 0);
        assert_eq!(position(u32::MAX, 1, u32::MAX, 80), 79);
    }
}
