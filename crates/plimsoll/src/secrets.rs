//! Where secrets come in: flags, files, and the environment. [`plimsoll_core::secret`] keeps them out of everything
//! else.
//!
//! Each secret can be given in three ways. Only this process reads a file and the environment; everybody on the machine
//! can read a flag in the process list. The environment has one variable for each secret. There is no notation within a
//! value (`$NAME`), because a value that begins like this may be meant literally.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Once;

use plimsoll_core::secret::{Secret, Secrets, redacted_command};
use plimsoll_host::secret_variables::HEADERS_VARIABLE;
use plimsoll_workload::{Value, Values, Workload};

use crate::args::{LoadArgs, ParameterArgs};
use crate::failure::Failure;
use crate::workloads;

/// The bearer token of `plimsoll check --url`.
pub(crate) const TOKEN_VARIABLE: &str = "PLIMSOLL_TOKEN";
/// The token that the pages of `plimsoll serve` require.
pub(crate) const SERVE_TOKEN_VARIABLE: &str = "PLIMSOLL_SERVE_TOKEN";

/// Name and value of each header.
pub(crate) type Headers = Vec<(String, Secret)>;

/// The headers of the upgrade request. If a name is given in several ways, a flag takes precedence over a file, and a
/// file over the environment.
pub(crate) fn headers(load: &LoadArgs) -> Result<Headers, Failure> {
    let mut all = Headers::new();
    if let Some(lines) = variable(HEADERS_VARIABLE)? {
        all = lines_of(lines.expose(), HEADERS_VARIABLE)?;
    }
    for file in &load.header_file {
        let shown = format!("--header-file {}", file.display());
        let text = read("--header-file", file)?;
        supersede(&mut all, lines_of(text.expose(), &shown)?);
    }
    let of_flags: Result<Headers, Failure> = load
        .header
        .iter()
        .map(|line| header(line.expose()).ok_or_else(|| malformed("--header")))
        .collect();
    supersede(&mut all, of_flags?);
    Ok(all)
}

fn supersede(all: &mut Headers, nearer: Headers) {
    let is_given = |name: &str| {
        nearer
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
    };
    all.retain(|(name, _)| !is_given(name));
    all.extend(nearer);
}

/// Parses lines of `Name: value`. Empty lines and those that begin with # are skipped.
fn lines_of(text: &str, from: &str) -> Result<Headers, Failure> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            header(line).ok_or_else(|| malformed(&format!("{from}, line {number}")))
        })
        .collect()
}

fn header(line: &str) -> Option<(String, Secret)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    (!name.is_empty()).then(|| (name.to_owned(), Secret::new(value.trim())))
}

/// The line itself is not repeated: messages end up in logs.
fn malformed(from: &str) -> Failure {
    Failure::Usage(format!("{from}: not a header; write \"Name: value\""))
}

/// The given parameters, with the secrets that are in files.
pub(crate) fn with_secret_files(parameters: &ParameterArgs) -> Result<Values, Failure> {
    let mut given = parameters.given.clone();
    for (name, file) in parameters.secret_files() {
        let flag = format!("--{}-file", name.replace('_', "-"));
        given.set(name, Value::Secret(in_file(&flag, file)?));
    }
    Ok(given)
}

/// The secrets among the parameters of any workload: given, in a file, or in the environment.
pub(crate) fn of_parameters(
    parameters: &ParameterArgs,
) -> Result<Vec<(&'static str, Secret)>, Failure> {
    let mut found = Vec::new();
    for row in workloads::ALL
        .iter()
        .flat_map(|workload| workload.parameters())
    {
        let Some(name) = row.variable() else {
            continue;
        };
        let flag = format!("--{}-file", row.flag());
        let secret = match parameters.given.secret(row.name) {
            Some(secret) => Some(secret.clone()),
            None => in_file_or_environment(&flag, parameters.secret_file(row.name), &name)?,
        };
        found.extend(secret.map(|secret| (row.name, secret)));
    }
    Ok(found)
}

/// Adds the secrets that are in the environment, as far as they have a meaning beside the other values and none is
/// given.
pub(crate) fn add_of_environment(
    workload: &dyn Workload,
    values: &mut Values,
) -> Result<(), Failure> {
    for row in workload.parameters() {
        let Some(name) = row.variable() else {
            continue;
        };
        if values.get(row.name).is_none()
            && values.fit(row)
            && let Some(secret) = variable(&name)?
        {
            values.set(row.name, Value::Secret(secret));
        }
    }
    Ok(())
}

/// A single value from its file, else from its environment variable.
pub(crate) fn in_file_or_environment(
    flag: &str,
    file: Option<&Path>,
    name: &str,
) -> Result<Option<Secret>, Failure> {
    match file {
        Some(file) => in_file(flag, file).map(Some),
        None => variable(name),
    }
}

fn in_file(flag: &str, file: &Path) -> Result<Secret, Failure> {
    let text = read(flag, file)?;
    match text.expose().trim() {
        "" => Err(Failure::Usage(format!(
            "{flag} {}: it is empty; write the value into it",
            file.display()
        ))),
        value => Ok(Secret::new(value)),
    }
}

fn variable(name: &str) -> Result<Option<Secret>, Failure> {
    match std::env::var(name) {
        Ok(value) if value.trim().is_empty() => Ok(None),
        Ok(value) => Ok(Some(Secret::new(value.trim()))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Failure::Usage(format!(
            "{name}: its value is not UTF-8; write it in UTF-8"
        ))),
    }
}

fn read(flag: &str, file: &Path) -> Result<Secret, Failure> {
    std::fs::read_to_string(file)
        .map(Secret::new)
        .map_err(|error| Failure::Usage(format!("{flag} {}: {error}", file.display())))
}

