//! What a user may choose.
//!
//! Values of parameters and headers may be keys under any name, so all of them are secrets here: no `Debug` shows them.

use plimsoll_core::secret::Secret;
use serde_json::{Map, Value};

use super::NS_PER_MS;

/// Who decides that speech ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turns {
    /// The server's endpointing.
    #[default]
    Server,
    /// The client: it sends a flush after each utterance.
    Client,
}

/// Where a key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyPlace {
    /// A header, the dialect's usual one.
    #[default]
    Header,
    /// A field of the query, under the dialect's usual name.
    Query,
    /// A WebSocket subprotocol.
    Subprotocol,
}

/// The key of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key itself.
    pub value: Secret,
    /// Where it goes.
    pub place: KeyPlace,
}

/// A name with a value that nothing shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Secret,
}

impl Field {
    /// A field.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: Secret::new(value),
        }
    }
}

/// The choices of a user, the same for all sessions of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The path of the user's URL, without query; `None` or `/` is the dialect's own.
    pub path: Option<String>,
    /// The query of the user's URL, decoded. Its fields replace the dialect's own of the same name.
    pub query: Vec<Field>,
    /// `--param k=v`: fields of the query, or, where the dialect opens with a JSON message, of that message. There
    /// `a.b=v` sets field `b` of object `a`, and `v` is JSON if it can be read as such, else text. They replace the
    /// dialect's own values.
    pub params: Vec<Field>,
    /// The model; `None` leaves it to the dialect or the server.
    pub model: Option<String>,
    /// The language, as the server names it.
    pub language: String,
    /// Who decides that speech ended.
    pub turns: Turns,
    /// The key, if the server wants one.
    pub key: Option<Key>,
    /// The audio of one message, in ms; `None` takes the dialect's own.
    pub frame_ms: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: None,
            query: Vec::new(),
            params: Vec::new(),
            model: None,
            language: "en".to_owned(),
            turns: Turns::Server,
            key: None,
            frame_ms: None,
        }
    }
}

/// Options that a dialect cannot use: one line that ends with the remedy. It never holds a value that may be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No such dialect.
    #[error("--dialect {name:?}: no such dialect; there are {known}")]
    UnknownDialect {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A length of frames that the server does not take.
    #[error(
        "{dialect} takes messages of {least_ms} to {most_ms} ms, not {frame_ms} ms; give a length within"
    )]
    FrameLength {
        /// The dialect.
        dialect: &'static str,
        /// What was asked for.
        frame_ms: u64,
        /// The shortest message.
        least_ms: u64,
        /// The longest message.
        most_ms: u64,
    },
    /// A key at a place where the dialect has none.
    #[error("{dialect} takes no key {place}; {remedy}")]
    KeyPlace {
        /// The dialect.
        dialect: &'static str,
        /// Where the user put it.
        place: &'static str,
        /// Where it may go.
        remedy: &'static str,
    },
    /// Turns by the client, where nothing that a client can say ends a turn.
    #[error("{0} has no message that ends a turn; leave out --turns client")]
    NoClientTurns(&'static str),
    /// A parameter that cannot be used.
    #[error("--param {name}: {why}")]
    Param {
        /// Its name.
        name: String,
        /// What is wrong with it, and the remedy.
        why: &'static str,
    },
    /// A template that cannot be used.
    #[error("the dialect's file: {0}")]
    Template(String),
    /// Something that the dialect cannot do without.
    #[error("{dialect} needs {what}")]
    Needs {
        /// The dialect.
        dialect: &'static str,
        /// What, and how to give it.
        what: &'static str,
    },
}

impl Options {
    /// The user's path, or the dialect's own.
    pub(super) fn path_or(&self, own: &str) -> String {
        match self.path.as_deref() {
            None | Some("" | "/") => own.to_owned(),
            Some(path) => path.to_owned(),
        }
    }

    /// The dialect's own query with the user's: a field of the same name takes the place of the dialect's.
    pub(super) fn query_over(&self, own: &[(&str, &str)]) -> Vec<Field> {
        over(own, self.query.iter())
    }

