//! What else can happen in a session: a flush, idleness, another session beside it.

use std::time::Duration;

use plimsoll_speech::clip::SAMPLE_NS;
use plimsoll_speech::crosstalk::crosses;
use plimsoll_speech::words::words;

use super::audio::{LEAD, PAUSE, Speech};
use super::heard::{Heard, shown};
use super::site::Site;
use super::speech::one_clip_in;
use super::talk::{Talk, in_words};
use super::{Case, Outcome, case, not_run};
use crate::dialect::{Kind, Options, Turns};

/// Keep-alives in the time that a session is idle.
const KEEP_ALIVES: u32 = 3;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "flush",
            "A flush brings the final of what was said",
            "a final with words before any more audio is sent",
            flush,
        )
        .should(),
        case(
            "keep-alive",
            "Keep-alives hold an idle session open",
            "words in a session that was idle for 12 s with a keep-alive each 4 s",
            keep_alive,
        ),
        case(
            "two-sessions",
            "Two sessions at once get their own words",
            "in each, at most 80 % of its words wrong, and no text that was said in another",
            two_sessions,
        ),
    ]
}

fn flush(site: &Site<'_>) -> Outcome {
    let by_client = Options {
        turns: Turns::Client,
        ..site.options.clone()
    };
    let dialect = match site.dialect_of(&by_client) {
        Ok(dialect) => dialect,
        Err(error) => return Err(not_run(error.to_string())),
    };
    if dialect.transcription().flush(0).is_none() {
        return Err(not_run("the dialect has no message that asks for finals"));
    }
    let speech = Speech::of(&[site.clip(2)], dialect.audio(), Duration::ZERO);
    let mut talk = Talk::open(&site.server, &*dialect)?;
    talk.say(&speech.frames);
    talk.flush();
    let limit = site.server.times.patience;
    let has_words = |heard: &Heard| {
        let mut finals = heard.finals.iter();
        finals.any(|told| !told.text.trim().is_empty())
    };
    if !talk.listen(limit, |heard| has_words(heard) || heard.is_over()) || !has_words(&talk.heard) {
        return Err(format!("no final with words came{}", talk.remarks()).into());
    }
    Ok(talk.heard.must_be(&speech.words)?)
}

fn keep_alive(site: &Site<'_>) -> Outcome {
    let dialect = site.dialect()?;
    let Some(message) = dialect.keep_alive() else {
        return Err(not_run("the dialect has no keep-alive"));
    };
    let idle = site.server.times.idle;
    let mut talk = Talk::open(&site.server, &*dialect)?;
    for _ in 0..KEEP_ALIVES {
        talk.send(&message);
        talk.listen(idle / KEEP_ALIVES, |heard| heard.is_over());
    }
    if talk.heard.is_over() {
        return Err(format!("the session did not stay open{}", talk.remarks()).into());
    }
    let seen = one_clip_in(site, talk, &*dialect)?;
    Ok(format!("{seen}, after {} of idleness", in_words(idle)))
}

/// One session says two clips. The other one says nothing during the first of them, so that it could be given that one's
/// text, and another clip while the second one is said.
fn two_sessions(site: &Site<'_>) -> Outcome {
    let first = [site.clip(0), site.clip(1)];
    let second = site.clip(2);
    if first.iter().any(|clip| clip.words == second.words) {
        return Err(not_run(
            "two sessions need three different clips; give a corpus that has them",
        ));
    }
    let dialect = site.dialect()?;
    let audio = dialect.audio();
    let both = Speech::of(&first, audio, PAUSE);
    let first_ns = first[0].samples.len() as u64 * SAMPLE_NS;
    let lead = LEAD + Duration::from_nanos(first_ns) + PAUSE;
    let other = Speech::after(lead, &[second], audio, PAUSE);
    let one = Talk::open(&site.server, &*dialect)?;
    let two = match Talk::open(&site.server, &*dialect) {
        Ok(two) => two,
        Err(not) if matches!(not.kind, Some(Kind::Capacity | Kind::Rate | Kind::Quota)) => {
            let reason = format!("the server takes one session at a time: {}", not.seen);
            return Err(not_run(reason));
        }
        Err(not) => return Err(not.into()),
    };
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| said(one, &both));
        let two = said(two, &other);
        (one.join(), two)
    });
    let one = one.map_err(|_| "a session of the checker failed")?;
    let (one, two) = (one.map_err(of_first)?, two.map_err(of_second)?);
    must_not_cross(&one, &both, &other)?;
    must_not_cross(&two, &other, &both)?;
    let one = one.must_be(&both.words).map_err(of_first)?;
    let two = two.must_be(&other.words).map_err(of_second)?;
    Ok(format!("{one}, and {two}"))
}

fn of_first(seen: String) -> String {
    format!("the first of the two: {seen}")
}

fn of_second(seen: String) -> String {
    format!("the second of the two: {seen}")
}

/// Says a speech, to the end of the session; what it heard.
fn said(mut talk: Talk<'_>, speech: &Speech) -> Result<Heard, String> {
    talk.say_all(speech);
    talk.end()?;
    Ok(talk.heard)
}

/// Passes when no final, and not the whole text, is what the other session said.
fn must_not_cross(heard: &Heard, own: &Speech, other: &Speech) -> Result<(), String> {
    let whole = heard.text();
    let finals = heard.finals.iter().map(|told| told.text.as_str());
    for text in finals.chain([whole.as_str()]) {
        if crosses(&words(text), &own.words, [other.words.as_slice()]).is_some() {
            let (said, told) = (shown(&own.words.join(" ")), shown(text));
            return Err(format!(
                "crosstalk: the session that said {said} was told {told}, which another one said"
            ));
        }
    }
    Ok(())
}
