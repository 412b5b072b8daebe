//! Sections 4 and 6 of the contract: when the gateway flushes, and what a partial says.

use std::thread;
use std::time::{Duration, Instant};

use super::client::{Session, usual};
use super::messages::Partial;
use super::registry::{Case, Site, Verdict, case};
use super::setup::SLOW_MODEL;

/// A partial may come this much later than its schedule, for a machine that is busy with checks.
const TOLERANCE: Duration = Duration::from_millis(150);

/// How much a schedule may wander over a dozen flushes: a gateway that sleeps between flushes wanders by its work each time.
const DRIFT_TOLERANCE: Duration = Duration::from_millis(60);

/// Flushes that are watched for their cadence.
const FLUSHES: u32 = 12;

/// Sessions whose jitter is compared.
const SESSIONS: usize = 12;

/// The part of the jitter that their phases must cover. Uniform draws cover less once in 60,000 runs:
/// n·r^(n−1) − (n−1)·r^n for n = 12, r = 0.3.
const JITTER_SHARE: f64 = 0.3;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "golden-vector",
            "Session 0, frame 1, alone in a batch gives the values of the contract",
            "checksum 1745339397, zero_crossings 7, samples 1280, rms 2425.5023191083533, \"now\", 640 bytes",
            golden,
        )
        .only_when_started(),
        case("partial-fields", "A partial has exactly its fields, and they agree with each other", "as in section 6", fields),
        case(
            "partial-configuration",
            "A partial echoes CPU_PASSES as configured",
            "cpu_passes 3",
            configuration,
        )
        .in_setup(&SLOW_MODEL),
        case(
            "content",
            "A second of audio at its pace is computed right, batch by batch",
            "every batch as the reference computation gives it",
            content,
        ),
        case("whole-buffer", "A tick takes the whole buffer as one batch", "one partial for 10 frames", whole_buffer)
            .only_when_started()
            // The frames follow a partial, which came a model's delay behind the last tick: so long before the next.
            .failed_by_delay_of(Duration::from_millis(190)),
        case("empty-buffer", "An empty buffer at a tick does nothing", "no message for three intervals", empty_buffer),
        case(
            "first-flush",
            "The first flush is between FLUSH_INTERVAL_MS and that plus FLUSH_PHASE_JITTER_MS after the start",
            "a partial in that time, plus the model's",
            first_flush,
        )
        .failed_by_delay_of(TOLERANCE),
        case(
            "cadence",
            "Flushes keep an absolute schedule: start + jitter + k × FLUSH_INTERVAL_MS",
            format!("{FLUSHES} flushes, none early or late by over 150 ms, no drift over 60 ms"),
            cadence,
        )
        .failed_by_delay_of(DRIFT_TOLERANCE),
        case(
            "jitter",
            "Sessions draw their jitter apart from each other",
            "the phases of 12 sessions are spread over 30 % of the jitter at least",
            jitter,
        )
        .failed_by_delay_of(DRIFT_TOLERANCE),
        case(
            "buffered-between-flushes",
            "Audio is answered at flushes only, not frame by frame",
            "at most one partial for each interval",
            one_partial_per_interval,
        )
        // A late first partial lets a fifth come within the four intervals.
        .failed_by_delay_of(DRIFT_TOLERANCE),
    ]
}

