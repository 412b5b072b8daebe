//! Checks what a manifest says.

use std::path::Path;

use super::keys::is_line;
use super::{KEYS, Key, Manifest, START_TIMEOUT_MAX_S, Takes, Tier};

impl Manifest {
    /// Checks that its values are possible and fit together.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        plain_name("name", &self.name)?;
        plain_name("workload", &self.workload)?;
        if self.threads_per_vcpu == 0 {
            return Err("threads_per_vcpu is 0; it must be at least 1".into());
        }
        if !(1..=START_TIMEOUT_MAX_S).contains(&self.start_timeout_s) {
            return Err(format!(
                "start_timeout_s is {}; it must be 1 to {START_TIMEOUT_MAX_S} seconds",
                self.start_timeout_s
            ));
        }
        for (case, reason) in &self.deviations {
            plain_name("deviations:", case)?;
            if !is_line(reason) {
                return Err(format!(
                    "deviations: say why {case} is not passed, in one line"
                ));
            }
        }
        if let Some(tuned) = &self.tuned {
            plain_name("tuned", tuned)?;
            if self.tier != Tier::Framework {
                return Err("tuned: only a target of tier framework names its tuned one".into());
            }
        }
        if self.ships.iter().any(|path| !is_line(path)) {
            return Err("ships: a path must not be empty".into());
        }
        let rooted = |path: &String| path.starts_with('$') || Path::new(path).is_absolute();
        if let Some(path) = self.runtime.iter().find(|path| !rooted(path)) {
            return Err(format!(
                "runtime: {path:?} is relative; give an absolute path, or one that begins with a variable ($NAME)"
            ));
        }
        runnable("run.command", &self.run.command)?;
        if let Some(test) = &self.test {
            runnable("test.command", &test.command)?;
        }
        let Some(build) = &self.build else {
            return Ok(());
        };
        runnable("build.command", &build.command)?;
        for need in &build.needs {
            runnable(
                &format!("version_command of {}", need.tool),
                &need.version_command,
            )?;
            if need.tool.is_empty() || need.install.is_empty() || need.install.contains('\n') {
                return Err("build.needs: tool and install must each be one non-empty line".into());
            }
        }
        Ok(())
    }

    /// Checks the keys that only manifests of its workload have.
    pub(super) fn check_properties(&self, keys: &[Key]) -> std::result::Result<(), String> {
        for key in keys {
            match (self.properties.get(key.name), key.takes.words()) {
                (None, words) if key.required => {
                    return Err(format!("{} is missing; say {words}", key.name));
                }
                (Some(value), words) if !key.takes.takes(value) => {
                    return Err(format!("{} is {value}; say {words}", key.name));
                }
                _ => {}
            }
            if let Takes::TrueUnlessTest { without } = key.takes
                && self.denies(key.name)
                && self.tier != Tier::Test
            {
                return Err(format!(
                    "{} is false, but the tier is {}; remove the key: only a target of tier \"test\" may work without {without}",
                    key.name,
                    self.tier.word()
                ));
            }
        }
        Ok(())
    }
}

/// Refuses a key that neither every manifest nor one of this workload has. `text` is the manifest, to name the line.
pub(super) fn unknown_key(
    table: &toml::Table,
    text: &str,
    workload: &str,
    keys: &[Key],
) -> std::result::Result<(), String> {
    let known = || KEYS.into_iter().chain(keys.iter().map(|key| key.name));
    let is_known = |name: &str| known().any(|known| known == name);
    let Some(name) = table.keys().find(|name| !is_known(name)) else {
        return Ok(());
    };
    let names: Vec<_> = known().map(|name| format!("`{name}`")).collect();
    Err(format!(
        "{}unknown field `{name}` of workload {workload}, expected one of {}",
        line_of(text, name),
        names.join(", ")
    ))
}

/// The line that begins with this key, with its number, to go before a message.
fn line_of(text: &str, key: &str) -> String {
    let begins = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let line = (1..).zip(text.lines()).find(|(_, line)| begins(line));
    line.map_or_else(String::new, |(number, line)| {
        format!("line {number} ({}): ", line.trim())
    })
}

/// Names become parts of file names and control group names, so they must be plain.
fn plain_name(key: &str, name: &str) -> std::result::Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with('-') {
        return Err(format!(
            "{key} {name:?} must be 1 to 64 lower-case letters, digits and dashes"
        ));
    }
    Ok(())
}

fn runnable(key: &str, command: &[String]) -> std::result::Result<(), String> {
    match command.first() {
        Some(program) if !program.is_empty() => Ok(()),
        _ => Err(format!(
            "{key} is empty; it must be a list that starts with a program"
        )),
    }
}
