//! The request that opens a connection, and where a key goes in it.

use plimsoll_core::secret::Secret;

use super::options::{Field, Key, KeyPlace, OptionError};

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

/// Where a dialect takes a key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyRule {
    /// The name of a header, and what stands before the key in its value.
    pub(super) header: Option<(&'static str, &'static str)>,
    /// The name of a field of the query.
    pub(super) query: Option<&'static str>,
    /// The subprotocol that is offered before the key.
    pub(super) subprotocol: Option<&'static str>,
}

impl Connect {
    /// An upgrade to WebSocket.
    pub(super) fn websocket(path: String, query: Vec<Field>) -> Self {
        Self {
            transport: Transport::WebSocket,
            path,
            query,
            headers: Vec::new(),
            subprotocols: Vec::new(),
        }
    }

    /// A bare TCP connection.
    pub(super) fn tcp() -> Self {
        Self {
            transport: Transport::Tcp,
            ..Self::websocket(String::new(), Vec::new())
        }
    }

    /// The same with the user's key, if there is one.
    ///
    /// # Errors
    /// If the dialect takes no key at that place.
    pub(super) fn with_key(
        mut self,
        dialect: &'static str,
        rule: KeyRule,
        key: Option<&Key>,
    ) -> Result<Self, OptionError> {
        let Some(key) = key else { return Ok(self) };
        let value = key.value.expose();
        match (key.place, rule) {
            (
                KeyPlace::Header,
                KeyRule {
                    header: Some((name, scheme)),
                    ..
                },
            ) => self
                .headers
                .push(Field::new(name, format!("{scheme}{value}"))),
            (
                KeyPlace::Query,
                KeyRule {
                    query: Some(name), ..
                },
            ) => self.query.push(Field::new(name, value)),
            (
                KeyPlace::Subprotocol,
                KeyRule {
                    subprotocol: Some(first),
                    ..
                },
            ) => self.subprotocols = vec![Secret::new(first), key.value.clone()],
            (place, rule) => {
                return Err(OptionError::KeyPlace {
                    dialect,
                    place: place.in_words(),
                    remedy: rule.remedy(),
                });
            }
        }
        Ok(self)
    }

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

impl KeyPlace {
    fn in_words(self) -> &'static str {
        match self {
            Self::Header => "in a header",
            Self::Query => "in the query",
            Self::Subprotocol => "as a subprotocol",
        }
    }
}

impl KeyRule {
    fn remedy(self) -> &'static str {
        match self {
            Self {
                header: Some(_), ..
            } => "give it in a header",
            Self { query: Some(_), .. } => "give it in the query",
            _ => "leave it out",
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_encoded_and_its_values_are_shown_nowhere() {
        let query = vec![
            Field::new("model", "nova-3"),
            Field::new("keyterm", "a b&c=d:é"),
        ];
        let mut connect = Connect::websocket("/v1/listen".to_owned(), query);
        connect.headers = vec![Field::new("Authorization", "Token canary")];
        connect.subprotocols = vec![Secret::new("canary")];
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
    fn a_key_goes_where_the_dialect_takes_it_and_is_in_no_error() {
        let rule = KeyRule {
            header: Some(("X-Key", "Key ")),
            ..KeyRule::default()
        };
        let with = |place, rule| {
            let key = Key {
                value: Secret::new("canary"),
                place,
            };
            Connect::tcp().with_key("dialect", rule, Some(&key))
        };
        let headers = with(KeyPlace::Header, rule).unwrap().headers;
        assert_eq!(headers, [Field::new("X-Key", "Key canary")]);
        for (place, rule, error) in [
            (
                KeyPlace::Query,
                rule,
                "dialect takes no key in the query; give it in a header",
            ),
            (
                KeyPlace::Header,
                KeyRule::default(),
                "dialect takes no key in a header; leave it out",
            ),
        ] {
            assert_eq!(with(place, rule).unwrap_err().to_string(), error);
        }
    }
}
