//! What requests ask: the same for all of a trial, but for their number.

use plimsoll_core::schedule::mix;

use crate::expect::{Expected, Text, pattern};
use crate::load::{HttpLoad, NUMBER_BYTES, Test};
use crate::schedule::Due;

/// The greatest K of `/json/K`: what every JSON parser can hold.
const JSON_MAX: u64 = (1 << 53) - 1;

/// What the requests of a trial ask.
#[derive(Debug)]
pub(crate) struct Ask {
    what: What,
    seed: u64,
    /// What the server of a URL answers, if the user said so.
    pub(crate) file: Vec<u8>,
}

#[derive(Debug)]
enum What {
    /// GET with the same path and body for all.
    Same(Expected),
    /// GET /json/K.
    Json,
    /// POST /sum.
    Sum {
        /// The body after the number.
        rest: Vec<u8>,
    },
}

impl Ask {
    /// What this test asks. `by_contract` is false for a server of a URL whose path the user chose: nobody knows its body.
    pub(crate) fn new(load: &HttpLoad, by_contract: bool, seed: u64) -> Self {
        let what = match load.test {
            Test::Json => What::Json,
            Test::Post => {
                let rest = load.body_bytes.saturating_sub(NUMBER_BYTES);
                What::Sum {
                    rest: pattern(usize::try_from(rest).unwrap_or_default()),
                }
            }
            _ if load.expected_body.is_some() => What::Same(Expected::File),
            _ if !by_contract => What::Same(Expected::Any),
            _ if load.path() == "/" => What::Same(Expected::Text(Text::new(format_args!("ok")))),
            _ => What::Same(Expected::Pattern(load.body_bytes)),
        };
        Self {
            what,
            seed,
            file: load.expected_body.clone().unwrap_or_default(),
        }
    }

    /// The number that the path of this request ends with, if it has one.
    pub(crate) fn path_number(&self, due: &Due) -> Option<u64> {
        matches!(self.what, What::Json).then(|| mix(self.seed ^ mix(due.number)) & JSON_MAX)
    }

    /// The first bytes of the body of this request, and the rest, which is the same for all; `None` if it has no body.
    pub(crate) fn body(&self, due: &Due) -> Option<(Text, &[u8])> {
        match &self.what {
            What::Sum { rest } => Some((number(due), rest)),
            What::Same(_) | What::Json => None,
        }
    }

    /// What the answer to this request must be.
    pub(crate) fn expected(&self, due: &Due) -> Expected {
        match &self.what {
            What::Same(expected) => *expected,
            What::Json => {
                let id = self.path_number(due).unwrap_or_default();
                let even = id.is_multiple_of(2);
                Expected::Text(Text::new(format_args!(
                    "{{\"id\":{id},\"name\":\"item {id}\",\"even\":{even}}}"
                )))
            }
            What::Sum { rest } => {
                let mut sum = crc32fast::Hasher::new();
                let number = number(due);
                sum.update(number.bytes());
                sum.update(rest);
                let length = number.bytes().len() + rest.len();
                Expected::Text(Text::new(format_args!("{:08x} {length}", sum.finalize())))
            }
        }
    }
}

/// A request's number, as long for each.
fn number(due: &Due) -> Text {
    Text::new(format_args!("{:020}", due.number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PARAMETERS;
    use plimsoll_workload::{Value, Values};

    fn ask(test: &str, by_contract: bool) -> Ask {
        let values = Values::default().with("test", Value::Word(test.to_owned()));
        let load = HttpLoad::of(&values.or_usual(&PARAMETERS)).expect("a load");
        Ask::new(&load, by_contract, 1)
    }

    fn due(number: u64) -> Due {
        Due {
            number,
            at_ns: 0,
            measured: true,
        }
    }

    fn text(ask: &Ask, number: u64) -> String {
        match ask.expected(&due(number)) {
            Expected::Text(text) => String::from_utf8_lossy(text.bytes()).into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_body_of_a_post_holds_its_number_so_no_two_sums_are_equal() {
        let ask = ask("post", true);
        let (head, rest) = ask.body(&due(7)).expect("a body");
        assert_eq!(head.bytes(), b"00000000000000000007");
        assert_eq!(head.bytes().len() + rest.len(), 1_024);
        assert!(rest.starts_with(b"0123456789abcdef0123"));
        let sum = crc32fast::hash(&[head.bytes(), rest].concat());
        assert_eq!(text(&ask, 7), format!("{sum:08x} 1024"));
        assert_ne!(text(&ask, 7), text(&ask, 8));
    }

    #[test]
    fn the_number_of_json_is_drawn() {
        let ask = ask("json", true);
        let id = ask.path_number(&due(3)).expect("a number");
        assert!(id <= JSON_MAX);
        assert_ne!(Some(id), ask.path_number(&due(4)));
        let even = id.is_multiple_of(2);
        assert_eq!(text(&ask, 3), format!("{{\"id\":{id},\"name\":\"item {id}\",\"even\":{even}}}"));
    }

    #[test]
    fn nobody_knows_what_a_server_of_a_url_answers() {
        assert_eq!(ask("rate", false).expected(&due(1)), Expected::Any);
        assert_eq!(text(&ask("rate", true), 1), "ok");
    }
}
