//! Schedules: closed forms, draws and bursts.

use proptest::prelude::*;

use super::*;

/// Ramp until 1 s, warm-up until 2 s, window until 4 s.
fn profile() -> Profile {
    Profile {
        ramp_s: 1.0,
        warm_up_s: 1.0,
        measured_s: 2.0,
        ..Profile::quick()
    }
}

fn load(rate: u32, writers: u32) -> Load {
    Load {
        rate,
        writers,
        spacing: Spacing::Even,
        bursts: None,
        closed: None,
    }
}

fn of_writer(load: Load, writer: u32) -> Vec<Due> {
    let mut schedule = Schedule::new(load, writer, &profile(), 7);
    std::iter::from_fn(|| schedule.take()).collect()
}

/// When all messages of all writers are due, in order.
fn together(load: Load) -> Vec<u64> {
    let of = |writer| of_writer(load, writer).into_iter().map(|due| due.at_ns);
    let mut all: Vec<u64> = (0..load.writers).flat_map(of).collect();
    all.sort_unstable();
    all
}

#[test]
fn an_even_schedule_is_the_closed_form() {
    let at_ms = |writer| -> Vec<u64> {
        let due = of_writer(load(4, 2), writer);
        assert!(
            due.iter()
                .all(|due| due.measured == (due.at_ns >= 2 * NS_PER_S))
        );
        assert!(due.iter().map(|due| due.number).eq(0..6));
        due.iter().map(|due| due.at_ns / NS_PER_MS).collect()
    };
    assert_eq!(at_ms(0), [1000, 1500, 2000, 2500, 3000, 3500]);
    assert_eq!(at_ms(1), [1250, 1750, 2250, 2750, 3250, 3750]);
}

/// Fault of other benchmarks: the schedule is re-based after a stall.
#[test]
fn a_writer_that_was_late_finds_its_messages_where_they_were() {
    let mut late = Schedule::new(load(1_000, 1), 0, &profile(), 7);
    while late.peek().is_some_and(|due| due.at_ns < 2 * NS_PER_S) {
        late.take();
    }
    // 500 ms pass without a look.
    assert_eq!(late.measured_before(2_500 * NS_PER_MS), 500);
    let next = late.take().unwrap();
    assert_eq!((next.number, next.at_ns), (1_000, 2 * NS_PER_S));
}

#[test]
fn bursts_keep_the_mean_rate() {
    let bursts = Bursts::new(100, 400).unwrap();
    let due = together(Load {
        bursts: Some(bursts),
        ..load(1_000, 3)
    });
    assert_eq!(due.len(), 3_000);
    let mut of_period = [0; 6];
    for at_ns in due {
        let since_ns = at_ns - NS_PER_S;
        assert!(since_ns % bursts.period_ns() < 100 * NS_PER_MS);
        of_period[usize::try_from(since_ns / bursts.period_ns()).unwrap()] += 1;
    }
    assert_eq!(of_period, [500; 6]);
}

#[test]
fn bursts_are_read_and_shown() {
    let bursts: Bursts = "100:900".parse().unwrap();
    assert_eq!(Some(bursts), Bursts::new(100, 900));
    assert_eq!(
        (bursts.to_string().as_str(), bursts.period_ns()),
        ("100:900", NS_PER_S)
    );
    for wrong in [
        "", "100", "0:100", "100:0", "60001:1", "-1:5", "a:b", "1:2:3", "1.5:2",
    ] {
        assert_eq!(wrong.parse::<Bursts>(), Err(NotBursts), "{wrong}");
    }
}

#[test]
fn poisson_gaps_are_as_irregular_as_they_should_be() {
    for writers in [1, 4] {
        let due = together(Load {
            spacing: Spacing::Poisson,
            ..load(10_000, writers)
        });
        // 30,000 are expected, with a standard deviation of 173.
        assert!((29_300..30_700).contains(&due.len()), "{}", due.len());
        let gaps: Vec<f64> = due
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // An exponential distribution's standard deviation is its mean.
        let ratio = variance.sqrt() / mean;
        assert!((0.95..1.05).contains(&ratio), "{writers} writers: {ratio}");
    }
}

