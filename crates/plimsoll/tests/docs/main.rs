//! Checks the pages: links lead somewhere, commands work, flags exist, what is generated is up to date.
//!
//! How a page marks its code:
//!
//! - `sh`: run by [`every_command_block_runs`] from the root of the repository, with `plimsoll` on the path. It must
//!   exit with 0, or with the code in a comment `# exit N`;
//! - `sh example`, `yaml`: not run, but the command line must accept every `plimsoll …` line;
//! - anything else (`text`, `console`, `toml`, …): not checked. A block without a word, or an indented one, may not
//!   hold a command.
//!
//! After a change of flags: run `PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test docs`.

mod commands;
mod links;
mod page;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use page::Page;

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

/// Files that git tracks or would add: those that a reader of the repository finds.
fn files() -> BTreeSet<String> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ])
        .current_dir(root())
        .output()
        .expect("git lists the files; these tests need a git checkout");
    assert!(output.status.success(), "git ls-files: {output:?}");
    let listed = String::from_utf8(output.stdout).expect("plain names");
    let there = |name: &&str| root().join(name).exists();
    listed
        .split('\0')
        .filter(|name| !name.is_empty())
        .filter(there)
        .map(str::to_owned)
        .collect()
}

/// All pages.
fn pages() -> Vec<Page> {
    let names = files();
    // A golden file is what a test compares with, not one of our pages.
    let ours = |name: &&String| name.ends_with(".md") && !name.contains("/tests/golden/");
    let names = names.iter().filter(ours);
    let pages: Vec<Page> = names.map(|name| Page::read(&root(), name)).collect();
    assert!(pages.len() > 20, "where are the pages? {}", pages.len());
    pages
}

/// The pages that tell a user what to type. Results are records of what was typed, and a target's page is about other
/// programs too.
fn manual() -> Vec<Page> {
    let mut pages = pages();
    pages.retain(|page| {
        let of_docs = page.name.starts_with("docs/") && !page.name.starts_with("docs/results/");
        of_docs || !page.name.contains('/')
    });
    pages
}

fn fail(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    fail("broken links", &links::broken(&pages(), &files()));
}

#[test]
fn every_block_with_a_command_is_marked() {
    let unmarked: Vec<String> = manual().iter().flat_map(commands::unmarked).collect();
    fail(
        "a command stands in a block that is marked neither `sh` nor `sh example`",
        &unmarked,
    );
}

#[test]
fn every_command_is_one_that_the_command_line_takes() {
    let refused: Vec<String> = manual().iter().flat_map(commands::refused).collect();
    fail("the command line does not take", &refused);
}

#[test]
fn every_flag_that_is_named_exists() {
    let known = commands::known_flags(&commands::reference());
    assert!(known.len() > 50 && known.contains("--time-budget"));
    let unknown: Vec<String> = manual()
        .iter()
        .flat_map(|page| commands::unknown_flags(page, &known))
        .collect();
    fail("there is no such flag", &unknown);
}

#[test]
fn every_command_block_runs() {
    let failed: Vec<String> = manual()
        .iter()
        .flat_map(|page| commands::run(page, &root()))
        .collect();
    fail("a block marked `sh` did not end as it should", &failed);
}

/// Looking for examples takes seconds for each crate, so those that have none say so. One that has some since must not.
#[test]
fn examples_in_the_documentation_of_code_are_run() {
    let doc = |line: &str| {
        let text = line.trim_start();
        let doc = text.strip_prefix("///").or(text.strip_prefix("//!"));
        format!("{}\n", doc.unwrap_or_default())
    };
    let mut not_run = Vec::new();
    for name in files() {
        let Some((of_crate, _)) = name.split_once("/src/") else {
            continue;
        };
        if !name.starts_with("crates/") || !name.ends_with(".rs") {
            continue;
        }
        let read = |name: &str| std::fs::read_to_string(root().join(name)).expect(name);
        let docs: String = read(&name).lines().map(doc).collect();
        let mut blocks = Page::parse(&name, &docs).blocks.into_iter();
        let example = blocks.any(|block| block.info.as_deref() != Some("text"));
        let manifest = format!("{of_crate}/Cargo.toml");
        if example && read(&manifest).contains("doctest = false") {
            not_run.push(format!("{name}: {manifest} has `doctest = false`"));
        }
    }
    fail("an example that is not run", &not_run);
}

#[test]
fn the_reference_of_the_command_line_is_that_of_the_parser() {
    let file = root().join("docs/reference/cli.md");
    let page = commands::reference();
    if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
        std::fs::write(&file, &page).expect("docs/ can be written");
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == page,
        "docs/reference/cli.md is behind: PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test docs"
    );
}
