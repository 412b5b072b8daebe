//! What a user chose, checked against the rows of a workload's parameters.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plimsoll_core::secret::{REDACTED, Secret, Secrets};
use plimsoll_targets::manifest::Manifest;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fields::Fields;
use crate::parameter::{Fit, Parameter};
use crate::{Refusal, Workload};

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// One of the words of the parameter.
    Word(String),
    /// Whether it was given.
    Flag(bool),
    /// Addresses.
    Addresses(Vec<IpAddr>),
    /// A file.
    File(PathBuf),
    /// Fields of the protocol.
    Fields(Fields),
    /// What is never shown.
    #[serde(skip)]
    Secret(Secret),
}

impl Value {
    /// The value in records; `None` for a secret. Fields have their secrets left out.
    #[must_use]
    pub fn recorded(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Whole(number) => json!(number),
            Self::Number(number) => json!(number),
            Self::Word(word) => json!(word),
            Self::Flag(given) => json!(given),
            Self::Addresses(addresses) => json!(addresses),
            Self::File(file) => json!(file.to_string_lossy()),
            Self::Fields(fields) => json!(fields.recorded()),
            Self::Secret(_) => return None,
        })
    }
}

/// As a message shows it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.recorded() {
            Some(serde_json::Value::String(text)) => f.write_str(&text),
            Some(other) => write!(f, "{other}"),
            None => f.write_str(REDACTED),
        }
    }
}