fn golden(site: &Site<'_>) -> Verdict {
    let mut session = site.upgrade_as(&usual(), 0)?.accepted()?;
    session.start()?;
    session.send_audio(1)?;
    let (_, partial) = session.next_partial(site.patience())?;
    let seen = format!(
        "checksum {}, zero_crossings {}, samples {}, rms {}, {:?}, {} bytes",
        partial.checksum,
        partial.zero_crossings,
        partial.samples,
        partial.rms,
        partial.transcript,
        partial.audio_bytes
    );
    let golden = (1_745_339_397, 7, 1280, "now", 640);
    let values = (
        partial.checksum,
        partial.zero_crossings,
        partial.samples,
        partial.transcript.as_str(),
        partial.audio_bytes,
    );
    let rms = (partial.rms - 2_425.502_319_108_353_3).abs() < 1e-9;
    if values == golden && rms {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn fields(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    for _ in 0..2 {
        session.send_audio(3)?;
        while let Some(partial) = next_unnamed(&mut session, site)? {
            agreeing(&partial)?;
        }
    }
    Ok("exactly the fields, agreeing".to_owned())
}

fn next_unnamed(session: &mut Session, site: &Site<'_>) -> Result<Option<Partial>, String> {
    if session.all_named() {
        return Ok(None);
    }
    session
        .next_partial(site.patience())
        .map(|(_, partial)| Some(partial))
}

/// Field by field what the ledger and the content check do not cover.
fn agreeing(partial: &Partial) -> Result<(), String> {
    let wrong = if partial.flush_lateness_ms < 0.0 || !partial.flush_lateness_ms.is_finite() {
        format!("flush_lateness_ms is {}", partial.flush_lateness_ms)
    } else if partial.audio_bytes != partial.frames * 640 {
        format!(
            "{} frames have {} bytes",
            partial.frames, partial.audio_bytes
        )
    } else if partial.samples != partial.frames * 320 * u64::from(partial.cpu_passes) {
        format!(
            "{} frames, {} passes, {} samples",
            partial.frames, partial.cpu_passes, partial.samples
        )
    } else {
        return Ok(());
    };
    Err(wrong)
}

fn configuration(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(1)?;
    let (_, partial) = session.next_partial(site.patience())?;
    let seen = format!("cpu_passes {}", partial.cpu_passes);
    if partial.cpu_passes == site.setup.number("CPU_PASSES", 4) {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn content(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    for _ in 0..50 {
        session.send_audio(1)?;
        thread::sleep(Duration::from_millis(20));
    }
    let messages = session.until_all_named(site.patience())?;
    Ok(format!("{} batches, all right", messages.len()))
}

fn whole_buffer(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(1)?;
    // Just behind a flush there is most of an interval until the next.
    session.next_partial(site.patience())?;
    session.send_audio(10)?;
    let (_, partial) = session.next_partial(site.patience())?;
    let seen = format!("a partial for {} frames", partial.frames);
    if partial.frames == 10 {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn empty_buffer(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.expect_silence(3 * site.flush_interval() + site.jitter())?;
    Ok("no message".to_owned())
}

fn first_flush(site: &Site<'_>) -> Verdict {
    let mut session = site.connect()?;
    let begun = Instant::now();
    session.start()?;
    session.send_audio(1)?;
    let (arrived, _) = session.next_partial(site.patience())?;
    let after = arrived.duration_since(begun);
    let latest = site.flush_interval() + site.jitter() + site.model_delay() + TOLERANCE;
    let seen = format!("a partial {} ms after the start", after.as_millis());
    if after >= site.flush_interval() && after <= latest {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// When the first `count` flushes of a session were, in ms off `start + k × interval` (k = 1, 2, …): arrivals less the
/// lateness that each admits. The session sends a frame every 20 ms.
fn flush_offsets_ms(site: &Site<'_>, count: u32) -> Result<Vec<f64>, String> {
    let mut session = site.connect()?;
    let begun = Instant::now();
    session.start()?;
    let mut offsets_ms = Vec::new();
    let mut due = site.flush_interval();
    while due <= site.flush_interval() * count {
        session.send_audio(1)?;
        let sent = u32::try_from(session.sent()).unwrap_or(u32::MAX);
        let next_frame = begun + Duration::from_millis(20) * sent;
        while let Some((at, partial)) = session.partial_before(next_frame)? {
            let after_ms = millis(at.duration_since(begun)) - partial.flush_lateness_ms;
            offsets_ms.push(after_ms - millis(due));
            due += site.flush_interval();
        }
        if begun.elapsed() > site.flush_interval() * count + site.patience() {
            let elapsed_ms = begun.elapsed().as_millis();
            return Err(format!("{} flushes in {elapsed_ms} ms", offsets_ms.len()));
        }
    }
    Ok(offsets_ms)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A busy machine makes a flush seem later, never earlier: the least late tells where the schedule is.
fn least(offsets_ms: &[f64]) -> f64 {
    offsets_ms.iter().copied().fold(f64::INFINITY, f64::min)
}

fn cadence(site: &Site<'_>) -> Verdict {
    let offsets_ms = flush_offsets_ms(site, FLUSHES)?;
    let off_first = |offset: &f64| (offset - offsets_ms[0]).abs();
    let worst_ms = offsets_ms.iter().map(off_first).fold(0.0, f64::max);
    let drift_ms = least(&offsets_ms[offsets_ms.len() - 4..]) - least(&offsets_ms[..4]);
    let seen = format!("off the schedule by {worst_ms:.0} ms at most, drift {drift_ms:.0} ms");
    let steady = worst_ms <= millis(TOLERANCE) && drift_ms.abs() <= millis(DRIFT_TOLERANCE);
    if steady { Ok(seen) } else { Err(seen) }
}

fn jitter(site: &Site<'_>) -> Verdict {
    let phase_ms = || flush_offsets_ms(site, 3).map(|offsets_ms| least(&offsets_ms));
    let phases_ms: Vec<f64> = thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS).map(|_| scope.spawn(phase_ms)).collect();
        let ended = sessions.into_iter().map(|session| session.join());
        ended
            .map(|phase| phase.unwrap_or_else(|_| Err("a session failed".to_owned())))
            .collect::<Result<_, String>>()
    })?;
    let first_ms = least(&phases_ms);
    let last_ms = phases_ms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let seen = format!("phases from {first_ms:.0} to {last_ms:.0} ms, the model's delay included");
    let spread = last_ms - first_ms >= millis(site.jitter()) * JITTER_SHARE;
    if spread { Ok(seen) } else { Err(seen) }
}

fn one_partial_per_interval(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    let begun = Instant::now();
    let mut partials = 0_u32;
    while begun.elapsed() < 4 * site.flush_interval() {
        session.send_audio(1)?;
        while session
            .partial_before(Instant::now() + Duration::from_millis(20))?
            .is_some()
        {
            partials += 1;
        }
    }
    let seen = format!("{partials} partials in {} ms", begun.elapsed().as_millis());
    if (1..=4).contains(&partials) {
        Ok(seen)
    } else {
        Err(seen)
    }
}
