//! The gates on series that leak, and on series that only look as if they did.

use proptest::prelude::*;

use super::synthetic::Noise;
use super::*;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const SESSIONS: u32 = 50;
/// 30 min, in seconds.
const SOAK_S: u64 = 1800;

/// Rows of a trial with this memory and latency at each second of the window.
fn rows(
    lasts_s: u64,
    mut rss_bytes: impl FnMut(f64) -> f64,
    mut newest_p95_ms: impl FnMut(f64) -> f64,
) -> Vec<Second> {
    let row = |at_s: u64, phase| Second {
        at_s,
        phase,
        sessions_open: u64::from(SESSIONS),
        target_cpu_cores: Some(0.25),
        ..Second::default()
    };
    let mut rows = vec![row(1, Phase::Ramp), row(2, Phase::WarmUp)];
    for second in 0..lasts_s {
        let at_s = f64::from(u32::try_from(second).unwrap());
        let mut row = row(second + 3, Phase::Measured);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes of a process"
        )]
        let bytes = rss_bytes(at_s).max(0.0) as u64;
        row.target_rss_bytes = Some(bytes);
        row.newest_p95_ms = Some(newest_p95_ms(at_s));
        rows.push(row);
    }
    rows.push(row(lasts_s + 3, Phase::Grace));
    rows
}

fn gates(rows: &[Second]) -> [GateResult; 2] {
    soak_gates(Window::of(rows).as_ref(), 10.0)
}

/// Whether the gate on memory holds for this series.
fn memory_holds(lasts_s: u64, rss_bytes: impl FnMut(f64) -> f64) -> bool {
    let [memory, latency] = gates(&rows(lasts_s, rss_bytes, |_| 150.0));
    assert_eq!(memory.name, RSS_GATE);
    assert!(latency.pass, "{latency:?}");
    memory.pass
}

fn latency_holds(lasts_s: u64, newest_p95_ms: impl FnMut(f64) -> f64) -> bool {
    let [memory, latency] = gates(&rows(lasts_s, |_| 20.0 * MIB, newest_p95_ms));
    assert_eq!(latency.name, LATENCY_GATE);
    assert!(memory.pass, "{memory:?}");
    latency.pass
}

/// Resident memory that moves in whole pages and wanders.
fn pages(seed: u64) -> impl FnMut(f64) -> f64 {
    let mut noise = Noise::new(seed, 0.9);
    move |bytes| ((bytes + 32.0 * KIB * noise.next()) / 4096.0).round() * 4096.0
}

#[test]
fn thresholds_by_hand() {
    // 30 min at 20 MiB: doubling in a day is 0.83 MiB an hour. The resolution is 2 MiB in half an hour, so 4 MiB an
    // hour, divided by 50 sessions. Latency: 10 ms in half an hour.
    let [memory, latency] = gates(&rows(SOAK_S, |_| 20.0 * MIB, |_| 150.0));
    assert!(
        (memory.threshold - 4.0 * MIB / 50.0).abs() < 1.0,
        "{memory:?}"
    );
    assert!((latency.threshold - 20.0).abs() < 1e-9, "{latency:?}");
    // At 240 MiB the threshold is 10 MiB an hour.
    let [memory, _] = gates(&rows(SOAK_S, |_| 240.0 * MIB, |_| 150.0));
    assert!(
        (memory.threshold - 10.0 * MIB / 50.0).abs() < 1.0,
        "{memory:?}"
    );
}

#[test]
fn nothing_grows() {
    for seed in 0..20 {
        let mut page = pages(seed);
        assert!(memory_holds(SOAK_S, |_| page(20.0 * MIB)));
        let mut page = pages(seed);
        assert!(memory_holds(40, |_| page(20.0 * MIB)));
    }
}

/// 64 KiB per answer and one answer per session and second: 50 sessions leak 3.1 MiB a second, one session 2.5 MiB in
/// 40 s.
#[test]
fn a_great_leak_is_found_in_forty_seconds() {
    for seed in 0..20 {
        let mut page = pages(seed);
        let rss = |s| page(8.0 * MIB + s * 64.0 * KIB * f64::from(SESSIONS));
        assert!(!memory_holds(40, rss));
    }
}

/// 40 bytes per answer: 7 MiB an hour for 50 sessions.
#[test]
fn a_small_leak_is_found_in_half_an_hour_and_not_in_forty_seconds() {
    for seed in 0..20 {
        let leak = |s: f64| 20.0 * MIB + s * 40.0 * f64::from(SESSIONS);
        let mut page = pages(seed);
        assert!(!memory_holds(SOAK_S, |s| page(leak(s))));
        let mut page = pages(seed);
        assert!(memory_holds(40, |s| page(leak(s))));
    }
}

#[test]
fn a_leak_below_a_collectors_sawtooth_is_found() {
    let sawtooth = |s: f64| 100.0 * MIB + (s % 45.0) / 45.0 * 30.0 * MIB;
    assert!(memory_holds(SOAK_S, sawtooth));
    // 60 MiB an hour, where 4.6 MiB (110 / 24) are allowed.
    assert!(!memory_holds(SOAK_S, |s| sawtooth(s) + s * 60.0 * MIB / 3600.0));
}

#[test]
fn a_step_is_no_leak_wherever_it_is() {
    for at_s in (0..SOAK_S).step_by(60) {
        let at_s = f64::from(u32::try_from(at_s).unwrap());
        let mut page = pages(7);
        let step = |s: f64| page(20.0 * MIB + if s >= at_s { 64.0 * MIB } else { 0.0 });
        assert!(memory_holds(SOAK_S, step), "a step at {at_s} s");
    }
}