/// All secrets that this call must not let out.
pub(crate) fn known(headers: &Headers, values: &Values, url: Option<&str>) -> Secrets {
    let mut secrets = Secrets::default();
    for (_, value) in headers {
        secrets.add(value.expose());
    }
    values.add_secrets_to(&mut secrets);
    url.into_iter().for_each(|url| secrets.add_of_url(url));
    secrets
}

/// Warns once, before anything is measured, which flags of this call show a secret in the process list, and what to use
/// instead.
pub(crate) fn warn_of_the_process_list() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let words: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        for (flag, remedy) in shown_by(&words) {
            eprintln!(
                "plimsoll: everyone on this machine can read the value of {flag} in the process list; if it is a secret, {remedy}"
            );
        }
    });
}

fn shown_by(words: &[String]) -> BTreeMap<String, String> {
    let redacted = redacted_command(words);
    let mut shown = BTreeMap::new();
    for (at, (word, redacted)) in words.iter().zip(&redacted).enumerate() {
        if word == redacted {
            continue;
        }
        let before = at.checked_sub(1).map(|at| &words[at]);
        let flag = match word.split_once('=') {
            Some((flag, _)) if flag.starts_with("--") => flag.to_owned(),
            _ => before
                .filter(|word| word.starts_with("--"))
                .cloned()
                .unwrap_or_default(),
        };
        let remedy = match flag.as_str() {
            "" | "--url" | "--param" => "send it in a header, with --header-file FILE".to_owned(),
            flag => format!("give it with {flag}-file FILE"),
        };
        shown.insert(flag, remedy);
    }
    shown
}

/// Absolute paths of a flag's files, which stay valid if the command changes its working folder.
pub(crate) fn absolute(files: &[PathBuf]) -> Vec<PathBuf> {
    let absolute = |file: &PathBuf| std::path::absolute(file).unwrap_or_else(|_| file.clone());
    files.iter().map(absolute).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use plimsoll_host::secret_variables::is_ours;
    use plimsoll_workload::{Kind, Parameter};

    use super::*;
    use crate::args::Args;

    #[test]
    fn a_file_of_headers_has_comments() {
        let text = "# for the staging server\nAuthorization: Bearer x:y\n\n  X-Key:z  \n";
        let headers = lines_of(text, "--header-file f").unwrap();
        let told: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect();
        assert_eq!(told, [("Authorization", "Bearer x:y"), ("X-Key", "z")]);
        let error = lines_of("A: b\ncanary", "--header-file f").unwrap_err();
        assert_eq!(
            error.to_string(),
            "--header-file f, line 2: not a header; write \"Name: value\""
        );
    }

    #[test]
    fn the_nearer_header_goes_before_the_farther() {
        let mut all = lines_of("Cookie: a\nX: 1\nx: 2", "f").unwrap();
        supersede(&mut all, lines_of("COOKIE: b\nY: 3", "f").unwrap());
        let told: Vec<_> = all
            .iter()
            .map(|(name, value)| format!("{name}={}", value.expose()))
            .collect();
        assert_eq!(told, ["X=1", "x=2", "COOKIE=b", "Y=3"]);
    }

    /// The flags with a file beside them, of every command, and the secrets among the parameters.
    fn flags_of_secrets() -> BTreeSet<String> {
        let commands = Args::command();
        let longs = commands.get_subcommands().flat_map(|command| {
            let longs = command.get_arguments().filter_map(|arg| arg.get_long());
            longs.map(str::to_owned).collect::<Vec<_>>()
        });
        let besides = longs.filter_map(|long| Some(long.strip_suffix("-file")?.to_owned()));
        let rows = workloads::ALL.iter().flat_map(|one| one.parameters());
        let rows = rows.filter(|row| row.is_secret()).map(Parameter::flag);
        besides.chain(rows).collect()
    }

    #[test]
    fn every_secret_is_known_as_one_by_its_flag_and_its_variable() {
        let flags = flags_of_secrets();
        assert!(flags.len() >= 2, "{flags:?}");
        for flag in flags {
            let flag = format!("--{flag}");
            let apart = redacted_command(&[flag.as_str(), "canary"]);
            let together = redacted_command(&[format!("{flag}=canary")]);
            let shown = [apart, together].concat().concat();
            assert!(!shown.contains("canary"), "{shown}");
        }
        let rows = workloads::ALL.iter().flat_map(|one| one.parameters());
        for row in rows.filter(|row| matches!(row.kind, Kind::Fields)) {
            let words = [format!("--{}", row.flag()), "token=canary".to_owned()];
            let shown = redacted_command(&words).concat();
            assert!(!shown.contains("canary"), "{shown}");
        }
        let rows = workloads::ALL.iter().flat_map(|one| one.parameters());
        let variables = rows.filter_map(Parameter::variable);
        let ours = [TOKEN_VARIABLE, SERVE_TOKEN_VARIABLE].map(str::to_owned);
        for name in variables.chain(ours) {
            assert!(is_ours(&name), "{name}");
        }
    }

    #[test]
    fn a_warning_names_the_flag_and_the_safer_form() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let shown = shown_by(&words(
            "run --header A:b --url ws://h/?token=x --token-secret=y --param key=z",
        ));
        let flags: Vec<&String> = shown.keys().collect();
        assert_eq!(flags, ["--header", "--param", "--token-secret", "--url"]);
        assert!(shown["--header"].contains("--header-file"));
        assert!(shown["--param"].contains("--header-file"));
        assert!(shown_by(&words("run --url ws://h/?a=b --header-file f --param a=b")).is_empty());
    }
}
