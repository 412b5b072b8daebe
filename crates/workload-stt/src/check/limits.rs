//! Sections 2 and 8 of the contract: limits on sessions, on requests in flight and on unsent messages; and the token.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::case::{Series, poll, value};
use plimsoll_conformance::socket::Upgrade;

use super::client::{Connection, Session, usual};
use super::messages::Message;
use super::registry::{Case, Site, Verdict, case};
use super::setup::{ONE_JOB, ONE_WITH_TOKEN, SMALL_OUTBOX, TOKEN, TWO_SESSIONS, WITH_TOKEN};

/// A client that does not read must be felt within this time, at a flush every 10 ms.
const STALL_LIMIT: Duration = Duration::from_secs(12);

/// A gateway may take this long to notice that a session has ended.
const SLOT_LIMIT: Duration = Duration::from_secs(1);

const DEFERRED_BY_JOBS: Series = ("stt_ticks_deferred_total", &[("reason", "jobs")]);
const DEFERRED_BY_OUTBOX: Series = ("stt_ticks_deferred_total", &[("reason", "outbox")]);
const REJECTED: Series = ("stt_sessions_rejected_total", &[]);

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "sessions-limited",
            "An upgrade over MAX_SESSIONS answers 503 with Retry-After: 1",
            "status 503, Retry-After: 1, counted as rejected",
            sessions_limited,
        )
        .in_setup(&TWO_SESSIONS),
        case(
            "session-slot-reused",
            "A session that ends, by a close or by a torn connection, makes room for another",
            "an upgrade accepted within a second, twice",
            slot_reused,
        )
        .in_setup(&TWO_SESSIONS),
        case("token-absent", "Without the token an upgrade answers 401", "status 401", |site| refused(site, None))
            .in_setup(&WITH_TOKEN),
        case("token-wrong", "With a wrong token an upgrade answers 401", "status 401, for each", |site| {
            let other_end = format!("{}x", &TOKEN[..TOKEN.len() - 1]);
            let texts = [
                "Bearer".to_owned(),
                "Bearer ".to_owned(),
                format!("Bearer {other_end}"),
                format!("Bearer {}", &TOKEN[1..]),
                format!("Bearer {TOKEN}x"),
                format!("Basic {TOKEN}"),
                TOKEN.to_owned(),
            ];
            for text in texts {
                refused(site, Some(text.clone())).map_err(|seen| format!("{text:?}: {seen}"))?;
            }
            Ok("status 401, 7 times".to_owned())
        })
        .in_setup(&WITH_TOKEN),
        case("token-right", "With the token an upgrade answers 101", "101, and a session", token_right)
            .in_setup(&WITH_TOKEN),
        case(
            "token-before-room",
            "A full gateway tells a wrong token 401, not 503",
            "status 401 without the token, 503 with it",
            token_before_room,
        )
        .in_setup(&ONE_WITH_TOKEN),
        case(
            "jobs-limited",
            "MAX_INFLIGHT_JOBS holds for the whole gateway, and every frame is named in the end",
            "inflight_max 1 at the simulator for 4 sessions, stt_ticks_deferred_total{reason=\"jobs\"} grows",
            jobs_limited,
        )
        .in_setup(&ONE_JOB),
        case(
            "slow-reader",
            "A client that does not read defers its ticks; when it reads again, every frame is named once, in order",
            "stt_ticks_deferred_total{reason=\"outbox\"} grows, then frames named without a gap",
            slow_reader,
        )
        .in_setup(&SMALL_OUTBOX),
        case(
            "slow-reader-hurts-nobody-else",
            "While one client does not read, another is served",
            "partials for the other session",
            slow_reader_and_another,
        )
        .in_setup(&SMALL_OUTBOX),
    ]
}

