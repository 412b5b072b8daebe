//! What a batch costs the simulator: `cargo bench -p plimsoll-inference [-- BATCHES_PER_SECOND...]`
//!
//! The real program runs as a child process and is driven over HTTP/2 at a fixed rate by a thread of this one, with
//! batches of one second of audio at 4 passes. Its CPU time, read from `/proc/PID/schedstat` (nanoseconds), over the
//! batches answered is the figure. Also measured: the checksum alone, plain and interleaved.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_workload_stt::reference::{LANES, Scratch, checksum, checksums_interleaved};
use plimsoll_workload_stt::synthetic::Synthetic;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};

type AnyError = Box<dyn Error + Send + Sync>;

const PASSES: u32 = 4;
const FRAMES: u64 = 50;
const CONNECTIONS: usize = 4;
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(6);

fn main() -> Result<(), AnyError> {
    let mut rates: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
        .collect();
    if rates.is_empty() {
        rates = vec![100, 1000, 4000];
    }
    checksum_alone();
    for rate in rates {
        over_http(rate)?;
    }
    Ok(())
}

/// ns per sample and pass, the best of some rounds: what the code can do, not what the machine was busy with.
fn checksum_alone() {
    let synthetic = Synthetic::new();
    let batches: Vec<Vec<u8>> = (0..LANES as u64)
        .map(|session| synthetic.batch(session, 1, 49 + session % 3))
        .collect();
    let mut scratch = Scratch::new();
    let steps = |batches: &[Vec<u8>]| {
        batches.iter().map(|pcm| pcm.len() / 2).sum::<usize>() * PASSES as usize
    };
    let best = |run: &mut dyn FnMut()| {
        (0..50)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed()
            })
            .min()
            .unwrap_or_default()
    };
    let report = |name: &str, time: Duration, batches: &[Vec<u8>]| {
        let per_step = time.as_secs_f64() * 1e9 / steps(batches) as f64;
        let per_batch = time.as_secs_f64() * 1e6 / batches.len() as f64;
        println!("checksum {name:24} {per_step:6.3} ns/sample and pass, {per_batch:6.1} µs/batch");
    };
    let time = best(&mut || {
        for pcm in &batches {
            black_box(checksum(black_box(pcm), PASSES));
        }
    });
    report("plain", time, &batches);
    for lanes in [2, 4, FEW, LANES] {
        let borrowed: Vec<(&[u8], u32)> = batches[..lanes]
            .iter()
            .map(|pcm| (&pcm[..], PASSES))
            .collect();
        let time = best(&mut || {
            black_box(checksums_interleaved(black_box(&borrowed), &mut scratch));
        });
        report(
            &format!("interleaved, {lanes} batches"),
            time,
            &batches[..lanes],
        );
    }
}

/// A half-full set of lanes.
const FEW: usize = LANES / 2;

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Result<Self, AnyError> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll-inference"))
            .env_clear()
            .env("PORT", "0")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        let line: serde_json::Value = serde_json::from_str(&line)?;
        let address = line["address"]
            .as_str()
            .ok_or("no address in the start line")?
            .to_owned();
        Ok(Self { child, address })
    }

    /// CPU time of its one thread so far.
    fn cpu(&self) -> Result<Duration, AnyError> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        Ok(Duration::from_nanos(
            text.split_whitespace()
                .next()
                .ok_or("an empty schedstat")?
                .parse()?,
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn over_http(rate: u64) -> Result<(), AnyError> {
    let server = Server::start()?;
    let address = server.address.clone();
    let seconds = (WARM_UP + MEASURED).as_secs();
    // The driver has a thread of its own; this one only looks at the clocks.
    let driver = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(drive(address, rate, rate * seconds))
    });
    std::thread::sleep(WARM_UP);
    let (cpu, requests) = (
        server.cpu()?,
        stats(&server.address)?["requests"]
            .as_u64()
            .ok_or("no count")?,
    );
    std::thread::sleep(MEASURED - Duration::from_millis(500));
    let last = stats(&server.address)?;
    let cpu = server.cpu()? - cpu;
    let batches = last["requests"].as_u64().ok_or("no count")? - requests;
    driver.join().map_err(|_| "the driver panicked")??;
    println!(
        "server at {rate:5} batches/s: {:6.1} µs CPU/batch ({batches} batches), busy {:4.1} %, answer lateness p50 {} µs p99 {} µs",
        cpu.as_secs_f64() * 1e6 / batches as f64,
        last["busy_us"].as_f64().unwrap_or_default()
            / last["window_us"].as_f64().unwrap_or(f64::NAN)
            * 100.0,
        last["answer_lateness"]["p50_us"],
        last["answer_lateness"]["p99_us"],
    );
    Ok(())
}

async fn connect(address: &str) -> Result<http2::SendRequest<Full<Bytes>>, AnyError> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Sends `count` batches, evenly at `rate` a second, and waits for all answers.
async fn drive(address: String, rate: u64, count: u64) -> Result<(), AnyError> {
    let mut senders = Vec::new();
    for _ in 0..CONNECTIONS {
        senders.push(connect(&address).await?);
    }
    let pcm = Bytes::from(Synthetic::new().batch(1, 1, FRAMES));
    let mut answers = tokio::task::JoinSet::new();
    let mut ticks = interval(Duration::from_secs(1) / u32::try_from(rate)?);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0..count {
        ticks.tick().await;
        let mut sender = senders[number as usize % CONNECTIONS].clone();
        let request = Request::post("http://simulator/infer")
            .header("content-type", "application/octet-stream")
            .header("x-cpu-passes", PASSES)
            .body(Full::new(pcm.clone()))?;
        answers.spawn(async move {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            answer.into_body().collect().await?;
            if status.is_success() {
                Ok::<(), AnyError>(())
            } else {
                Err(format!("answered {status}").into())
            }
        });
        while let Some(answer) = answers.try_join_next() {
            answer??;
        }
    }
    while let Some(answer) = answers.join_next().await {
        answer??;
    }
    Ok(())
}

fn stats(address: &str) -> Result<serde_json::Value, AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut sender = connect(address).await?;
        let answer = sender
            .send_request(Request::get("http://simulator/stats").body(Full::default())?)
            .await?;
        Ok(serde_json::from_slice(
            &answer.into_body().collect().await?.to_bytes(),
        )?)
    })
}
