//! Commands on the pages.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::page::{Block, Page};

const PLIMSOLL: &str = env!("CARGO_BIN_EXE_plimsoll");

/// The info strings of blocks that are run, and of blocks that are only parsed.
const RUN: &str = "sh";
const EXAMPLE: &str = "sh example";

/// The reference page that the parser makes of itself.
pub(crate) fn reference() -> String {
    let output = Command::new(PLIMSOLL)
        .args(["generate", "markdown"])
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The flags in a text, at the beginning of a word.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "`|[](),;=\"".contains(c));
    words.filter(|word| {
        let name = word.strip_prefix("--").unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_lowercase())
    })
}

pub(crate) fn known_flags(reference: &str) -> BTreeSet<String> {
    let own = ["--help", "--version"];
    flags(reference).chain(own).map(str::to_owned).collect()
}

/// Inline code that begins with a flag, but not with one of ours.
pub(crate) fn unknown_flags(page: &Page, known: &BTreeSet<String>) -> Vec<String> {
    let spans = page.spans.iter().filter(|span| span.starts_with("--"));
    spans
        .filter(|span| flags(span).any(|flag| !known.contains(flag)))
        .map(|span| format!("{}: `{span}`", page.name))
        .collect()
}

/// The lines of a shell block, without comments; continued lines are joined.
fn lines(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let uncommented = joined.lines().map(|line| {
        let comment = line.find(" #").unwrap_or(line.len());
        // A step of a workflow is a command too.
        let line = line[..comment].trim().trim_start_matches("- ");
        line.trim_start_matches("run: ").to_owned()
    });
    uncommented
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// The arguments of a line that calls `plimsoll`, without variables before it; `None` for any other line.
fn arguments(line: &str) -> Option<Vec<String>> {
    let mut words = words(line).into_iter().skip_while(|word| {
        let (name, _) = word.split_once('=').unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    });
    let program = words.next()?;
    let name = program.rsplit('/').next().unwrap_or_default();
    let end = |word: &String| ["|", "||", "&&", ">", ";", "&"].contains(&word.as_str());
    (name == "plimsoll").then(|| words.take_while(|word| !end(word)).collect())
}

/// Splits a line into words as a shell does, as far as pages need it: quotes, and no more.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn calls(block: &Block) -> Vec<String> {
    let lines = lines(&block.text).into_iter();
    lines.filter(|line| arguments(line).is_some()).collect()
}

/// Blocks that contain a command but are not marked.
pub(crate) fn unmarked(page: &Page) -> Vec<String> {
    let marked = |block: &&Block| block.info.as_deref().is_some_and(|info| !info.is_empty());
    let unmarked = page.blocks.iter().filter(|block| !marked(block));
    let shell = |block: &&Block| {
        let word = block.info.as_deref().unwrap_or_default();
        let word = word.split_whitespace().next().unwrap_or_default();
        ["bash", "shell", "zsh"].contains(&word)
    };
    let other_shells = page.blocks.iter().filter(shell);
    unmarked
        .chain(other_shells)
        .flat_map(calls)
        .map(|line| format!("{}: {line}", page.name))
        .collect()
}

/// Commands in shell blocks and workflows that the parser does not accept: unknown flags, impossible values. `--help`
/// at the end keeps the commands from running.
pub(crate) fn refused(page: &Page) -> Vec<String> {
    let kinds = [RUN, EXAMPLE, "yaml"].map(Some);
    let shown = |block: &&Block| kinds.contains(&block.info.as_deref());
    let in_blocks = page.blocks.iter().filter(shown).flat_map(calls);
    let in_text = page.spans.iter().filter(|span| arguments(span).is_some());
    in_blocks
        .chain(in_text.cloned())
        .filter_map(|line| refusal(&line).map(|why| format!("{}: {line}: {why}", page.name)))
        .collect()
}

/// Whether a word stands for a number: a shell variable, or a placeholder in a text.
fn any_number(word: &str) -> bool {
    word.starts_with('$') || ["N", "X"].contains(&word)
}

fn refusal(line: &str) -> Option<String> {
    let number = |word: String| match any_number(&word) {
        true => "100".to_owned(),
        false => word,
    };
    let output = Command::new(PLIMSOLL)
        .args(arguments(line)?.into_iter().map(number))
        .arg("--help")
        .output()
        .expect("the command runs");
    let why = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| why.trim().to_owned())
}

/// Runs the blocks marked `sh`, in a folder that looks like the repository; what they leave behind is deleted with it.
pub(crate) fn run(page: &Page, root: &Path) -> Vec<String> {
    let blocks = page.blocks.iter();
    blocks
        .filter(|block| block.info.as_deref() == Some(RUN))
        .filter_map(|block| run_one(block, root))
        .map(|why| format!("{}: {why}", page.name))
        .collect()
}

fn run_one(block: &Block, root: &Path) -> Option<String> {
    let place = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(root).expect("the repository").flatten() {
        if entry.file_name() != "results" {
            symlink(entry.path(), place.path().join(entry.file_name())).expect("a link");
        }
    }
    let programs = Path::new(PLIMSOLL).parent().expect("a folder of programs");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-eu", "-c", &block.text])
        .current_dir(place.path())
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()
        .expect("a shell");
    let wanted = block
        .text
        .split("# exit ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .map_or(0, |code| code.parse().expect("# exit takes a number"));
    (output.status.code() != Some(wanted)).then(|| {
        format!(
            "{} instead of exit code {wanted}\n{}{}{}",
            output.status,
            block.text,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

#[test]
fn faults_of_a_page_are_found() {
    let page = Page::parse(
        "p.md",
        "`--pears 3` `--pairs 3` `plimsoll compare a b --pears`\n\n    plimsoll list\n\n```bash\nplimsoll doctor\n```\n\n```sh example\nLIE=x plimsoll run a \\\n  --sessions ten   # no number\nplimsoll run --sessions 10 'a b'\n```\n",
    );
    assert_eq!(
        unmarked(&page),
        ["p.md: plimsoll list", "p.md: plimsoll doctor"]
    );
    let refused = refused(&page);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[0].contains("invalid value 'ten' for '--sessions <N>'"),
        "{refused:?}"
    );
    assert!(
        refused[1].contains("unexpected argument '--pears'"),
        "{refused:?}"
    );
    let known = ["--pairs".to_owned()].into();
    assert_eq!(unknown_flags(&page, &known), ["p.md: `--pears 3`"]);
}

#[test]
fn a_block_that_is_run_is_held_to_its_exit_code() {
    let block = |text: &str| Block {
        info: Some(RUN.to_owned()),
        text: text.to_owned(),
    };
    let root = crate::root();
    assert_eq!(run_one(&block("test -f Cargo.toml\n"), &root), None);
    assert_eq!(
        run_one(
            &block("plimsoll run nobody --sessions 5   # exit 2\n"),
            &root
        ),
        None
    );
    let failed = run_one(&block("exit 3\n"), &root).expect("a fault");
    assert!(failed.contains("instead of exit code 0"), "{failed}");
}
