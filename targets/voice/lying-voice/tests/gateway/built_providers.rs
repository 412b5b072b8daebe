//! A conversation with the mock providers that trials use, where they are built.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::caller::Caller;
use super::program::{Gateway, await_that};

struct Providers {
    child: Child,
    address: String,
}

impl Providers {
    fn start() -> Self {
        let program = std::env::var_os("PLIMSOLL_PROVIDERS_BIN").expect("PLIMSOLL_PROVIDERS_BIN names the program");
        let mut command = Command::new(program);
        command.env_clear().args(["--port", "0", "--tts-pace", "0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        Self { child, address: line["address"].as_str().expect("an address").to_owned() }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What they say of one provider.
    fn counts(&self, provider: &str) -> Value {
        let port = self.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
        super::program::get(port, "/stats").json()["providers"][provider].clone()
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
#[ignore = "PLIMSOLL_PROVIDERS_BIN names no program"]
fn an_honest_conversation_adds_up() {
    let providers = Providers::start();
    let gateway = Gateway::start(&providers.url(), &[]);
    let mut caller = Caller::start(&gateway, 7);
    assert!(caller.utterance(9).starts_with("#7 1-9 "));
    let reply = caller.reply(1);
    // "#7.1 hello" has ten characters, of three blocks each.
    assert_eq!(reply.blocks(), (1..=30).collect::<Vec<_>>());
    let (stt, tts) = (providers.counts("deepgram_stt"), providers.counts("deepgram_tts"));
    assert_eq!([&stt["blocks_read"], &stt["blocks_lost"], &stt["finals"], &tts["requests"]], [9, 0, 1, 1]);
    assert_eq!((&tts["completed"], &tts["bytes_out"]), (&Value::from(1), &Value::from(30 * 960)));
    assert_eq!(gateway.get("/voices").json()["elevenlabs"][0]["id"], "mock");
}

#[test]
#[ignore = "PLIMSOLL_PROVIDERS_BIN names no program"]
fn lies_to_the_providers_stand_in_their_books() {
    let providers = Providers::start();
    for (lie, count) in
        [("drop_block", "blocks_lost"), ("double_block", "blocks_doubled"), ("swap_blocks", "blocks_lost")]
    {
        let before = providers.counts("deepgram_stt")[count].as_u64().expect("a number");
        let gateway = Gateway::start(&providers.url(), &[("LIE", lie), ("LIE_EVERY", "4")]);
        Caller::start(&gateway, 7).utterance(9);
        let after = providers.counts("deepgram_stt")[count].as_u64().expect("a number");
        assert_eq!(after - before, 2, "{lie}");
    }
    let gateway = Gateway::start(&providers.url(), &[("LIE", "ask_twice"), ("LIE_EVERY", "1")]);
    Caller::start(&gateway, 8).reply(1);
    await_that(|| providers.counts("deepgram_tts")["completed"] == 2, "the second reply");
}

#[test]
#[ignore = "PLIMSOLL_PROVIDERS_BIN names no program"]
fn a_clear_is_seen_by_the_providers() {
    let providers = Providers::start();
    let gateway = Gateway::start(&providers.url(), &[("LIE", "late_replies"), ("LIE_MS", "10000")]);
    let mut caller = Caller::start(&gateway, 9);
    caller.speak(1);
    await_that(|| providers.counts("deepgram_tts")["in_flight"] == 1, "a request");
    caller.clear();
    let began = Instant::now();
    await_that(|| providers.counts("deepgram_tts")["cancelled"] == 1, "a cancelled request");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
