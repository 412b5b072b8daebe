//! `plimsoll list`: lists targets, their tier, and whether this machine can build and run each.

use std::collections::BTreeMap;
use std::process::ExitCode;

use plimsoll_lab::manifest::{self, Manifest, Readiness};

use crate::args::ListArgs;
use crate::failure::Failure;
use crate::output::{self, note, say};
use crate::workloads;

use plimsoll_workload::Workload;

pub(crate) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let root = manifest::root_of_this_process(args.root.as_deref())?;
    let found = manifest::discover(&root, workloads::manifest_keys)?;
    let asked = |manifest: &&Manifest| match args.workload {
        Some(workload) => workload.about().name == manifest.workload,
        None => workloads::has(&manifest.workload),
    };
    let targets: Vec<_> = found.targets.iter().filter(asked).collect();
    let rows: Vec<Row> = manifest::availability_of_each(targets.iter().copied())
        .into_iter()
        .zip(targets)
        .map(|(here, manifest)| Row::of(manifest, here.readiness, args.workload))
        .collect();
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "name": row.name, "workload": row.workload, "tier": row.tier, "language": row.language,
                    "description": row.description, "runs_here": row.readiness.missing().is_none(),
                    "built": row.readiness == Readiness::Ready, "state": row.readiness.to_string(),
                    "offers": row.offers,
                })
            })
            .collect();
        output::print_json(&rows)?;
    } else {
        print_table(&rows);
    }
    let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
    for manifest in &found.targets {
        if !workloads::has(&manifest.workload) {
            *unknown.entry(&manifest.workload).or_default() += 1;
        }
    }
    for (workload, targets) in unknown {
        note!(
            "plimsoll: {targets} of workload {workload} left out: this version does not have that workload"
        );
    }
    for broken in &found.broken {
        note!("plimsoll: {broken}");
    }
    Ok(ExitCode::from(if found.broken.is_empty() { 0 } else { 2 }))
}

struct Row {
    name: String,
    workload: String,
    tier: &'static str,
    language: String,
    description: String,
    readiness: Readiness,
    /// What its workload says that it offers; empty in a list of all workloads.
    offers: Vec<String>,
}

impl Row {
    fn of(
        manifest: &Manifest,
        readiness: Readiness,
        workload: Option<&'static dyn Workload>,
    ) -> Self {
        Self {
            name: manifest.name.clone(),
            workload: manifest.workload.clone(),
            tier: manifest.tier.word(),
            language: manifest.language.clone(),
            description: manifest.description.clone(),
            readiness,
            offers: workload.map_or_else(Vec::new, |workload| workload.offers(manifest)),
        }
    }
}

fn print_table(rows: &[Row]) {
    let header = ["TARGET", "WORKLOAD", "TIER", "LANGUAGE", "STATE"];
    let states: Vec<String> = rows.iter().map(|row| row.readiness.to_string()).collect();
    let cells: Vec<[&str; 5]> = std::iter::once(header)
        .chain(rows.iter().zip(&states).map(|(row, state)| {
            [
                row.name.as_str(),
                &row.workload,
                row.tier,
                &row.language,
                state,
            ]
        }))
        .collect();
    let width = |column: usize| {
        let lengths = cells.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..4).map(width).collect();
    // The head has no row, and nothing to offer.
    let offers = std::iter::once([].as_slice()).chain(rows.iter().map(|row| row.offers.as_slice()));
    for ([name, workload, tier, language, state], offers) in cells.into_iter().zip(offers) {
        say!(
            "{name:<0$}  {workload:<1$}  {tier:<2$}  {language:<3$}  {state}",
            widths[0],
            widths[1],
            widths[2],
            widths[3]
        );
        for offer in offers {
            say!("    {offer}");
        }
    }
}
