//! A mock that serves in a thread of its own, and what sessions say to it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::LazyLock;

use plimsoll_mock_stt::config::Config;
use plimsoll_mock_stt::faults::Faults;
use plimsoll_mock_stt::server::Mock;
use plimsoll_speech::clip::Clip;
use plimsoll_speech::corpus::Corpus;
use plimsoll_speech::encode;
use plimsoll_speech::plan::{AudioPlan, FrameLength, Sound, piece};
use plimsoll_speech::resample::{Rate, Resampler};
use plimsoll_workload_stt_real::dialect::{Audio, Encoding};
use serde_json::Value;

/// All dialects that the mock speaks.
pub(crate) use plimsoll_workload_stt_real::dialect::NAMES as ALL;

/// Tries all dialects side by side, for most of the time is spent waiting.
pub(crate) fn in_each_dialect(tries: impl Fn(&'static str) + Sync) {
    std::thread::scope(|scope| {
        for name in ALL {
            let tries = &tries;
            scope.spawn(move || tries(name));
        }
    });
}

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/stt-real/corpus");

/// So many clips are enough, however many were made.
const CLIPS_MAX: usize = 8;

/// The clips that all mocks of the tests know.
pub(crate) static CLIPS: LazyLock<Vec<Clip>> = LazyLock::new(|| {
    let corpus = Corpus::pinned(Path::new(CORPUS)).expect("it is in the repository");
    corpus.clips.into_iter().take(CLIPS_MAX).collect()
});

/// Settings of a test: a free port, little delay, and this fault.
pub(crate) fn config(dialect: &str, fault: &str) -> Config {
    Config {
        port: 0,
        dialect: plimsoll_mock_stt::dialect::Known::by_name(dialect)
            .expect("a dialect")
            .name,
        corpus: CORPUS.into(),
        delay_ms: 20,
        fault: Faults::parse(fault).expect("a fault"),
        ..Config::default()
    }
}

/// Serves until the tests are over.
pub(crate) fn serve(config: Config) -> SocketAddr {
    let known = plimsoll_mock_stt::corpus::Corpus::of(CLIPS.clone());
    Mock::in_a_thread(config, known).expect("it listens")
}

/// Asks over HTTP; the answer as it came.
pub(crate) fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .write_all(
            format!("{request} HTTP/1.1\r\nHost: mock\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The statistics.
pub(crate) fn stats(address: SocketAddr) -> Value {
    let answer = ask(address, "GET /stats");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("JSON")
}

/// What a session says, cut into the frames of its dialect, and its plan.
#[derive(Debug)]
pub(crate) struct Speech {
    pub(crate) plan: AudioPlan,
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Speech {
    /// About so many seconds, from this seed, with a silent second and a half at the end.
    pub(crate) fn new(audio: Audio, seconds: u64, seed: u64) -> Self {
        let ms = audio.frame_ns / 1_000_000;
        let length = FrameLength::of_ms(u32::try_from(ms).expect("short")).expect("a usual length");
        let count = seconds * 1000 / ms;
        let plan = AudioPlan::new(&CLIPS, length, count, seed);
        let silent = 1_500 / ms;
        let mut pcm = Vec::new();
        for seq in 1..=count + silent {
            match plan.sound(seq) {
                Sound::Silence => pcm.resize(pcm.len() + length.samples(), 0),
                Sound::Piece { clip, piece: at } => {
                    pcm.extend(piece(&CLIPS[clip].samples, at, length));
                }
            }
        }
        let bytes = encoded(&pcm, audio);
        let frames = bytes.chunks(audio.frame_bytes()).map(<[u8]>::to_vec);
        Self {
            plan,
            frames: frames.collect(),
        }
    }

    /// All words, in their order.
    pub(crate) fn words(&self) -> Vec<&str> {
        let said = self.plan.utterances().iter();
        said.flat_map(|said| CLIPS[said.clip].words.iter().map(String::as_str))
            .collect()
    }
}

/// Audio as the dialect wants it: the session as a whole is resampled, as a microphone would have it.
fn encoded(pcm: &[i16], audio: Audio) -> Vec<u8> {
    let resampled = match audio.rate_hz {
        8_000 => Resampler::to(Rate::Hz8000).resample(pcm),
        24_000 => Resampler::to(Rate::Hz24000).resample(pcm),
        _ => pcm.to_vec(),
    };
    match audio.encoding {
        Encoding::S16le => encode::pcm_bytes(&resampled),
        Encoding::Mulaw => encode::mu_law(&resampled),
        Encoding::F32le => encode::floats(&resampled)
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect(),
    }
}
