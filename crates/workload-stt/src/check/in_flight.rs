//! Section 4 of the contract: at most one request in flight per session, the load-bearing invariant.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::case::{AT_ONCE, Series, poll, value};
use plimsoll_conformance::socket::close_frame;

use super::client::Session;
use super::registry::{Case, Site, Verdict, case};
use super::setup::SLOW_MODEL;

/// A tick is this exact, on a machine that is busy with checks.
const TICK_TOLERANCE: Duration = Duration::from_millis(80);

/// The counter of ticks that did nothing because the last request was not back.
const DEFERRED: Series = ("stt_ticks_deferred_total", &[("reason", "inflight")]);

pub(super) fn cases() -> Vec<Case> {
    [
        case(
            "one-in-flight",
            "A session has one request in flight at most, however slow the model is",
            "inflight_max 1 at the simulator",
            one_in_flight,
        ),
        case(
            "audio-waits",
            "Audio that came while a request was in flight is one batch at the next tick",
            "the second batch has every frame sent meanwhile",
            audio_waits,
        )
        .failed_by_delay_of(Duration::from_millis(250)),
        case(
            "deferred-counted",
            "Ticks that found a request in flight are counted",
            "stt_ticks_deferred_total{reason=\"inflight\"} grows by 2 or more",
            deferrals_counted,
        ),
        case(
            "deferred-keeps-schedule",
            "A deferred batch goes with the next tick of the schedule, not when the answer comes",
            "requests at the simulator a multiple of FLUSH_INTERVAL_MS apart",
            deferral_keeps_schedule,
        )
        .failed_by_delay_of(TICK_TOLERANCE),
        case(
            "sessions-do-not-wait-for-each-other",
            "Requests of different sessions are in flight together",
            "inflight_max 3 at the simulator for 3 sessions",
            sessions_are_independent,
        )
        .failed_by_delay_of(Duration::from_millis(250)),
        case(
            "close-with-request-in-flight",
            "A client's close is answered at once, whatever is in flight",
            "close 1000 within 500 ms",
            close_in_flight,
        ),
    ]
    .map(|case| case.in_setup(&SLOW_MODEL))
    .into()
}

/// Sends a frame every 20 ms for a time, reading meanwhile; then waits until all are named.
fn talk(
    site: &Site<'_>,
    session: &mut Session,
    time: Duration,
) -> Result<Vec<(Instant, u64)>, String> {
    let mut batches = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < time {
        session.send_audio(1)?;
        while let Some((at, partial)) =
            session.partial_before(Instant::now() + Duration::from_millis(20))?
        {
            batches.push((at, partial.frames));
        }
    }
    for (at, message) in session.until_all_named(site.patience())? {
        let range = message.range();
        batches.push((at, range.end() - range.start() + 1));
    }
    Ok(batches)
}

fn one_in_flight(site: &Site<'_>) -> Verdict {
    quiet(site)?;
    site.simulator()?.reset_stats()?;
    let mut session = site.session()?;
    let batches = talk(site, &mut session, Duration::from_millis(1200))?;
    let stats = site.simulator()?.stats()?;
    let seen = format!(
        "inflight_max {}, {} batches",
        stats.inflight_max,
        batches.len()
    );
    if stats.inflight_max == 1 {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// Waits until no request of an earlier case is in flight.
fn quiet(site: &Site<'_>) -> Result<(), String> {
    let simulator = site.simulator()?;
    match poll(site.patience(), || {
        simulator
            .stats()
            .map(|stats| (stats.inflight, stats.inflight == 0))
    })? {
        (_, true) => Ok(()),
        (inflight, false) => Err(format!(
            "{inflight} requests of ended sessions are still in flight"
        )),
    }
}

fn audio_waits(site: &Site<'_>) -> Verdict {
    quiet(site)?;
    let mut session = site.session()?;
    session.send_audio(1)?;
    wait_for_request(site)?;
    session.send_audio(7)?;
    thread::sleep(site.flush_interval());
    session.send_audio(8)?;
    session.next_partial(site.patience())?;
    let (_, partial) = session.next_partial(site.patience())?;
    let seen = format!("a second batch of {} frames", partial.frames);
    if partial.frames == 15 {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// Waits until the simulator has a request in flight.
pub(super) fn wait_for_request(site: &Site<'_>) -> Result<(), String> {
    let simulator = site.simulator()?;
    match poll(site.patience(), || {
        simulator
            .stats()
            .map(|stats| (stats.inflight, stats.inflight > 0))
    })? {
        (_, true) => Ok(()),
        (_, false) => Err("no request came to the simulator".to_owned()),
    }
}

fn deferrals_counted(site: &Site<'_>) -> Verdict {
    let before = value(&site.metrics()?, DEFERRED);
    let mut session = site.session()?;
    talk(site, &mut session, Duration::from_millis(600))?;
    let (scrape, reached) = site.metrics_until(|now| value(now, DEFERRED) >= before + 2.0)?;
    let seen = format!("it grew by {}", value(&scrape, DEFERRED) - before);
    if reached { Ok(seen) } else { Err(seen) }
}

/// By the times at which the simulator received the requests: the way back adds the model's delay and three more processes that may be late.
fn deferral_keeps_schedule(site: &Site<'_>) -> Verdict {
    quiet(site)?;
    let earlier = site.simulator()?.requests()?.len();
    let mut session = site.session()?;
    talk(site, &mut session, Duration::from_millis(1600))?;
    let requests = site.simulator()?.requests()?;
    let interval = site.flush_interval();
    let gaps: Vec<Duration> = requests[earlier.min(requests.len())..]
        .windows(2)
        .map(|pair| Duration::from_micros(pair[1].at_us.saturating_sub(pair[0].at_us)))
        .collect();
    let off = |gap: &Duration| {
        let beyond =
            Duration::from_nanos(u64::try_from(gap.as_nanos() % interval.as_nanos()).unwrap_or(0));
        beyond.min(interval - beyond)
    };
    let texts: Vec<String> = gaps.iter().map(|gap| gap.as_millis().to_string()).collect();
    let seen = format!("requests {} ms apart", texts.join(", "));
    let on_schedule = gaps.len() >= 2 && gaps.iter().all(|gap| off(gap) <= TICK_TOLERANCE);
    if on_schedule { Ok(seen) } else { Err(seen) }
}

fn sessions_are_independent(site: &Site<'_>) -> Verdict {
    quiet(site)?;
    site.simulator()?.reset_stats()?;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let mut session = site.session()?;
        session.send_audio(1)?;
        sessions.push(session);
    }
    for session in &mut sessions {
        session.until_all_named(site.patience())?;
    }
    let stats = site.simulator()?.stats()?;
    let seen = format!("inflight_max {}", stats.inflight_max);
    if stats.inflight_max == 3 {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn close_in_flight(site: &Site<'_>) -> Verdict {
    quiet(site)?;
    let mut session = site.session()?;
    session.send_audio(1)?;
    wait_for_request(site)?;
    session.send(&close_frame(1000))?;
    session.expect_close(&[1000], AT_ONCE)
}
