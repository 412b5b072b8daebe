//! What a caller costs the mocks: `cargo bench -p plimsoll-providers [-- CALLERS...]`
//!
//! The real program runs as a child process. A thread of this one plays callers and gateway at once: each caller has a session of
//! speech recognition with 100 ms of audio in a message, and a connection on which it asks for a reply in each turn, by the script
//! of workload `voice`. The CPU time of the child, read from `/proc/PID/schedstat` (nanoseconds), over callers and seconds is the
//! figure. `PLIMSOLL_PROVIDERS_BIN` names another build of the program. Replies are read to their end: nobody interrupts, so this is more than a trial asks.

use std::error::Error;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use plimsoll_workload_voice::script::Script;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::connect_async_with_config;
use tokio_tungstenite::tungstenite::Message;

type AnyError = Box<dyn Error + Send + Sync>;

/// A turn takes 8 s, so this is until every caller has begun one, and two whole ones.
const WARM_UP: Duration = Duration::from_secs(9);
const MEASURED: Duration = Duration::from_secs(16);
/// Blocks of a message: 100 ms.
const CHUNK_BLOCKS: u32 = 5;

fn main() -> Result<(), AnyError> {
    let mut all: Vec<u32> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
        .collect();
    if all.is_empty() {
        all = vec![50, 200];
    }
    for callers in all {
        for chunk_ms in ["20", "40"] {
            measure(callers, chunk_ms)?;
        }
    }
    Ok(())
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(chunk_ms: &str) -> Result<Self, AnyError> {
        let program = std::env::var("PLIMSOLL_PROVIDERS_BIN");
        let program =
            program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_plimsoll-providers").to_owned());
        let mut child = Command::new(program)
            .env_clear()
            .env("PORT", "0")
            .env("TTS_CHUNK_MS", chunk_ms)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        let line: serde_json::Value = serde_json::from_str(&line)?;
        let address = line["address"]
            .as_str()
            .ok_or("no address in the start line")?;
        let address = address.to_owned();
        Ok(Self { child, address })
    }

    /// CPU time of its one thread so far.
    fn cpu(&self) -> Result<Duration, AnyError> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        let ns = text.split_whitespace().next().ok_or("an empty schedstat")?;
        Ok(Duration::from_nanos(ns.parse()?))
    }

    fn ask(&self, method: &str, path: &str) -> Result<String, AnyError> {
        let mut stream = std::net::TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: mock\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
        Ok(body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure(callers: u32, chunk_ms: &str) -> Result<(), AnyError> {
    let server = Server::start(chunk_ms)?;
    let address = server.address.clone();
    let driver = std::thread::spawn(move || drive(&address, callers));
    std::thread::sleep(WARM_UP);
    server.ask("POST", "/stats/reset")?;
    let before = server.cpu()?;
    std::thread::sleep(MEASURED);
    let cpu = server.cpu()? - before;
    let stats: serde_json::Value = serde_json::from_str(&server.ask("GET", "/stats")?)?;
    driver.join().map_err(|_| "the driver panicked")??;
    println!(
        "{callers:5} callers, {chunk_ms} ms in a chunk: {:6.1} µs of CPU for a caller's second, busy {:4.1} %, {} requests, {} KiB of audio, lateness p50 {} µs p99 {} µs",
        cpu.as_secs_f64() * 1e6 / f64::from(callers) / MEASURED.as_secs_f64(),
        stats["busy_us"].as_f64().unwrap_or_default()
            / stats["window_us"].as_f64().unwrap_or(f64::NAN)
            * 100.0,
        stats["requests"],
        stats["audio_bytes"].as_u64().unwrap_or_default() >> 10,
        stats["lateness"]["p50_us"],
        stats["lateness"]["p99_us"],
    );
    Ok(())
}

fn drive(address: &str, callers: u32) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (began, mut tasks) = (Instant::now(), JoinSet::new());
        let until = began + WARM_UP + MEASURED + Duration::from_secs(1);
        for vu in 0..callers {
            // Their messages do not come at the same moment.
            let began = began + Duration::from_millis(100) * vu / callers;
            tasks.spawn(speak(address.to_owned(), vu, began, until));
            tasks.spawn(listen(address.to_owned(), vu, began, until));
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    })
}

/// Sends a caller's audio, and takes the results.
async fn listen(address: String, vu: u32, began: Instant, until: Instant) -> Result<(), AnyError> {
    let url = format!(
        "ws://{address}/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true&model=nova-3&language=en-US&punctuate=true"
    );
    let (mut session, _) = connect_async_with_config(url, None, true).await?;
    let script = Script::new(7, vu, CHUNK_BLOCKS);
    for chunk in 0.. {
        let due = began + Duration::from_nanos(script.chunk_due_ns(chunk));
        if due >= until {
            break;
        }
        sleep_until(due).await;
        let mut audio = Vec::new();
        for block in script.blocks_of(chunk) {
            script.mark(block).append_block(&mut audio);
        }
        session.send(Message::binary(audio)).await?;
        while let Some(Some(message)) = session.next().now_or_never() {
            message?;
        }
    }
    Ok(())
}

/// Asks for the replies, one after the other on one connection.
async fn speak(address: String, vu: u32, began: Instant, until: Instant) -> Result<(), AnyError> {
    const END: &[u8] = b"\r\n0\r\n\r\n";
    let mut stream = TcpStream::connect(&address).await?;
    stream.set_nodelay(true)?;
    let script = Script::new(7, vu, CHUNK_BLOCKS);
    let mut answer = Vec::new();
    for number in 0.. {
        let turn = script.turn(number);
        let due = began + Duration::from_nanos(turn.speak_ns);
        if due >= until {
            break;
        }
        sleep_until(due).await;
        let body = serde_json::json!({"text": script.text(&turn)}).to_string();
        let head = format!(
            "POST /v1/speak?model=aura-2&encoding=linear16&sample_rate=24000 HTTP/1.1\r\nHost: mock\r\nAuthorization: Token key\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
        answer.clear();
        while !answer.ends_with(END) {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err("a reply ended early".into());
            }
        }
    }
    Ok(())
}
