//! Flags of the workloads' parameters, made from their rows. [`crate::setup`] checks which of them go together.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll_core::secret::Secret;
use plimsoll_core::words::listed;
use plimsoll_workload::parameter::is_toml;
use plimsoll_workload::{Fields, Kind, Parameter, Usual, Value, Values};

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

    /// The ids of the arguments that hold secrets, of those for their files, and of those with fields that may be secrets.
    pub(crate) fn secret_ids() -> Vec<String> {
        let rows = workloads::parameters().into_iter();
        let of_secrets = |(name, owners): (&str, Vec<Owned>)| {
            if any(&owners, |kind| matches!(kind, Kind::Secret)) {
                vec![name.to_owned(), file_id(name)]
            } else if any(&owners, |kind| matches!(kind, Kind::Fields)) {
                vec![name.to_owned()]
            } else {
                Vec::new()
            }
        };
        rows.flat_map(of_secrets).collect()
    }

    /// Puts the secrets back that were left out of fields, as they are given once more.
    ///
    /// # Errors
    /// What is still missing, or was given and is not missing.
    pub(crate) fn complete_fields(&mut self, given: &Self) -> Result<(), String> {
        let rows = workloads::parameters().into_iter();
        for (name, _) in rows.filter(|(_, owners)| any(owners, |kind| matches!(kind, Kind::Fields)))
        {
            let fields = |args: &Self| args.given.fields(name).cloned().unwrap_or_default();
            let complete = fields(self).completed(&fields(given));
            let complete = complete.map_err(|why| format!("--{name}: {why}"))?;
            if complete != Fields::default() {
                self.given.set(name, Value::Fields(complete));
            }
        }
        Ok(())
    }
}

/// Whether any of these workloads has a parameter of such a kind.
fn any(owners: &[Owned], is: impl Fn(&Kind) -> bool) -> bool {
    owners.iter().any(|of| is(&of.row.kind))
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
    } else if any(owners, |kind| matches!(kind, Kind::Fields)) {
        let lines = matches.get_many::<Fields>(name).unwrap_or_default();
        let fields = lines.cloned().reduce(Fields::and);
        if let Some(fields) = fields {
            given.set(name, Value::Fields(fields));
        }
    } else if let Some(value) = matches.get_one::<Value>(name) {
        given.set(name, value.clone());
    }
}

fn heading(owners: &[Owned]) -> String {
    let names: Vec<_> = owners.iter().map(|of| of.workload).collect();
    match names.as_slice() {
        [one] => format!("Workload {one}"),
        several => format!("Workloads {}", listed(several)),
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
    if matches!(row.kind, Kind::Fields) {
        return argument
            .value_name("NAME=VALUE")
            .action(ArgAction::Append)
            .value_parser(OneField);
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
        Kind::Fields => ". Repeatable. Others can read it in the process list",
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
        for choice in owner.row.kind.choices() {
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
    let choices = choices(owners);
    if !choices.is_empty() {
        let names = choices.into_iter();
        let names = names.map(|(name, about)| PossibleValue::new(name).help(about));
        return ValueParser::new(OneWord {
            words: PossibleValuesParser::new(names),
            or_file: any(owners, |kind| matches!(kind, Kind::OneOfOrFile(_))),
        });
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

/// Reads one of these words, or the name of a file if any workload takes that.
#[derive(Clone)]
struct OneWord {
    words: PossibleValuesParser,
    or_file: bool,
}

impl TypedValueParser for OneWord {
    type Value = Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        text: &OsStr,
    ) -> Result<Value, clap::Error> {
        match text.to_str() {
            Some(name) if self.or_file && is_toml(name) => Ok(Value::File(PathBuf::from(name))),
            _ => self
                .words
                .parse_ref(command, argument, text)
                .map(Value::Word),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.words.possible_values()
    }
}

/// Reads `NAME=VALUE`. What cannot be read is not repeated: it may be a secret.
#[derive(Clone)]
struct OneField;

impl TypedValueParser for OneField {
    type Value = Fields;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        text: &OsStr,
    ) -> Result<Fields, clap::Error> {
        let refuse = |why: &str| {
            let flag = argument.and_then(Arg::get_long).unwrap_or_default();
            let mut command = command.clone();
            command.error(ErrorKind::ValueValidation, format!("--{flag}: {why}"))
        };
        let text = text.to_str().ok_or_else(|| refuse("write it in UTF-8"))?;
        Fields::parse(text).map_err(|why| refuse(&why))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_workload::Choice;

    use super::*;

    const WORDS: [Choice; 2] = [Choice::new("plain", "as it is"), Choice::new("wse", "ours")];
    const OTHERS: [Choice; 1] = [Choice::new("deepgram", "JSON")];

    const WORD: Parameter = Parameter::new("dialect", Kind::OneOf(&WORDS), "What it speaks");
    const OR_FILE: Parameter = Parameter::new("dialect", Kind::OneOfOrFile(&OTHERS), "A language");
    const FIELDS: Parameter = Parameter::new("param", Kind::Fields, "Field of the query");

    const BOTH: [Owned; 2] = [
        Owned {
            workload: "ws",
            row: &WORD,
        },
        Owned {
            workload: "speech",
            row: &OR_FILE,
        },
    ];
    const PARAM: [Owned; 1] = [Owned {
        workload: "speech",
        row: &FIELDS,
    }];

    fn command() -> Command {
        let word_only = argument("dialect", &BOTH[..1]);
        let word_only = word_only.long("word").id("word");
        Command::new("x")
            .arg(argument("dialect", &BOTH))
            .arg(word_only)
            .arg(argument("param", &PARAM))
    }

    fn values(line: &str) -> Result<Values, String> {
        let matches = command().try_get_matches_from(line.split(' '));
        let matches = matches.map_err(|error| error.to_string())?;
        let mut values = Values::default();
        read(&matches, "dialect", &BOTH, &mut values);
        read(&matches, "param", &PARAM, &mut values);
        Ok(values)
    }

    #[test]
    fn a_word_of_one_workload_and_a_file_of_another_share_a_flag() {
        let dialect = |line: &str| values(line).map(|values| values.get("dialect").cloned());
        let word = |name: &str| Ok(Some(Value::Word(name.to_owned())));
        assert_eq!(dialect("x --dialect wse"), word("wse"));
        assert_eq!(dialect("x --dialect deepgram"), word("deepgram"));
        let file = Value::File("of/my.toml".into());
        assert_eq!(dialect("x --dialect of/my.toml"), Ok(Some(file)));
        assert_eq!(dialect("x"), Ok(None));
        let unknown = dialect("x --dialect my.json").unwrap_err();
        assert!(unknown.contains("plain, wse, deepgram"), "{unknown}");
        // Where no workload takes a file, its name is no word.
        assert!(values("x --word my.toml").is_err());
        let help = command().render_long_help().to_string();
        for part in ["deepgram", "speech: JSON", "ws: ours"] {
            assert!(help.contains(part), "no {part} in {help}");
        }
    }

    #[test]
    fn fields_are_repeatable_and_a_bad_one_is_not_repeated() {
        let given = values("x --param b=1 --param=token=canary --param b=2").unwrap();
        let fields: Vec<_> = given.fields("param").unwrap().iter().collect();
        assert_eq!(fields, [("b", "1"), ("token", "canary"), ("b", "2")]);
        assert_eq!(values("x").unwrap().fields("param"), None);
        for line in ["x --param canary", "x --param =canary"] {
            let refused = values(line).unwrap_err();
            assert!(
                refused.contains("--param: write NAME=VALUE") && !refused.contains("canary"),
                "{refused}"
            );
        }
    }
}
