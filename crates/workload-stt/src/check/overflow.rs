//! Sections 7 and 8 of the contract: a full input buffer, by policy. Nothing is lost silently.

use std::time::Duration;

use plimsoll_conformance::case::{AT_ONCE, Series, value};

use super::client::Session;
use super::in_flight::wait_for_request;
use super::messages::{ErrorMessage, Message};
use super::registry::{Case, Site, Verdict, case};
use super::setup::{CLOSE_ON_OVERFLOW, DROP_NEWEST, DROP_OLDEST};

/// All frames must be in the buffer before the first tick, FLUSH_INTERVAL_MS=400 after the start.
const BEFORE_THE_TICK: Duration = Duration::from_millis(300);

const DROPPED: Series = ("stt_frames_dropped_total", &[]);

/// Close codes of a session that sends more than is taken: "try again later", or what a library has for violations.
const OVERFLOWN: [u16; 5] = [1013, 1008, 1009, 1011, 1003];

pub(super) fn cases() -> Vec<Case> {
    [
        case(
            "overflow-drop-oldest",
            "drop_oldest drops the oldest frames of a full buffer, and names them once",
            "error 1-30, partial 31-50",
            |site| exactly(site, &["error input_buffer/overflow 1-30", "partial 31-50"]),
        )
        .in_setup(&DROP_OLDEST),
        case(
            "overflow-behind-a-request",
            "Drops behind a request in flight are named after it, in order",
            "partial 1-5, error 6-35, partial 36-55",
            behind_a_request,
        )
        .in_setup(&DROP_OLDEST),
        case(
            "overflow-counted",
            "Dropped frames are counted",
            "stt_frames_dropped_total grows by 30",
            counted,
        )
        .in_setup(&DROP_OLDEST),
        case(
            "overflow-drop-newest",
            "drop_newest drops the newest frames of a full buffer, and names them once",
            "partial 1-20, error 21-50",
            |site| exactly(site, &["partial 1-20", "error input_buffer/overflow 21-50"]),
        )
        .in_setup(&DROP_NEWEST),
        case(
            "overflow-session-goes-on",
            "After an overflow the session goes on",
            "a partial for the audio sent later",
            goes_on,
        )
        .in_setup(&DROP_NEWEST),
        case(
            "overflow-close",
            "close ends the session",
            "close 1013, or one that a library has for violations, within 500 ms",
            closes,
        )
        .in_setup(&CLOSE_ON_OVERFLOW),
        case(
            "overflow-exactly-full",
            "A buffer that is just full is no overflow",
            "one partial for 20 frames",
            just_full,
        )
        .in_setup(&CLOSE_ON_OVERFLOW),
    ]
    .map(|case| case.failed_by_delay_of(BEFORE_THE_TICK))
    .into()
}

/// Sends 50 frames at once to a buffer of 20, before the first tick; what names them must be exactly this.
fn exactly(site: &Site<'_>, expected: &[&str]) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(50)?;
    let seen = named(site, &mut session)?;
    if seen == expected {
        Ok(seen.join(", "))
    } else {
        Err(seen.join(", "))
    }
}

/// What names the frames sent so far; errors are checked field by field.
fn named(site: &Site<'_>, session: &mut Session) -> Result<Vec<String>, String> {
    let mut seen = Vec::new();
    for (_, message) in session.until_all_named(site.patience())? {
        if let Message::Error(error) = &message {
            agreeing(error)?;
        }
        seen.push(message.summary());
    }
    Ok(seen)
}

fn agreeing(error: &ErrorMessage) -> Result<(), String> {
    let rules = [
        ("stage", error.stage == "input_buffer"),
        ("kind", error.kind == "overflow"),
        ("retryable", !error.retryable),
        ("message", !error.message.is_empty()),
        ("audio_bytes", error.audio_bytes == error.frames * 640),
        ("newest_age_ms", error.newest_age_ms >= 0.0),
        ("oldest_age_ms", error.oldest_age_ms >= error.newest_age_ms),
        ("flush_lateness_ms", error.flush_lateness_ms >= 0.0),
        ("inference_elapsed_ms", error.inference_elapsed_ms.is_none()),
        ("inference_status", error.inference_status.is_none()),
        (
            "inflight_gateway_batches",
            error.inflight_gateway_batches <= 1,
        ),
        ("gateway_buffer_frames", error.gateway_buffer_frames <= 20),
    ];
    match rules.iter().find(|(_, holds)| !holds) {
        None => Ok(()),
        Some((field, _)) => Err(format!("{field} is wrong in {error:?}")),
    }
}

fn behind_a_request(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(5)?;
    wait_for_request(site)?;
    session.send_audio(50)?;
    let seen = named(site, &mut session)?;
    let expected = [
        "partial 1-5",
        "error input_buffer/overflow 6-35",
        "partial 36-55",
    ];
    if seen == expected {
        Ok(seen.join(", "))
    } else {
        Err(seen.join(", "))
    }
}

fn counted(site: &Site<'_>) -> Verdict {
    let before = value(&site.metrics()?, DROPPED);
    let mut session = site.session()?;
    session.send_audio(50)?;
    named(site, &mut session)?;
    let (scrape, reached) = site.metrics_until(|now| value(now, DROPPED) >= before + 30.0)?;
    let grown = value(&scrape, DROPPED) - before;
    let seen = format!("it grew by {grown}");
    if reached && grown == 30.0 {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn goes_on(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(50)?;
    named(site, &mut session)?;
    session.send_audio(3)?;
    let seen = named(site, &mut session)?;
    if seen == ["partial 51-53"] {
        Ok(seen.join(", "))
    } else {
        Err(seen.join(", "))
    }
}

fn closes(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let bytes = session.next_frames(50);
    session.send_what_may_be_refused(&bytes);
    session.expect_close(&OVERFLOWN, AT_ONCE)
}

fn just_full(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(20)?;
    let seen = named(site, &mut session)?;
    if seen == ["partial 1-20"] {
        Ok(seen.join(", "))
    } else {
        Err(seen.join(", "))
    }
}