/// The values of a workload's parameters, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// Sets a value.
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// The same values with this one.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.set(name, value);
        self
    }

    /// The same values with those, which replace the ones of their names.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same values without this one.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// The value of that name, if there is one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A whole number.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Value::Whole(number)) => Some(*number),
            _ => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// One of the words of the parameter.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Whether a flag was given.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Flag(true)))
    }

    /// Addresses; none if there are none.
    #[must_use]
    pub fn addresses(&self, name: &str) -> &[IpAddr] {
        match self.get(name) {
            Some(Value::Addresses(addresses)) => addresses,
            _ => &[],
        }
    }

    /// A file.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Path> {
        match self.get(name) {
            Some(Value::File(file)) => Some(file),
            _ => None,
        }
    }

    /// The name of a parameter whose value is a file, if there is one.
    #[must_use]
    pub fn names_a_file(&self) -> Option<&str> {
        let file = |(_, value): &(&str, &Value)| matches!(value, Value::File(_));
        self.iter().find(file).map(|(name, _)| name)
    }

    /// Fields of the protocol, by their names.
    #[must_use]
    pub fn fields(&self, name: &str) -> Option<&Fields> {
        match self.get(name) {
            Some(Value::Fields(fields)) => Some(fields),
            _ => None,
        }
    }

    /// A secret.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<&Secret> {
        match self.get(name) {
            Some(Value::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    /// Adds all secrets, those among fields too.
    pub fn add_secrets_to(&self, secrets: &mut Secrets) {
        for value in self.0.values() {
            match value {
                Value::Secret(secret) => secrets.add(secret.expose()),
                Value::Fields(fields) => fields.add_secrets_to(secrets),
                _ => {}
            }
        }
    }

    /// The same without secrets, for client processes. Fields stay as they are: the sessions send them.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let shown = self.0.iter();
        let shown = shown.filter(|(_, value)| !matches!(value, Value::Secret(_)));
        Self(
            shown
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// The values in records.
    #[must_use]
    pub fn recorded(&self) -> BTreeMap<String, serde_json::Value> {
        let recorded = |(name, value): (&String, &Value)| Some((name.clone(), value.recorded()?));
        self.0.iter().filter_map(recorded).collect()
    }

    /// Checks given values against the rows of the workload, and adds what the target's manifest says and the usual
    /// values. `manifest` is `None` for a server that runs already. `all` are the workloads that there are.
    ///
    /// # Errors
    /// One line with the remedy: a value of another workload, one that has no meaning beside the others, or one that
    /// contradicts the manifest.
    pub fn settled(
        mut self,
        workload: &dyn Workload,
        all: &[&dyn Workload],
        manifest: Option<&Manifest>,
    ) -> Result<Self, Refusal> {
        self.must_be_of(workload, all)?;
        let rows = workload.parameters();
        self.must_be_taken(rows)?;
        if let Some(manifest) = manifest {
            self.take_from(rows, manifest)?;
        }
        let complete = self.or_usual(rows);
        for row in rows.iter().filter(|row| complete.get(row.name).is_some()) {
            if let Some(fit) = row.fits.iter().find(|fit| !complete.meets(fit)) {
                return Err(complete.refusal(row, fit));
            }
        }
        Ok(complete)
    }

    /// These values, and the usual ones of parameters that have a meaning beside them.
    #[must_use]
    pub fn or_usual(mut self, rows: &[Parameter]) -> Self {
        // A row stands after those that it depends on.
        for row in rows {
            if self.get(row.name).is_none()
                && self.fit(row)
                && let Some(usual) = row.usual_value()
            {
                self.set(row.name, usual);
            }
        }
        self
    }

    fn must_be_of(&self, workload: &dyn Workload, all: &[&dyn Workload]) -> Result<(), Refusal> {
        let has = |workload: &dyn Workload, name: &str| {
            let mut rows = workload.parameters().iter();
            rows.any(|row| row.name == name)
        };
        let Some(stranger) = self.0.keys().find(|name| !has(workload, name)) else {
            return Ok(());
        };
        let owners = all.iter().filter(|other| has(**other, stranger));
        let owners: Vec<_> = owners.map(|owner| owner.about().name).collect();
        Err(Refusal(format!(
            "--{} is for --workload {}, this is {}",
            stranger.replace('_', "-"),
            owners.join(", "),
            workload.about().name
        )))
    }

    /// The command line takes what any workload takes. This one may take less.
    fn must_be_taken(&self, rows: &[Parameter]) -> Result<(), Refusal> {
        for row in rows {
            let given = self.get(row.name);
            if let Some(Err(why)) = given.map(|value| row.kind.takes(value)) {
                let (flag, value) = (
                    row.flag(),
                    given.map_or_else(String::new, ToString::to_string),
                );
                return Err(Refusal(format!("--{flag} {value}: {why}")));
            }
        }
        Ok(())
    }

    fn take_from(&mut self, rows: &[Parameter], manifest: &Manifest) -> Result<(), Refusal> {
        for row in rows {
            let flag = row.flag();
            if row.only_running && self.get(row.name).is_some() {
                return Err(Refusal(format!(
                    "--{flag} is for a server that runs already (--url); Plimsoll starts {}: leave the flag out",
                    manifest.name
                )));
            }
            let (Some(verb), Some(its)) = (row.of_target, row.of(manifest)) else {
                continue;
            };
            if let Some(asked) = self.get(row.name).filter(|asked| **asked != its) {
                return Err(Refusal(format!(
                    "--{flag} {asked}: {} {verb} {its} by its target.toml; leave the flag out",
                    manifest.name
                )));
            }
            self.set(row.name, its);
        }
        Ok(())
    }

    /// Whether all conditions of the row hold.
    #[must_use]
    pub fn fit(&self, row: &Parameter) -> bool {
        row.fits.iter().all(|fit| self.meets(fit))
    }

    fn meets(&self, fit: &Fit) -> bool {
        self.word(fit.of)
            .is_some_and(|word| fit.among.contains(&word))
    }

    fn refusal(&self, row: &Parameter, fit: &Fit) -> Refusal {
        Refusal(format!(
            "--{} is for --{} {}, this is {}",
            row.flag(),
            fit.of.replace('_', "-"),
            fit.among.join(", "),
            self.get(fit.of)
                .map_or_else(|| "none".to_owned(), ToString::to_string)
        ))
    }
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
