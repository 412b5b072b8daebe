//! Measures what the sampling of resources costs:
//! `cargo run --release -p plimsoll-host --example sampling-cost -- [CONNECTIONS] [THREADS]`.
//!
//! A process with that many loopback connections and idle threads is sampled three times over, as target, simulator and
//! client, for ten seconds: first without its sockets, then with them. Prints the sampling thread's CPU time as a share
//! of one core.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use plimsoll_host::resources::{DEFAULT_INTERVAL, Monitor, Sampler, SocketWatch, Source, Watched};

const SAMPLED_FOR: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let connections = numbers.next().unwrap_or(Ok(1000))?;
    let threads = numbers.next().unwrap_or(Ok(4))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push((TcpStream::connect(address)?, listener.accept()?.0));
    }
    let idle: Vec<_> = (0..threads).map(|_| idle_thread()).collect();
    for watch in [None, Some(SocketWatch::new(address))] {
        let what = if watch.is_some() { "with" } else { "without" };
        let epoch = Instant::now();
        let sampler = |name: &str| (name.to_owned(), Sampler::new(Source::ourselves(), epoch));
        let watched = Watched {
            samplers: ["target", "simulator", "client"].map(sampler).into(),
            sockets: watch,
        };
        let monitor = Monitor::start(watched, epoch, DEFAULT_INTERVAL, None)?;
        std::thread::sleep(SAMPLED_FOR);
        let recorded = monitor.stop()?;
        let share = Duration::from_micros(recorded.cost_cpu_us).as_secs_f64()
            / epoch.elapsed().as_secs_f64();
        println!(
            "{connections} connections, {} threads, {what} sockets: {:.2} % of a core",
            threads + 2,
            share * 100.0
        );
    }
    drop(idle);
    Ok(())
}

/// A thread that waits until the returned handle is dropped.
fn idle_thread() -> std::sync::mpsc::Sender<()> {
    let (alive, waits): (_, Receiver<()>) = channel();
    std::thread::spawn(move || waits.recv());
    alive
}