#[test]
fn a_pool_that_fills_up_is_no_leak() {
    for fills_in_s in [5.0, 60.0, 300.0] {
        let mut page = pages(7);
        let pool = |s: f64| page(20.0 * MIB + 16.0 * MIB * (1.0 - (-s / fills_in_s).exp()));
        assert!(memory_holds(SOAK_S, pool), "{fills_in_s} s");
    }
}

/// Growth that is not a straight line widens the interval over the whole window. The gate finds it all the same.
#[test]
fn a_leak_that_begins_late_or_becomes_faster_is_found() {
    for begins_s in [100.0, 300.0, 590.0] {
        let mut page = pages(7);
        let late = |s: f64| page(20.0 * MIB + (s - begins_s).max(0.0) * 64.0 * KIB);
        assert!(!memory_holds(SOAK_S, late), "from {begins_s} s on");
    }
    let mut page = pages(7);
    assert!(!memory_holds(SOAK_S, |s| page(
        20.0 * MIB + (s / 1800.0).powi(2) * 50.0 * MIB
    )));
    let mut page = pages(7);
    assert!(!memory_holds(SOAK_S, |s| page(
        20.0 * MIB + (s / 900.0).exp() * 10.0 * MIB
    )));
}

/// How many of 200 noisy series without any growth fail the gate. The seeds are fixed, so this cannot fail by chance.
#[test]
fn noise_is_rarely_taken_for_growth() {
    let false_alarms = |lasts_s: u64| {
        let fails = |seed: &u64| {
            let mut noise = Noise::new(*seed, 0.8);
            !latency_holds(lasts_s, |_| 150.0 + 4.0 * noise.next())
        };
        (0..200).filter(fails).count()
    };
    assert!(false_alarms(40) <= 6, "{}", false_alarms(40));
    assert!(false_alarms(120) <= 2, "{}", false_alarms(120));
    assert_eq!(false_alarms(SOAK_S), 0);
}

#[test]
fn latency_that_grows_is_found() {
    for seed in 0..20 {
        // 90 ms an hour.
        let mut noise = Noise::new(seed, 0.8);
        assert!(!latency_holds(SOAK_S, |s| 150.0
            + s / 40.0
            + 4.0 * noise.next()));
    }
}

#[test]
fn what_was_not_observed_does_not_hold() {
    let unseen = |gate: &GateResult| !gate.pass && gate.observed.is_none();
    assert!(soak_gates(None, 10.0).iter().all(unseen));
    let mut rows = rows(60, |_| MIB, |_| 1.0);
    for row in &mut rows {
        row.target_rss_bytes = None;
    }
    let [memory, latency] = gates(&rows);
    assert!(unseen(&memory) && latency.pass);
    let drift = Window::of(&rows).unwrap().drift();
    assert!(drift.rss_bytes_per_hour.is_none() && drift.newest_p95_ms_per_hour.is_some());
}

#[test]
fn a_window_of_seconds_is_too_short() {
    assert!(Window::of(&rows(29, |_| MIB, |_| 1.0)).is_none());
    assert!(Window::of(&rows(30, |_| MIB, |_| 1.0)).is_some());
    assert!(Window::of(&[]).is_none());
}

#[test]
fn drift_by_hand() {
    // One page a second is 14,745,600 bytes an hour.
    let rows = rows(60, |s| 20.0 * MIB + 4096.0 * s, |s| 100.0 + 0.1 * s);
    let drift = Window::of(&rows).unwrap().drift();
    let near = |slope: Option<crate::record::Slope>, value: f64| {
        let slope = slope.unwrap();
        assert!((slope.value / value - 1.0).abs() < 1e-6, "{slope:?}");
        assert!((slope.confidence - 0.95).abs() < 1e-9);
    };
    near(drift.rss_bytes_per_hour, 14_745_600.0);
    near(drift.rss_bytes_per_session_hour, 14_745_600.0 / 50.0);
    near(drift.newest_p95_ms_per_hour, 360.0);
    let cpu = drift.cpu_cores_per_hour.unwrap();
    assert!(cpu.value.abs() < 1e-9 && cpu.high - cpu.low < 1e-9);
}

proptest! {
    /// Whatever is added, a faster leak is never judged more leniently, and a leak never hides growth that is there
    /// without it.
    #[test]
    fn more_leak_is_never_better(seed in 0_u64..1000, slow in 0.0_f64..1e5, more in 0.0_f64..1e6) {
        let observed = |bytes_per_s: f64| {
            let mut noise = Noise::new(seed, 0.9);
            let [memory, _] = gates(&rows(60, |s| 64.0 * MIB + s * bytes_per_s + MIB * noise.next(), |_| 1.0));
            memory.observed.unwrap()
        };
        // Rounding to whole bytes.
        prop_assert!(observed(slow + more) >= observed(slow) - 10.0);
    }

    /// No input makes it panic or write what JSON cannot hold.
    #[test]
    fn any_rows_are_judged(values in prop::collection::vec((any::<Option<u64>>(), any::<Option<f64>>(), 0_u64..3), 0..80)) {
        let rows: Vec<Second> = (0..).zip(values).map(|(at_s, (rss, ms, sessions_open))| Second {
            at_s,
            phase: Phase::Measured,
            sessions_open,
            target_rss_bytes: rss,
            newest_p95_ms: ms,
            ..Second::default()
        }).collect();
        for gate in gates(&rows) {
            prop_assert!(gate.observed.is_none_or(f64::is_finite) && gate.threshold.is_finite());
        }
    }
}
