//! Flags of the workloads' parameters, made from their rows. [`crate::setup`] checks which of them go together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll_core::secret::Secret;
use plimsoll_workload::{Kind, Parameter, Usual, Value, Values};

use crate::workloads::{self, Owned};

/// The parameters that were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParameterArgs {
    pub(crate) given: Values,
    /// The files of secrets, by the parameter's name.
    secret_files: BTreeMap<String, PathBuf>,
}

impl ParameterArgs {
    /// The file that holds this secret, if one was given.
    pub(crate) fn secret_file(&self, name: &str) -> Option<&Path> {
        self.secret_files.get(name).map(PathBuf::as_path)
    }

    /// The files that hold secrets, each with the parameter's name.
    pub(crate) fn secret_files(&self) -> impl Iterator<Item = (&str, &Path)> {
        let files = self.secret_files.iter();
        files.map(|(name, file)| (name.as_str(), file.as_path()))
    }

    /// Replaces a secret and its file.
    pub(crate) fn set_secret(&mut self, name: &str, secret: Secret) {
        self.secret_files.remove(name);
        self.given.set(name, Value::Secret(secret));
    }

    /// The ids of the arguments that hold secrets, and of those for their files.
    pub(crate) fn secret_ids() -> Vec<String> {
        let rows = workloads::parameters().into_iter();
        let secrets = rows.filter(|(_, owners)| owners.iter().any(|of| of.row.is_secret()));
        secrets
            .flat_map(|(name, _)| [name.to_owned(), file_id(name)])
            .collect()
    }
}

fn file_id(name: &str) -> String {
    format!("{name}_file")
}

impl clap::FromArgMatches for ParameterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut parsed = Self::default();
        parsed.update_from_arg_matches(matches)?;
        Ok(parsed)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (name, owners) in workloads::parameters() {
            read(matches, name, &owners, &mut self.given);
            if owners[0].row.is_secret()
                && let Some(file) = matches.get_one::<PathBuf>(&file_id(name))
            {
                self.secret_files.insert(name.to_owned(), file.clone());
            }
        }
        Ok(())
    }
}

