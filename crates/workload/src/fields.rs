//! Fields of the protocol that Plimsoll has no parameter for: the user names them.

use std::fmt;

use plimsoll_core::secret::{REDACTED, Secrets, redacted_field};
use serde::{Deserialize, Serialize};

/// Names and values in the order given. A name may come more than once. Any value may be a secret, so [`fmt::Debug`] shows
/// none, and records leave out those that are secrets by their names. The sessions send them, so client processes get them
/// as they are.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads one field: `NAME=VALUE`. The value may be empty and may have further equals signs.
    ///
    /// # Errors
    /// What to write, as the end of a sentence. The text is not repeated: it may be a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                Ok(Self(vec![(name.to_owned(), value.to_owned())]))
            }
            _ => Err("write NAME=VALUE".to_owned()),
        }
    }

    /// These, then those.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.0.iter();
        fields.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// As records have them: `NAME=VALUE` each, without secrets.
    #[must_use]
    pub fn recorded(&self) -> Vec<String> {
        let recorded = |(name, value)| format!("{name}={}", redacted_field(name, value));
        self.iter().map(recorded).collect()
    }

    /// Adds the secrets among the values.
    pub fn add_secrets_to(&self, secrets: &mut Secrets) {
        self.iter()
            .for_each(|(name, value)| secrets.add_of_field(name, value));
    }

    /// The same fields, read from where the secrets had been left out, with the secrets that are given once more.
    ///
    /// # Errors
    /// The name of a field whose value is still missing, or of one that was given and is missing nowhere.
    pub fn completed(self, given: &Self) -> Result<Self, String> {
        let mut given: Vec<_> = given.0.iter().collect();
        let complete = |(name, value): (String, String)| {
            if !value.contains(REDACTED) {
                return Ok((name, value));
            }
            let Some(at) = given.iter().position(|(known, _)| *known == name) else {
                return Err(format!("the value of {name} is not kept; give it again"));
            };
            Ok(given.remove(at).clone())
        };
        let complete = self.0.into_iter().map(complete).collect::<Result<_, _>>()?;
        match given.first() {
            Some((name, _)) => Err(format!("{name} is not missing; leave it out")),
            None => Ok(Self(complete)),
        }
    }
}

/// Names only.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.iter().map(|(name, _)| (name, REDACTED));
        f.debug_map().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[&str]) -> Fields {
        let parsed = lines.iter().map(|line| Fields::parse(line).expect(line));
        parsed.fold(Fields::default(), Fields::and)
    }

    #[test]
    fn a_field_is_a_name_and_a_value_and_a_bad_one_is_not_repeated() {
        let read = fields(&["b=1", "a=x=y", "b=", "token=canary"]);
        let pairs: Vec<_> = read.iter().collect();
        assert_eq!(
            pairs,
            [("b", "1"), ("a", "x=y"), ("b", ""), ("token", "canary")]
        );
        for bad in ["canary", "=canary", ""] {
            assert_eq!(Fields::parse(bad), Err("write NAME=VALUE".to_owned()));
        }
    }

    #[test]
    fn secrets_are_in_no_record_and_nothing_is_in_debug() {
        let read = fields(&["model=nova-2", "auth_id=canary-1", "jwt=canary-2"]);
        assert_eq!(
            read.recorded(),
            ["model=nova-2", "auth_id=[redacted]", "jwt=[redacted]"]
        );
        let debug = format!("{read:?}");
        assert!(debug.contains("model"), "{debug}");
        assert!(
            !debug.contains("canary") && !debug.contains("nova"),
            "{debug}"
        );
        let mut secrets = Secrets::default();
        read.add_secrets_to(&mut secrets);
        assert_eq!(
            secrets.scrub("canary-1 canary-2 nova-2"),
            "[redacted] [redacted] nova-2"
        );
    }

    #[test]
    fn a_client_process_gets_them_as_they_are() {
        let sent = fields(&["model=nova-2", "token=canary"]);
        let json = serde_json::to_string(&sent).unwrap();
        assert_eq!(serde_json::from_str::<Fields>(&json).unwrap(), sent);
        assert!(json.contains("canary"));
    }

    #[test]
    fn secrets_that_were_left_out_are_given_again_by_name() {
        let kept = || fields(&["token=[redacted]", "model=x", "token=[redacted]"]);
        let completed = |given: &[&str]| kept().completed(&fields(given));
        assert_eq!(
            completed(&["token=1", "token=2"]),
            Ok(fields(&["token=1", "model=x", "token=2"]))
        );
        let missing = completed(&["token=1"]).unwrap_err();
        assert!(missing.starts_with("the value of token"), "{missing}");
        let more = completed(&["token=1", "token=2", "model=y"]).unwrap_err();
        assert!(more.starts_with("model is not missing"), "{more}");
    }
}
