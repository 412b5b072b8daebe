//! Section 3.1 of the contract: the first message.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use plimsoll_conformance::case::AT_ONCE;
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use serde::Deserialize;

use super::client::{START, Session, VIOLATION_ENDS};
use super::registry::{Case, Site, Verdict, case};

/// The golden vectors that every gateway's own tests read, too.
static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<Vector>,
    }
    let text = include_str!("../../../../targets/stt/vectors/start.json");
    serde_json::from_str::<File>(text).map_or_else(|_| Vec::new(), |file| file.cases)
});

#[derive(Debug, Deserialize)]
struct Vector {
    id: String,
    text: String,
    ok: bool,
}

/// The one group that a gateway need not refuse.
const DUPLICATE: &str = "start-duplicate-field";

/// Bad starts, grouped by the beginning of the vector's id. The last group takes what no other does.
const GROUPS: [(&str, &str, &[&str]); 6] = [
    (
        "start-not-json",
        "A first message that is not JSON",
        &[
            "empty",
            "only-",
            "not-json",
            "truncated",
            "single-",
            "name-without",
            "bad-escape",
        ],
    ),
    (
        "start-not-an-object",
        "A first message that is JSON but no object",
        &["null", "number", "string", "array"],
    ),
    (
        "start-other-type",
        "A first message of an unknown type, or without one",
        &["missing-type", "unknown-type", "type-", "name-in"],
    ),
    (
        "start-unknown-field",
        "A first message with an unknown field",
        &["unknown-field"],
    ),
    (
        DUPLICATE,
        "A first message with its field twice",
        &["duplicate"],
    ),
    (
        "start-other-texts",
        "A first message with anything behind or around the object",
        &[],
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![case(
        "start-accepted",
        "Every spelling of {\"type\":\"start\"} that is the same JSON starts a session",
        "the session goes on",
        starts_accepted,
    )];
    for (id, title, _) in GROUPS {
        let bad = case(
            id,
            format!("{title} ends the session"),
            VIOLATION_ENDS,
            move |site| bad_starts(site, id),
        );
        // The stock parsers of some languages cannot see a repeated field.
        cases.push(if id == DUPLICATE { bad.should() } else { bad });
    }
    cases.extend([
        case(
            "start-binary",
            "A first message that is binary ends the session",
            VIOLATION_ENDS,
            first_binary,
        ),
        case(
            "start-fragmented",
            "A start in fragments starts a session",
            "the session goes on",
            fragmented,
        ),
        case(
            "start-with-audio",
            "Audio in the same segment as the start is taken",
            "one partial",
            with_audio,
        ),
        case(
            "start-timeout",
            "Nothing within START_TIMEOUT_MS ends the session",
            "a close for a violation, or the end, after START_TIMEOUT_MS, at most 500 ms later",
            timeout,
        )
        .only_when_started(),
    ]);
    cases
}

/// The bad vectors of a group.
fn group_of(id: &str) -> impl Iterator<Item = &'static Vector> {
    VECTORS.iter().filter(move |vector| {
        let begins =
            |prefixes: &[&str]| prefixes.iter().any(|prefix| vector.id.starts_with(prefix));
        let group = GROUPS
            .iter()
            .find(|(_, _, prefixes)| begins(prefixes))
            .or(GROUPS.last());
        !vector.ok && group.is_some_and(|(group, _, _)| *group == id)
    })
}

fn text_frame(text: &str) -> Vec<u8> {
    RawFrame::new(Opcode::Text, text.as_bytes()).to_vec()
}

/// Passes when the session is alive: it answers a ping and takes audio.
pub(super) fn expect_going_on(site: &Site<'_>, session: &mut Session) -> Result<(), String> {
    session.send_audio(1)?;
    session.until_all_named(site.patience()).map(|_| ())
}

fn starts_accepted(site: &Site<'_>) -> Verdict {
    let good: Vec<&Vector> = VECTORS.iter().filter(|vector| vector.ok).collect();
    let mut sessions = Vec::new();
    for vector in &good {
        let mut session = site.connect()?;
        session.send(&text_frame(&vector.text))?;
        session.send_audio(1)?;
        sessions.push(session);
    }
    for (vector, session) in good.iter().zip(&mut sessions) {
        session
            .until_all_named(site.patience())
            .map_err(|seen| format!("{}: {seen}", vector.text))?;
    }
    Ok(format!("{} spellings accepted", good.len()))
}

fn bad_starts(site: &Site<'_>, group: &str) -> Verdict {
    let mut count = 0;
    for vector in group_of(group) {
        let mut session = site.connect()?;
        session.send_what_may_be_refused(&text_frame(&vector.text));
        session
            .expect_violation_ends(AT_ONCE)
            .map_err(|seen| format!("{:?}: {seen}", vector.text))?;
        count += 1;
    }
    Ok(format!("ended, {count} times"))
}

fn first_binary(site: &Site<'_>) -> Verdict {
    let mut session = site.connect()?;
    let frame = session.next_frames(1);
    session.send_what_may_be_refused(&frame);
    session.expect_violation_ends(AT_ONCE)
}

fn fragmented(site: &Site<'_>) -> Verdict {
    let mut session = site.connect()?;
    let (head, tail) = START.as_bytes().split_at(5);
    let first = RawFrame {
        fin: false,
        ..RawFrame::new(Opcode::Text, head)
    };
    session.send(&first.to_vec())?;
    session.send(&RawFrame::new(Opcode::Continuation, tail).to_vec())?;
    expect_going_on(site, &mut session)?;
    Ok("the session went on".to_owned())
}

fn with_audio(site: &Site<'_>) -> Verdict {
    let mut session = site.connect()?;
    let mut bytes = text_frame(START);
    bytes.extend(session.next_frames(2));
    session.send(&bytes)?;
    let messages = session.until_all_named(site.patience())?;
    Ok(messages
        .iter()
        .map(|(_, message)| message.summary())
        .collect::<Vec<_>>()
        .join(", "))
}

fn timeout(site: &Site<'_>) -> Verdict {
    let limit = site.millis("START_TIMEOUT_MS", 10_000);
    let opened = Instant::now();
    let mut session = site.connect()?;
    let seen = session.expect_violation_ends(limit + AT_ONCE)?;
    // The gateway's clock began before the upgrade was seen here, so a little is allowed for.
    if opened.elapsed() + Duration::from_millis(50) < limit {
        return Err(format!(
            "{seen}, before START_TIMEOUT_MS={}",
            limit.as_millis()
        ));
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bad_vector_is_in_one_group_and_no_group_is_empty() {
        let bad = VECTORS.iter().filter(|vector| !vector.ok).count();
        assert!(bad >= 10, "{bad} vectors");
        let sizes: Vec<usize> = GROUPS
            .iter()
            .map(|(id, _, _)| group_of(id).count())
            .collect();
        assert_eq!(sizes.iter().sum::<usize>(), bad);
        assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");
        assert!(VECTORS.iter().any(|vector| vector.ok));
    }
}