    /// The same with the parameters too, for dialects that have all their options in the query.
    pub(super) fn query_and_params_over(&self, own: &[(&str, &str)]) -> Vec<Field> {
        over(own, self.query.iter().chain(&self.params))
    }

    /// A parameter of the user's: the last one of this name.
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().rev().find(|param| param.name == name);
        found.map(|param| param.value.expose())
    }

    /// An opening message with the parameters in it.
    ///
    /// # Errors
    /// If the path of a parameter goes through something that is no object.
    pub(super) fn opening(&self, message: Value) -> Result<Value, OptionError> {
        let mut message = message;
        for param in &self.params {
            let text = param.value.expose();
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            put(&mut message, &param.name, value).ok_or_else(|| OptionError::Param {
                name: param.name.clone(),
                why: "a part before a dot is no object of the opening message; give names of objects before dots",
            })?;
        }
        Ok(message)
    }

    /// The audio of one message in nanoseconds.
    ///
    /// # Errors
    /// If the server does not take messages of this length.
    pub(super) fn frame_ns(
        &self,
        dialect: &'static str,
        own_ms: u64,
        least_ms: u64,
        most_ms: u64,
    ) -> Result<u64, OptionError> {
        let frame_ms = self.frame_ms.unwrap_or(own_ms);
        if !(least_ms..=most_ms).contains(&frame_ms) {
            return Err(OptionError::FrameLength {
                dialect,
                frame_ms,
                least_ms,
                most_ms,
            });
        }
        Ok(frame_ms * NS_PER_MS)
    }

    /// # Errors
    /// If the user wants turns by the client.
    pub(super) fn refuse_client_turns(&self, dialect: &'static str) -> Result<(), OptionError> {
        match self.turns {
            Turns::Server => Ok(()),
            Turns::Client => Err(OptionError::NoClientTurns(dialect)),
        }
    }
}

fn over<'a>(own: &[(&str, &str)], users: impl Iterator<Item = &'a Field> + Clone) -> Vec<Field> {
    let is_replaced = |name: &str| users.clone().any(|field| field.name == name);
    let kept = own.iter().filter(|(name, _)| !is_replaced(name));
    kept.map(|(name, value)| Field::new(*name, *value))
        .chain(users.clone().cloned())
        .collect()
}

/// Sets a field at a path with dots; objects that are missing on the way are made.
fn put(message: &mut Value, path: &str, value: Value) -> Option<()> {
    let mut names = path.split('.');
    let last = names.next_back()?;
    let mut at = message;
    for name in names {
        let fields = at.as_object_mut()?;
        at = fields
            .entry(name)
            .or_insert_with(|| Value::Object(Map::new()));
    }
    at.as_object_mut()?.insert(last.to_owned(), value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with_params(params: &[(&str, &str)]) -> Options {
        let params = params.iter().map(|(name, value)| Field::new(*name, *value));
        Options {
            params: params.collect(),
            ..Options::default()
        }
    }

    #[test]
    fn a_parameter_takes_the_place_of_the_dialects_own() {
        let query =
            with_params(&[("b", "3"), ("c", "4")]).query_and_params_over(&[("a", "1"), ("b", "2")]);
        let expected = [("a", "1"), ("b", "3"), ("c", "4")];
        assert_eq!(query, expected.map(|(name, value)| Field::new(name, value)));
    }

    #[test]
    fn a_parameter_of_an_opening_message_goes_where_its_path_says() {
        let own = json!({"type": "start", "config": {"rate": 16000, "words": false}});
        let options = with_params(&[
            ("config.words", "true"),
            ("config.vad.silence", "0.5"),
            ("name", "nova-3"),
        ]);
        assert_eq!(
            options.opening(own.clone()).unwrap(),
            json!({"type": "start", "name": "nova-3", "config": {"rate": 16000, "words": true, "vad": {"silence": 0.5}}})
        );
        let error = with_params(&[("type.x", "canary")])
            .opening(own)
            .unwrap_err();
        assert!(error.to_string().starts_with("--param type.x: "), "{error}");
        assert!(!format!("{error}{error:?}").contains("canary"));
    }
}
