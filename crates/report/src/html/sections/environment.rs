//! The machine, and how to repeat the measurement.

use plimsoll_core::record::Trial;

use crate::facts;
use crate::facts::repeat::Repeat;
use crate::html::parts::{self, Contents, Levels, part};
use crate::html::write::Html;

/// The machine of a search, as recorded in one of its trials.
pub(super) fn write(
    html: &mut Html,
    contents: &mut Contents,
    (id, level): (&str, Levels),
    trial: &Trial,
) {
    part(html, contents, (id, "Environment", level.part), |html| {
        table(html, trial)
    });
}

/// The machine, the placement, the versions.
pub(super) fn table(html: &mut Html, trial: &Trial) {
    html.inside("div", &[("data-test", "environment")], |html| {
        let rows = facts::trial::environment(trial);
        parts::facts(html, "The machine, the placement, the versions", &rows);
    });
}

/// The command that repeats the measurement: its verb, its load and its seed.
pub(super) fn repeat(
    html: &mut Html,
    (id, level): (&str, Levels),
    trial: &Trial,
    (verb, sessions, seed): (&str, Option<u32>, u64),
) {
    let repeat = Repeat::of(trial, verb, sessions, seed);
    parts::unlisted_part(html, (id, "How to repeat", level.part), |html| {
        parts::command(html, &repeat.command);
        if let Some(changed) = &repeat.changed_profile {
            parts::paragraph(html, changed);
        }
        if !repeat.own_gates.is_empty() {
            let gates = repeat.own_gates.iter();
            let gates: Vec<_> = gates
                .map(|(name, most)| format!("{name} = {most}"))
                .collect();
            let gates = gates.join(", ");
            let text = format!("with --slo and a file that has under [gates]: {gates}.");
            parts::paragraph(html, &text);
        }
    });
}