fn sessions_limited(site: &Site<'_>) -> Verdict {
    let before = value(&site.metrics()?, REJECTED);
    let sessions = [when_there_is_room(site)?, when_there_is_room(site)?];
    let Upgrade::Refused { status, headers } = site.upgrade(&usual())? else {
        return Err("a third session was accepted with MAX_SESSIONS=2".to_owned());
    };
    let retry_after = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    let retry_after = retry_after.map_or("absent", |(_, value)| value.as_str());
    let (_, counted) = site.metrics_until(|now| value(now, REJECTED) >= before + 1.0)?;
    drop(sessions);
    let seen = format!("status {status}, Retry-After: {retry_after}, counted: {counted}");
    if status == 503 && retry_after == "1" && counted {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// A session, once an ended one has made room for it.
fn when_there_is_room(site: &Site<'_>) -> Result<Session, String> {
    let ask = || match site.upgrade(&usual())? {
        Upgrade::Done(session) => Ok((Ok(session), true)),
        Upgrade::Refused { status, .. } => {
            Ok((Err(format!("the upgrade was answered {status}")), false))
        }
    };
    let (upgrade, _) = poll(SLOT_LIMIT, ask)?;
    let mut session = upgrade?;
    session.start()?;
    Ok(session)
}

fn slot_reused(site: &Site<'_>) -> Verdict {
    let _first = when_there_is_room(site)?;
    let second = when_there_is_room(site)?;
    second.close()?;
    let third = when_there_is_room(site).map_err(|seen| format!("after a close, {seen}"))?;
    // The connection is torn without a close frame.
    drop(third);
    when_there_is_room(site).map_err(|seen| format!("after a torn connection, {seen}"))?;
    Ok("accepted, twice".to_owned())
}

fn refused(site: &Site<'_>, authorization: Option<String>) -> Verdict {
    let how = Connection {
        authorization,
        ..usual()
    };
    match site.upgrade(&how)? {
        Upgrade::Refused { status: 401, .. } => Ok("status 401".to_owned()),
        Upgrade::Refused { status, .. } => Err(format!("status {status}")),
        Upgrade::Done(_) => Err("status 101".to_owned()),
    }
}

fn token_before_room(site: &Site<'_>) -> Verdict {
    let with_token = Connection {
        authorization: Some(format!("Bearer {TOKEN}")),
        ..usual()
    };
    let _only = site.upgrade(&with_token)?.accepted()?;
    let absent = refused(site, None)?;
    match site.upgrade(&with_token)? {
        Upgrade::Refused { status: 503, .. } => Ok(format!("{absent} without, 503 with it")),
        Upgrade::Refused { status, .. } => Err(format!("status {status} with the token")),
        Upgrade::Done(_) => Err("a second session was accepted with MAX_SESSIONS=1".to_owned()),
    }
}

fn token_right(site: &Site<'_>) -> Verdict {
    let how = Connection {
        authorization: Some(format!("Bearer {TOKEN}")),
        ..usual()
    };
    let mut session = site.upgrade(&how)?.accepted()?;
    session.start()?;
    session.close()?;
    Ok("101, and a session".to_owned())
}

fn jobs_limited(site: &Site<'_>) -> Verdict {
    let before = value(&site.metrics()?, DEFERRED_BY_JOBS);
    site.simulator()?.reset_stats()?;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let mut session = site.session()?;
        session.send_audio(2)?;
        sessions.push(session);
    }
    for session in &mut sessions {
        // A tick that finds the cap reached tries again at the next, and so may three others before it.
        for (_, message) in session.until_all_named(4 * site.patience())? {
            if matches!(message, Message::Error(_)) {
                return Err(format!("{}, though nothing failed", message.summary()));
            }
        }
    }
    let inflight_max = site.simulator()?.stats()?.inflight_max;
    let (scrape, deferred) = site.metrics_until(|now| value(now, DEFERRED_BY_JOBS) > before)?;
    let grown = value(&scrape, DEFERRED_BY_JOBS) - before;
    let seen = format!("inflight_max {inflight_max}, {grown} ticks deferred, all frames named");
    if inflight_max == 1 && deferred {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// A session that sends and does not read, until ticks are deferred because its outbox is full.
fn stalled(site: &Site<'_>) -> Result<Session, String> {
    let small = Connection {
        small_buffers: true,
        ..usual()
    };
    let before = value(&site.metrics()?, DEFERRED_BY_OUTBOX);
    let mut session = site.upgrade(&small)?.accepted()?;
    session.start()?;
    let begun = Instant::now();
    while begun.elapsed() < STALL_LIMIT {
        // About as many frames as ticks: each tick makes one small message.
        for _ in 0..20 {
            session.send_audio(1)?;
            thread::sleep(site.flush_interval());
        }
        if value(&site.metrics()?, DEFERRED_BY_OUTBOX) >= before + 5.0 {
            return Ok(session);
        }
    }
    Err(format!(
        "no tick was deferred for {} s and {} frames, though the client read nothing",
        STALL_LIMIT.as_secs(),
        session.sent()
    ))
}

fn slow_reader(site: &Site<'_>) -> Verdict {
    let mut session = stalled(site)?;
    // More than the buffer holds: now the policy decides, and what it drops must be named, too.
    session.send_audio(200)?;
    thread::sleep(10 * site.flush_interval());
    let messages = session.until_all_named(site.patience())?;
    let dropped: u64 = messages
        .iter()
        .filter(|(_, message)| matches!(message, Message::Error(_)))
        .map(|(_, message)| message.range().count() as u64)
        .sum();
    let seen = format!(
        "{} frames, {dropped} of them dropped, in {} messages",
        session.sent(),
        messages.len()
    );
    if dropped == 0 {
        return Err(format!(
            "{seen}: 200 frames at once fitted into a buffer of 50 that could not be flushed"
        ));
    }
    session.close()?;
    Ok(seen)
}

fn slow_reader_and_another(site: &Site<'_>) -> Verdict {
    let slow = stalled(site)?;
    let mut other = site.session()?;
    for _ in 0..10 {
        other.send_audio(1)?;
        other.until_all_named(site.patience())?;
    }
    drop(slow);
    other.close()?;
    Ok("10 frames of the other session answered".to_owned())
}
