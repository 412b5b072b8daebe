//! What breaks a rule is refused: 4xx, 5xx or close, never 200, and never two answers.

use std::time::Duration;

use plimsoll_conformance::Verdict;

use super::Site;
use super::answer::Asked;
use super::exchange::Exchange;
use super::talk::{Came, Line, PATIENCE};

/// A second answer comes within this time of the first, or not at all.
const SECOND_WITHIN: Duration = Duration::from_millis(200);

/// Passes when the server refuses these bytes.
///
/// `right` is the same request without the fault. It must be answered: a server that refuses both refuses for another
/// reason.
pub(super) fn refused(site: &Site<'_>, right: &Exchange, wrong: &[u8]) -> Verdict {
    Line::open(site)?
        .ask(right)
        .map_err(|seen| format!("the request without the fault is not answered: {seen}"))?;
    let mut line = Line::open(site)?;
    line.send_what_may_be_refused(wrong);
    only_refused(&mut line)
}

/// Passes when the next that comes is one refusal, or the end.
pub(super) fn only_refused(line: &mut Line) -> Verdict {
    let seen = match line.next_within(Asked::Other, PATIENCE)? {
        Came::Answer(answer) if answer.status < 400 => return Err(answer.describe()),
        Came::Answer(answer) => format!("status {}", answer.status),
        Came::End => return Ok("the connection closed".to_owned()),
        Came::Reset => return Ok("the connection was reset".to_owned()),
        Came::Nothing => {
            let limit = PATIENCE.as_secs();
            return Err(format!("neither an answer nor a close within {limit} s"));
        }
    };
    match line.next_within(Asked::Other, SECOND_WITHIN)? {
        Came::Answer(second) => Err(format!(
            "{seen}, then a second answer: {}",
            second.describe()
        )),
        Came::End | Came::Reset => Ok(format!("{seen} and close")),
        Came::Nothing => Ok(seen),
    }
}
