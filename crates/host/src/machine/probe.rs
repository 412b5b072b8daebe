//! Times the same small work before and after each trial. If a cost or an edge moves and the target did not change,
//! this shows whether the machine did.
//!
//! A probe takes about an eighth of a second, on CPUs that are otherwise idle.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::unistd::getppid;
use plimsoll_core::record::Probe;
use plimsoll_core::stats;

use crate::error::{Error, Result};
use crate::isolation::{CpuList, Placement};
use crate::resources::thread_cpu;

/// Blocks of each kind of work. The median block counts.
const BLOCKS: usize = 9;
const MULTIPLICATIONS: u32 = 100_000;
/// 8 MiB: more than a core's own caches hold.
const CELLS: usize = 1 << 21;
const READS: u32 = 20_000;
const SYSTEM_CALLS: u32 = 2_000;
const ROUND_TRIPS: usize = 300;
/// Round trips that do not count, until both threads have found their CPUs.
const ROUND_TRIPS_BEFORE: usize = 50;
const SLEEP: Duration = Duration::from_micros(500);
const SLEEPS: usize = 60;

/// Probes the target's first CPU, and the path between it and the client's first CPU.
///
/// # Errors
/// We may not use one of these CPUs.
pub fn probe(placement: &Placement) -> Result<Probe> {
    let first = |cpus: &CpuList| CpuList::new(cpus.as_slice().iter().copied().take(1).collect());
    let cpus = first(&placement.target_cpus).zip(first(&placement.client_cpus));
    let Some((target, client)) = cpus else {
        return Ok(Probe::default());
    };
    let alone = std::thread::scope(|scope| scope.spawn(|| on_one_cpu(&target)).join());
    let alone = alone.map_err(|_| panicked())??;
    Ok(Probe {
        wake_up_us: wake_up_us(&target, &client)?,
        ..alone
    })
}

fn panicked() -> Error {
    Error::Io {
        what: "probing the machine".to_owned(),
        source: std::io::Error::other("the probing thread panicked"),
    }
}

fn on_one_cpu(cpu: &CpuList) -> Result<Probe> {
    cpu.bind_this_thread()?;
    let circle = circle();
    let mut cell = 0;
    let mut product = 3u64;
    let arithmetic_ns = median_of_blocks(MULTIPLICATIONS, || {
        for _ in 0..MULTIPLICATIONS {
            product = black_box(product.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        }
    });
    let memory_ns = median_of_blocks(READS, || {
        for _ in 0..READS {
            cell = circle[cell as usize];
        }
        black_box(cell);
    });
    let system_call_ns = median_of_blocks(SYSTEM_CALLS, || {
        for _ in 0..SYSTEM_CALLS {
            black_box(getppid());
        }
    });
    let (timer_late_us, timer_cpu_us) = timer();
    Ok(Probe {
        arithmetic_ns,
        memory_ns,
        system_call_ns,
        wake_up_us: 0.0,
        timer_late_us,
        timer_cpu_us,
    })
}

/// Each cell holds the index of the next one. They form a circle through all cells that no prefetcher can foresee
/// (Sattolo's shuffle).
fn circle() -> Vec<u32> {
    let mut cells = vec![0; CELLS];
    for (cell, index) in cells.iter_mut().zip(0..) {
        *cell = index;
    }
    let mut random = 1u64;
    let mut last = CELLS;
    while last > 1 {
        last -= 1;
        // Knuth's MMIX generator. Its high bits are good enough to scatter the cells.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = (random >> 33) as usize % last;
        // Without calls, so that a dev build, too, waits for several cells at once.
        (cells[last], cells[other]) = (cells[other], cells[last]);
    }
    cells
}

/// The time of one of `steps` steps, ns: the median over blocks.
fn median_of_blocks(steps: u32, mut block: impl FnMut()) -> f64 {
    let times = (0..BLOCKS).map(|_| {
        let began = Instant::now();
        block();
        began.elapsed().as_secs_f64() * 1e9 / f64::from(steps)
    });
    median(times.collect())
}

/// How late sleeps end, and the CPU time that they take, µs: the medians.
fn timer() -> (f64, f64) {
    let mut late_us = Vec::with_capacity(SLEEPS);
    let mut cpu_us = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let (began, began_cpu) = (Instant::now(), thread_cpu());
        std::thread::sleep(SLEEP);
        let cpu = thread_cpu().saturating_sub(began_cpu);
        late_us.push((began.elapsed().saturating_sub(SLEEP)).as_secs_f64() * 1e6);
        cpu_us.push(cpu.as_secs_f64() * 1e6);
    }
    (median(late_us), median(cpu_us))
}

