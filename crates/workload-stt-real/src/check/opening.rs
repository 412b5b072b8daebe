//! How a session opens, and how one is refused.

use std::time::Instant;

use plimsoll_core::secret::Secret;

use super::site::Site;
use super::talk::{Talk, in_words};
use super::{Case, Outcome, case, not_run};
use crate::dialect::{Dialect, Form, Key, KeyPlace, Kind, Message, Options, ReadyAt};

/// Nobody's key.
const WRONG_KEY: &str = "plimsoll-wrong-key";

/// The beginning of a JSON object, which is none.
const BROKEN: &str = r#"{"type":"#;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "opening",
            "A session opens as the dialect says",
            "the server takes the session, and says so where the dialect has a message for that",
            opening,
        ),
        case(
            "broken-opening",
            "A first message that cannot be read is told as an error, and not by silence",
            "an error, a close or the end of the connection",
            broken_opening,
        ),
        case(
            "bad-key",
            "A wrong key is refused as a wrong key",
            "a refusal by an HTTP status, a message or a close code that the dialect has for keys",
            bad_key,
        ),
    ]
}

fn opening(site: &Site<'_>) -> Outcome {
    let dialect = site.dialect()?;
    let begun = Instant::now();
    Talk::open(&site.server, &*dialect)?;
    Ok(match dialect.facts().ready_at {
        ReadyAt::Message => format!("ready after {}", in_words(begun.elapsed())),
        ReadyAt::Open => format!(
            "open; no refusal within {}",
            in_words(site.server.times.look)
        ),
    })
}

fn broken_opening(site: &Site<'_>) -> Outcome {
    let dialect = site.dialect()?;
    let broken = match dialect.opening(0).first().map(|message| message.form) {
        None => return Err(not_run("the dialect opens a session without a message")),
        Some(Form::Text) => Message::text(BROKEN),
        Some(Form::Binary) => Message::binary(BROKEN),
        Some(Form::Bytes) => Message::bytes(format!("{BROKEN}\n")),
    };
    let mut talk = Talk::connect(&site.server, &*dialect)?;
    talk.send(&broken);
    let limit = site.server.times.patience;
    let is_told = talk.listen(limit, |heard| heard.is_over() || !heard.errors.is_empty());
    match is_told {
        true => Ok(talk.heard.remarks().trim_start_matches("; ").to_owned()),
        false => Err(format!("after {BROKEN:?} nothing came within {}", in_words(limit)).into()),
    }
}

/// Without a key first: a server that takes that wants none.
fn bad_key(site: &Site<'_>) -> Outcome {
    let user = &site.options;
    let keyless = Options {
        key: None,
        ..user.clone()
    };
    // A dialect that cannot do without one is as good as a server that refuses to.
    if let Ok(dialect) = site.dialect_of(&keyless)
        && Talk::open(&site.server, &*dialect).is_ok()
    {
        return Err(not_run(
            "the server wants no key: a session without one opens",
        ));
    }
    let place = user.key.as_ref().map_or(KeyPlace::Header, |key| key.place);
    let wrong = Options {
        key: Some(Key {
            value: Secret::new(WRONG_KEY),
            place,
        }),
        ..user.clone()
    };
    let dialect = match site.dialect_of(&wrong) {
        Ok(dialect) => dialect,
        Err(error) => return Err(not_run(error.to_string())),
    };
    refused_as_key(site, &*dialect)
}

fn refused_as_key(site: &Site<'_>, dialect: &dyn Dialect) -> Outcome {
    match Talk::open(&site.server, dialect) {
        Ok(_) => Err("the session opened with a wrong key, though not without any".into()),
        Err(not) if not.kind == Some(Kind::Auth) => Ok(not.seen),
        Err(not) => Err(format!("the wrong key was not refused as such: {}", not.seen).into()),
    }
}