impl clap::Args for ParameterArgs {
    fn augment_args(command: Command) -> Command {
        let rows = workloads::parameters().into_iter();
        rows.fold(command, |command, (name, owners)| {
            let row = owners[0].row;
            let command = command.arg(argument(name, &owners));
            let Some(variable) = row.variable() else {
                return command;
            };
            let file = Arg::new(file_id(name))
                .long(format!("{}-file", row.flag()))
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help(format!(
                    "File that holds the value of --{}. Or set the environment variable {variable}",
                    row.flag()
                ))
                .help_heading(heading(&owners));
            command.arg(file)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The given parameters that are properties of a target, for a command that puts no load on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PropertyArgs(pub(crate) Values);

fn properties() -> impl Iterator<Item = (&'static str, Vec<Owned>)> {
    let rows = workloads::parameters().into_iter();
    rows.filter(|(_, owners)| owners.iter().any(|of| of.row.of_target.is_some()))
}

impl clap::FromArgMatches for PropertyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut parsed = Self::default();
        parsed.update_from_arg_matches(matches)?;
        Ok(parsed)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        properties().for_each(|(name, owners)| read(matches, name, &owners, &mut self.0));
        Ok(())
    }
}

impl clap::Args for PropertyArgs {
    fn augment_args(command: Command) -> Command {
        properties().fold(command, |command, (name, owners)| {
            command.arg(argument(name, &owners))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Adds the value of a parameter, if it was given.
fn read(matches: &ArgMatches, name: &str, owners: &[Owned], given: &mut Values) {
    if matches!(owners[0].row.kind, Kind::Flag) {
        if matches.get_flag(name) {
            given.set(name, Value::Flag(true));
        }
    } else if let Some(value) = matches.get_one::<Value>(name) {
        given.set(name, value.clone());
    }
}

fn heading(owners: &[Owned]) -> String {
    let names: Vec<_> = owners.iter().map(|of| of.workload).collect();
    match names.as_slice() {
        [one] => format!("Workload {one}"),
        several => format!("Workloads {}", several.join(" and ")),
    }
}

/// The argument of a parameter that these workloads have.
fn argument(name: &'static str, owners: &[Owned]) -> Arg {
    let row = owners[0].row;
    let argument = Arg::new(name)
        .long(row.flag())
        .help(help(owners))
        .help_heading(heading(owners));
    if matches!(row.kind, Kind::Flag) {
        return argument.action(ArgAction::SetTrue);
    }
    let argument = argument
        .value_name(row.value_name)
        .value_parser(parser(owners));
    if row.is_secret() {
        return argument.conflicts_with(file_id(name));
    }
    argument
}

/// What a parameter is, with which others it has a meaning, and its usual value. If several workloads have it, what it is
/// for each, where that is not the same.
fn help(owners: &[Owned]) -> String {
    let of_each = |of: &dyn Fn(&Parameter) -> Option<String>, between: &str| -> Vec<String> {
        let said = owners
            .iter()
            .filter_map(|owner| Some((owner.workload, of(owner.row)?)));
        let said: Vec<_> = said.collect();
        let same = said.len() == owners.len() && said.iter().all(|(_, text)| *text == said[0].1);
        match said.as_slice() {
            [(_, text), ..] if same => vec![text.clone()],
            several => several
                .iter()
                .map(|(name, text)| format!("{name}{between}{text}"))
                .collect(),
        }
    };
    let texts = of_each(&|row| Some(text(row)), ": ").join("; ");
    let usual = of_each(&|row| usual(row).map(str::to_owned), " ").join(", ");
    if usual.is_empty() {
        texts
    } else {
        format!("{texts} [default: {usual}]")
    }
}

fn text(row: &Parameter) -> String {
    let mut conditions: Vec<String> = Vec::new();
    if row.only_running {
        conditions.push("with --url".to_owned());
    }
    conditions.extend(row.fits.iter().map(|fit| {
        let values = match fit.among {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            all => all.concat(),
        };
        format!("for --{} {values}", fit.of.replace('_', "-"))
    }));
    let shown = match row.kind {
        Kind::Secret => ". Others can read it in the process list",
        _ => "",
    };
    if conditions.is_empty() {
        return format!("{}{shown}", row.help);
    }
    let mut conditions = conditions.join(" and ");
    conditions[..1].make_ascii_uppercase();
    format!("{conditions}: {}{shown}", row.help)
}

fn usual(row: &Parameter) -> Option<&'static str> {
    match row.usual {
        Usual::None => None,
        Usual::Value(text) | Usual::Told(text) => Some(text),
    }
}

/// The words that any of these workloads takes, each once. If there are several workloads, each word says whose it is.
fn choices(owners: &[Owned]) -> Vec<(&'static str, String)> {
    let mut words: Vec<(&'static str, String)> = Vec::new();
    for owner in owners {
        let Kind::OneOf(choices) = owner.row.kind else {
            continue;
        };
        for choice in choices {
            let about = match owners {
                [_] => choice.about.to_owned(),
                _ => format!("{}: {}", owner.workload, choice.about),
            };
            match words.iter_mut().find(|(name, _)| *name == choice.name) {
                Some((_, known)) => *known = format!("{known}; {about}"),
                None => words.push((choice.name, about)),
            }
        }
    }
    words
}

/// Reads a value that any of these workloads takes. Which of them is asked is known later.
fn parser(owners: &[Owned]) -> ValueParser {
    if matches!(owners[0].row.kind, Kind::OneOf(_)) {
        let names = choices(owners)
            .into_iter()
            .map(|(name, about)| PossibleValue::new(name).help(about));
        return PossibleValuesParser::new(names).map(Value::Word).into();
    }
    let rows: Vec<_> = owners.iter().map(|of| of.row).collect();
    ValueParser::new(move |text: &str| {
        let read = rows.iter().map(|row| row.kind.parse(text));
        let mut last = Err(String::new());
        for read in read {
            last = read;
            if last.is_ok() {
                break;
            }
        }
        last
    })
}
