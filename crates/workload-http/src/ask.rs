//! What requests ask: the same for all of a trial, but for their number.

use plimsoll_core::schedule::mix;

use crate::expect::{Expected, Judge, Known, Text};
use crate::h1::NumberedBody;
use crate::load::{HttpLoad, Test};
use crate::schedule::Due;

/// The greatest K of `/json/K`: what every JSON parser can hold.
const JSON_MAX: u64 = (1 << 53) - 1;
/// Up to this length, summing a whole body again costs less than adding its parts' sums.
const SUMMED_MAX_BYTES: usize = 8 * 1024;

/// What the requests of a trial ask.
#[derive(Debug)]
pub(crate) struct Ask {
    what: What,
    /// Whether it is known what the answers must be.
    is_known: bool,
    seed: u64,
    /// What answers are compared with.
    pub(crate) known: Known,
}

#[derive(Debug)]
enum What {
    /// GET with the same path and body for all.
    Same(Expected),
    /// GET /json/K.
    Json,
    /// POST /sum.
    Sum {
        body: NumberedBody,
        /// The sum of what all bodies have in common.
        rest: crc32fast::Hasher,
    },
}

impl Ask {
    /// What this test asks. `by_contract` is false for a server of a URL whose path the user chose: nobody knows its body.
    pub(crate) fn new(load: &HttpLoad, by_contract: bool, seed: u64) -> Self {
        let what = match load.test {
            Test::Json => What::Json,
            Test::Post => {
                let bytes = usize::try_from(load.body_bytes).unwrap_or_default();
                let body = NumberedBody::new(bytes);
                let mut rest = crc32fast::Hasher::new();
                rest.update(body.rest());
                What::Sum { body, rest }
            }
            _ if load.expected_body.is_some() => What::Same(Expected::File),
            _ if load.path() == "/" => What::Same(Expected::Text(Text::new(format_args!("ok")))),
            _ => What::Same(Expected::Pattern(load.body_bytes)),
        };
        Self {
            what,
            is_known: by_contract || load.expected_body.is_some(),
            seed,
            known: Known {
                file: load.expected_body.clone().unwrap_or_default(),
                judge: None,
            },
        }
    }

    /// What another workload asks: its own body, whose answers this judge knows.
    pub(crate) fn judged(judge: Judge) -> Self {
        Self {
            what: What::Same(Expected::Judged),
            is_known: true,
            seed: 0,
            known: Known {
                file: Vec::new(),
                judge: Some(judge),
            },
        }
    }

    /// The number that this request holds: that of `/json/K` is drawn, a body's is its own.
    pub(crate) fn number(&self, due: &Due) -> u64 {
        match self.what {
            What::Json => mix(self.seed ^ mix(due.number)) & JSON_MAX,
            What::Same(_) | What::Sum { .. } => due.number,
        }
    }

    /// What the answer to this request must be.
    pub(crate) fn expected(&self, due: &Due) -> Expected {
        match &self.what {
            _ if !self.is_known => Expected::Any,
            What::Same(expected) => *expected,
            What::Json => {
                let id = self.number(due);
                let even = id.is_multiple_of(2);
                Expected::Text(Text::new(format_args!(
                    "{{\"id\":{id},\"name\":\"item {id}\",\"even\":{even}}}"
                )))
            }
            What::Sum { body, rest } => {
                let (digits, length) = body.number(due.number);
                let mut sum = crc32fast::Hasher::new();
                sum.update(&digits[..length]);
                if body.len() <= SUMMED_MAX_BYTES {
                    sum.update(body.rest());
                } else {
                    sum.combine(rest);
                }
                let bytes = body.len();
                Expected::Text(Text::new(format_args!("{:08x} {bytes}", sum.finalize())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PARAMETERS;
    use plimsoll_workload::{Value, Values};

    fn ask(test: &str, body_bytes: u64, by_contract: bool) -> Ask {
        let values = Values::default().with("test", Value::Word(test.to_owned()));
        let values = values.with("body_bytes", Value::Whole(body_bytes));
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
        for bytes in [1_024, 20_000] {
            let ask = ask("post", bytes, true);
            let body = NumberedBody::new(usize::try_from(bytes).unwrap());
            let sum = crc32fast::hash(&body.to_vec(7));
            assert_eq!(text(&ask, 7), format!("{sum:08x} {bytes}"));
            assert_ne!(text(&ask, 7), text(&ask, 8));
        }
    }

    #[test]
    fn the_number_of_json_is_drawn() {
        let ask = ask("json", 2, true);
        let id = ask.number(&due(3));
        assert!(id <= JSON_MAX);
        assert_ne!(id, ask.number(&due(4)));
        let even = id.is_multiple_of(2);
        assert_eq!(
            text(&ask, 3),
            format!("{{\"id\":{id},\"name\":\"item {id}\",\"even\":{even}}}")
        );
    }

    #[test]
    fn nobody_knows_what_a_server_of_a_url_answers() {
        for test in ["rate", "post", "json"] {
            assert_eq!(ask(test, 2, false).expected(&due(1)), Expected::Any);
        }
        assert_eq!(text(&ask("rate", 2, true), 1), "ok");
    }
}