/// The median round trip between two threads, one on each CPU, µs.
fn wake_up_us(target: &CpuList, client: &CpuList) -> Result<f64> {
    let times = std::thread::scope(|scope| scope.spawn(|| round_trips_us(target, client)).join());
    let times = times.map_err(|_| panicked())??;
    let measured = times.into_iter().skip(ROUND_TRIPS_BEFORE);
    Ok(median(measured.collect()))
}

fn round_trips_us(target: &CpuList, client: &CpuList) -> Result<Vec<f64>> {
    client.bind_this_thread()?;
    let waker = std::thread::current();
    let (asked, answered) = (AtomicBool::new(false), AtomicBool::new(false));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let woken = scope.spawn(|| -> Result<()> {
            target.bind_this_thread()?;
            while !over.load(Ordering::Acquire) {
                if asked.swap(false, Ordering::AcqRel) {
                    answered.store(true, Ordering::Release);
                    waker.unpark();
                }
                std::thread::park();
            }
            Ok(())
        });
        let mut times = Vec::with_capacity(ROUND_TRIPS_BEFORE + ROUND_TRIPS);
        while times.len() < ROUND_TRIPS_BEFORE + ROUND_TRIPS && !woken.is_finished() {
            // Let the other thread fall asleep first: a thread that still runs is not woken.
            std::thread::sleep(Duration::from_micros(50));
            let began = Instant::now();
            asked.store(true, Ordering::Release);
            woken.thread().unpark();
            while !answered.swap(false, Ordering::AcqRel) && !woken.is_finished() {
                std::thread::park_timeout(Duration::from_secs(1));
            }
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        over.store(true, Ordering::Release);
        woken.thread().unpark();
        woken.join().map_err(|_| panicked())??;
        Ok(times)
    })
}

fn median(values: Vec<f64>) -> f64 {
    stats::median(&values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_goes_through_every_cell() {
        let circle = circle();
        let (mut cell, mut steps) = (0u32, 0usize);
        loop {
            cell = circle[cell as usize];
            steps += 1;
            if cell == 0 {
                break;
            }
        }
        assert_eq!(steps, CELLS);
    }

    #[test]
    fn medians_pass_over_what_happened_once() {
        assert_eq!(median(vec![3.0, 1.0, 900.0]).to_bits(), 3.0f64.to_bits());
        assert_eq!(median(Vec::new()).to_bits(), 0.0f64.to_bits());
    }

    #[test]
    fn a_probe_takes_what_such_work_takes_and_is_short() {
        let allowed = CpuList::allowed_to_us().expect("allowed");
        let placement = Placement::choose(1.0, &allowed, None, None).expect("possible");
        let began = Instant::now();
        let probe = probe(&placement).expect("probed");
        // Wide bounds: every machine is within them, and a mistake in a unit is not.
        assert!((0.05..100.0).contains(&probe.arithmetic_ns), "{probe:?}");
        assert!((0.5..100_000.0).contains(&probe.memory_ns), "{probe:?}");
        assert!(probe.memory_ns > probe.arithmetic_ns, "{probe:?}");
        assert!(
            (5.0..100_000.0).contains(&probe.system_call_ns),
            "{probe:?}"
        );
        assert!((0.5..50_000.0).contains(&probe.wake_up_us), "{probe:?}");
        assert!((0.1..50_000.0).contains(&probe.timer_late_us), "{probe:?}");
        assert!((0.1..5_000.0).contains(&probe.timer_cpu_us), "{probe:?}");
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    }
}
