//! What a user may choose, and the request that opens a connection.
//!
//! Values of parameters and headers may be keys under any name, so all of them are secrets here: no `Debug` shows them.

use plimsoll_core::secret::Secret;

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
    /// `--param k=v`, and the query of the user's URL, decoded. They go into the query, or, where the dialect opens with
    /// a JSON message, into that; there, `a.b=v` sets field `b` of object `a`. They replace the dialect's own values.
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
        "{dialect} takes messages of {least_ms} to {most_ms} ms, not {frame_ms} ms; give --frame-ms within"
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
    #[error("{dialect} takes no key {place}; give it {remedy}")]
    KeyPlace {
        /// The dialect.
        dialect: &'static str,
        /// Where the user put it.
        place: &'static str,
        /// Where it may go.
        remedy: &'static str,
    },
    /// Turns that the dialect does not have.
    #[error("{dialect} has no turns by the {who}; leave out --turns")]
    Turns {
        /// The dialect.
        dialect: &'static str,
        /// `client` or `server`.
        who: &'static str,
    },
    /// A parameter that cannot be used.
    #[error("--param {name}: {why}")]
    Param {
        /// Its name.
        name: String,
        /// What is wrong with it, and the remedy.
        why: &'static str,
    },
    /// Something that the dialect cannot do without.
    #[error("{dialect} needs {what}")]
    Needs {
        /// The dialect.
        dialect: &'static str,
        /// What, and how to give it.
        what: &'static str,
    },
}

/// The request that opens a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connect {
    /// Whether it is a WebSocket or a bare TCP stream.
    pub transport: Transport,
    /// The path, without query; empty on TCP.
    pub path: String,
    /// The fields of the query, not yet encoded.
    pub query: Vec<Field>,
    /// Headers beside those that every upgrade has.
    pub headers: Vec<Field>,
    /// WebSocket subprotocols to offer, in their order.
    pub subprotocols: Vec<Secret>,
}

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// `ws` or `wss`.
    WebSocket,
    /// `tcp`.
    Tcp,
}

impl Connect {
    /// Path and query as the request line has them, percent-encoded (RFC 3986, section 2).
    #[must_use]
    pub fn target(&self) -> Secret {
        let mut target = self.path.clone();
        for (index, field) in self.query.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            percent_encode(&field.name, &mut target);
            target.push('=');
            percent_encode(field.value.expose(), &mut target);
        }
        Secret::new(target)
    }
}

/// Encodes all but the unreserved characters (RFC 3986, section 2.3) and the colon, which a query may hold.
fn percent_encode(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

impl Options {
    /// The user's path, or the dialect's own.
    pub(super) fn path_or(&self, own: &str) -> String {
        match self.path.as_deref() {
            None | Some("" | "/") => own.to_owned(),
            Some(path) => path.to_owned(),
        }
    }

    /// The dialect's own query with the user's parameters: one of the same name takes the place of the dialect's.
    pub(super) fn query_with(&self, own: &[(&str, &str)]) -> Vec<Field> {
        let is_replaced = |name: &str| self.params.iter().any(|param| param.name == name);
        let kept = own.iter().filter(|(name, _)| !is_replaced(name));
        kept.map(|(name, value)| Field::new(*name, *value))
            .chain(self.params.iter().cloned())
            .collect()
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
        Ok(frame_ms * super::NS_PER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_encoded_and_its_values_are_shown_nowhere() {
        let connect = Connect {
            transport: Transport::WebSocket,
            path: "/v1/listen".to_owned(),
            query: vec![
                Field::new("model", "nova-3"),
                Field::new("keyterm", "a b&c=d:é"),
            ],
            headers: vec![Field::new("Authorization", "Token canary")],
            subprotocols: vec![Secret::new("canary")],
        };
        let target = connect.target();
        assert_eq!(
            target.expose(),
            "/v1/listen?model=nova-3&keyterm=a%20b%26c%3Dd:%C3%A9"
        );
        let shown = format!("{connect:?}{target:?}");
        assert!(
            !shown.contains("canary") && !shown.contains("nova"),
            "{shown}"
        );
    }

    #[test]
    fn a_parameter_takes_the_place_of_the_dialects_own() {
        let options = Options {
            params: vec![Field::new("b", "3"), Field::new("c", "4")],
            ..Options::default()
        };
        let query = options.query_with(&[("a", "1"), ("b", "2")]);
        let expected = [("a", "1"), ("b", "3"), ("c", "4")];
        assert_eq!(query, expected.map(|(name, value)| Field::new(name, value)));
    }
}
