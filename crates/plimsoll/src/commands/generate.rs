//! `plimsoll generate`: manual pages, shell completions and the reference page. All come from the parser itself, so
//! they cannot disagree with it.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command, CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::args::{Args, GenerateArgs, Generated};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &GenerateArgs) -> Result<ExitCode, Failure> {
    match &args.what {
        Generated::Man { dir } => into(dir, manual)?,
        Generated::Completions { dir } => into(dir, completions)?,
        Generated::Markdown => output::print(&markdown()),
        Generated::Image {
            out,
            name,
            programs,
        } => super::fleet::write_image(out, name.as_deref(), programs)?,
        Generated::Deploy { dir, root } => super::fleet::write_files(dir, root.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn into(dir: &Path, write: fn(&Path) -> io::Result<()>) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)
        .and_then(|()| write(dir))
        .map_err(|error| Failure::Usage(format!("cannot write to {}: {error}", dir.display())))
}

fn manual(dir: &Path) -> io::Result<()> {
    clap_mangen::generate_to(visible(), dir)
}

fn completions(dir: &Path) -> io::Result<()> {
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut visible(), "plimsoll", dir)?;
    }
    Ok(())
}

/// The command line as a user sees it. Without this, completions would offer the hidden subcommands too.
fn visible() -> Command {
    let whole = Args::command();
    let shown = Command::new("plimsoll")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .subcommand_required(true);
    let subcommands = whole.get_subcommands();
    shown.subcommands(
        subcommands
            .filter(|subcommand| !subcommand.is_hide_set())
            .cloned(),
    )
}

/// The page docs/reference/cli.md.
fn markdown() -> String {
    let mut root = visible();
    root.build();
    let mut page = String::from(
        "# Command line\n\n<!-- Written by `plimsoll generate markdown`. Do not edit: change the help in crates/plimsoll/src/args.rs instead. -->\n\n",
    );
    let _ = write!(
        page,
        "{}.\n\n| command | purpose |\n|---|---|\n",
        about(&root)
    );
    for command in shown(&root) {
        let name = command.get_name();
        let _ = writeln!(
            page,
            "| [`{name}`](#plimsoll-{name}) | {} |",
            about(command)
        );
    }
    for command in shown(&root) {
        section(&mut page, command.get_name(), command);
        for below in shown(command) {
            let name = format!("{} {}", command.get_name(), below.get_name());
            section(&mut page, &name, below);
        }
    }
    page
}

fn shown(root: &Command) -> impl Iterator<Item = &Command> {
    // clap adds its own `help` subcommand.
    root.get_subcommands()
        .filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(|text| cell(&text.to_string()))
        .unwrap_or_default()
}

fn section(page: &mut String, name: &str, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = write!(
        page,
        "\n## plimsoll {name}\n\n{}.\n\n```text\n{usage}\n```\n",
        about(command),
    );
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let arguments = arguments.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"));
    let arguments: Vec<_> = arguments.collect();
    if !arguments.is_empty() {
        page.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for arg in arguments {
        let _ = writeln!(page, "| `{}` | {} |", cell(&spelling(arg)), meaning(arg));
    }
}

/// `--flag <VALUE>` or `<VALUE>`, as the help spells it.
fn spelling(arg: &Arg) -> String {
    let value = || {
        let names = arg.get_value_names().unwrap_or_default();
        let names: Vec<_> = names.iter().map(|name| format!("<{name}>")).collect();
        names.join(" ")
    };
    match (arg.get_long(), arg.get_action()) {
        (Some(long), ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count) => {
            format!("--{long}")
        }
        (Some(long), _) => format!("--{long} {}", value()),
        (None, _) => value(),
    }
}

/// The help, then what else the parser knows: the allowed values and the default.
fn meaning(arg: &Arg) -> String {
    let mut text = arg
        .get_help()
        .map(|help| cell(&help.to_string()))
        .unwrap_or_default();
    for alias in arg.get_visible_aliases().unwrap_or_default() {
        let _ = write!(text, ". Also `--{alias}`");
    }
    let takes_value = arg.get_action().takes_values();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| takes_value && !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({})", value.get_name(), cell(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        let _ = write!(text, ". Values: {}", values.join(", "));
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() {
        let _ = write!(text, ". Default: {}", defaults.join(", "));
    }
    text
}

/// Escapes text for a table cell: a bar would end the cell, and a line break would end the table. Outside of code,
/// `<WORD>` would be a tag.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_visible_command_and_every_argument() {
        let page = markdown();
        let root = visible();
        for command in root.get_subcommands() {
            assert!(page.contains(&format!("\n## plimsoll {}\n", command.get_name())));
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                assert!(
                    page.contains(&cell(&spelling(arg))),
                    "{}: {}",
                    command.get_name(),
                    arg.get_id()
                );
            }
        }
        assert!(page.contains("| `--sessions <N>` |"), "{page}");
        assert!(page.contains(". Also `--load`"), "{page}");
        assert!(
            !page.contains("generate\n"),
            "hidden subcommands are not for users"
        );
    }

    #[test]
    fn manual_and_completions_know_the_subcommands() {
        let dir = tempfile::tempdir().unwrap();
        manual(dir.path()).unwrap();
        completions(dir.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(read("plimsoll-find.1").contains("time\\-budget"));
        assert!(!dir.path().join("plimsoll-generate.1").exists());
        let bash = read("plimsoll.bash");
        assert!(bash.contains("--time-budget") && !bash.contains("generate"));
        assert!(!read("_plimsoll").contains("'generate:"));
    }
}