#[test]
fn writers_and_seeds_draw_differently() {
    let first = |writer, seed| {
        let load = Load {
            spacing: Spacing::Poisson,
            ..load(100, 2)
        };
        Schedule::new(load, writer, &profile(), seed).peek()
    };
    assert_eq!(first(0, 1), first(0, 1));
    assert_ne!(first(0, 1), first(1, 1));
    assert_ne!(first(0, 1), first(0, 2));
}

fn loads() -> impl Strategy<Value = Load> {
    let bursts = prop::option::of((1_u32..500, 1_u32..500));
    (1_u32..3_000, 1_u32..9, any::<bool>(), bursts).prop_map(|(rate, writers, poisson, bursts)| {
        Load {
            rate,
            writers,
            spacing: if poisson {
                Spacing::Poisson
            } else {
                Spacing::Even
            },
            bursts: bursts.and_then(|(on, off)| Bursts::new(on, off)),
            closed: None,
        }
    })
}

proptest! {
    #[test]
    fn numbers_follow_each_other_and_times_never_fall(load in loads()) {
        for writer in 0..load.writers {
            let due = of_writer(load, writer);
            prop_assert!(due.iter().map(|due| due.number).eq(0..due.len() as u64));
            prop_assert!(due.is_sorted_by_key(|due| due.at_ns));
            let window = profile().window();
            prop_assert!(due.iter().all(|due| due.measured == window.contains(due.at_ns)));
            prop_assert!(due.iter().all(|due| (profile().ramp_end_ns()..window.end_ns).contains(&due.at_ns)));
            prop_assert_eq!(Schedule::new(load, writer, &profile(), 7).numbers(), 0..due.len() as u64);
        }
    }

    /// However many writers there are, together they have the same messages at the same times.
    #[test]
    fn writers_divide_the_trial(rate in 1_u32..3_000, writers in 1_u32..9) {
        prop_assert_eq!(together(load(rate, writers)), together(load(rate, 1)));
    }

    #[test]
    fn what_is_left_is_counted(load in loads(), taken in 0_usize..400, before_ms in 0_u64..5_000) {
        let mut schedule = Schedule::new(load, 0, &profile(), 7);
        for _ in 0..taken {
            schedule.take();
        }
        let counted = of_writer(load, 0).iter().skip(taken)
            .filter(|due| due.measured && due.at_ns < before_ms * NS_PER_MS).count() as u64;
        prop_assert_eq!(schedule.measured_before(before_ms * NS_PER_MS), counted);
    }
}

#[test]
fn a_flood_lasts_as_long_as_the_window_and_owes_nothing() {
    let flood = Load {
        closed: Some(Closed::Flood),
        ..load(1, 2)
    };
    let mut schedule = Schedule::new(flood, 1, &profile(), 7);
    let window = profile().window();
    assert_eq!(schedule.peek().unwrap().at_ns, window.start_ns);
    for number in 0..10_000 {
        schedule.look(window.end_ns - 1);
        let due = schedule.take_at(window.start_ns + number).unwrap();
        let expected = Due {
            number,
            at_ns: window.start_ns + number,
            measured: true,
        };
        assert_eq!(due, expected);
    }
    assert_eq!(schedule.measured_before(window.end_ns), 0);
    schedule.look(window.end_ns);
    assert_eq!(
        (schedule.peek(), schedule.take_at(window.end_ns)),
        (None, None)
    );
}

#[test]
fn a_preload_is_divided_among_the_writers() {
    let preload = Load {
        closed: Some(Closed::Preload(11)),
        ..load(1, 3)
    };
    let of = |writer| {
        let mut schedule = Schedule::new(preload, writer, &profile(), 7);
        assert_eq!(schedule.numbers().end, schedule.measured_before(0));
        // Its end is its last message, not the window's.
        schedule.look(u64::MAX);
        std::iter::from_fn(|| schedule.take_at(5)).count()
    };
    assert_eq!([of(0), of(1), of(2)], [4, 4, 3]);
}
