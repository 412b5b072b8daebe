//! What a user can choose of workload `voice`. The test decides what the rest means, so a flag that the test does not use
//! is refused.

use plimsoll_workload::{Choice, Fit, Kind, Parameter, Usual};

use crate::marks::BLOCK_MS;
use crate::stages::USUAL;

const TESTS: [Choice; 10] = [
    Choice::new("talk", "Callers who stay; the load is callers"),
    Choice::new(
        "calls",
        "Callers who arrive, talk for a while and hang up; the load is calls per second",
    ),
    Choice::new(
        "breaking",
        "Callers who stay; a search goes on beyond the load line until the server collapses; the load is callers",
    ),
    Choice::new(
        "spike",
        "Five times as many callers for 10 s; the load is callers before and after",
    ),
    Choice::new(
        "stages",
        "A trial for each stage of a list, see --stages; the list has the loads",
    ),
    Choice::new(
        "faults",
        "Callers while a provider fails, see --fault; the load is callers",
    ),
    Choice::new(
        "mixed",
        "Callers and REST clients who arrive; the load is arrivals per second",
    ),
    Choice::new(
        "speak",
        "POST /speak on connections that stay open; the load is requests per second",
    ),
    Choice::new(
        "rest",
        "The same with GET /, which asks no provider, so it says nothing about conversations",
    ),
    Choice::new(
        "slow",
        "Callers of whom one in ten reads 8 KiB/s; the load is callers, and the gates are of the others",
    ),
];

const SILENCE: [Choice; 2] = [
    Choice::new("send", "Audio all the time, silence too"),
    Choice::new("skip", "Nothing between utterances"),
];

const STT: [Choice; 1] = [Choice::new("deepgram", "Like Deepgram's, over a WebSocket")];
const TTS: [Choice; 4] = [
    Choice::new("deepgram", "Like Deepgram's"),
    Choice::new("cartesia", "Like Cartesia's"),
    Choice::new("elevenlabs", "Like ElevenLabs'"),
    Choice::new("openai", "Like OpenAI's"),
];

const LATENCIES: [Choice; 3] = [
    Choice::new("usual", "Close to what these providers take"),
    Choice::new("slow", "Five times as long"),
    Choice::new("zero", "They take no time"),
];

const FAULTS: [Choice; 9] = [
    Choice::new("tts-refuse", "Text-to-speech is down for 10 s: 503"),
    Choice::new("tts-hang", "Text-to-speech does not answer for 10 s"),
    Choice::new(
        "tts-slow",
        "Text-to-speech takes five times as long for 10 s",
    ),
    Choice::new("stt-refuse", "Speech-to-text is down for 10 s"),
    Choice::new("stt-hang", "Speech-to-text does not answer for 10 s"),
    Choice::new(
        "stt-slow",
        "Speech-to-text takes five times as long for 10 s",
    ),
    Choice::new("production", "Rare faults of all kinds, as in production"),
    Choice::new("stress", "Frequent faults of all kinds"),
    Choice::new(
        "restart",
        "The gateway is killed in the middle of the window and started again; callers return over 5 s",
    ),
];

/// Which tests a parameter is for.
const fn of_tests(among: &'static [&'static str]) -> Fit {
    Fit { of: "test", among }
}

/// The rows, each after those that it depends on.
pub(crate) const PARAMETERS: [Parameter; 11] = [
    Parameter {
        value_name: "TEST",
        usual: Usual::Value("talk"),
        ..Parameter::new(
            "test",
            Kind::OneOf(&TESTS),
            "Test to run; it decides what --sessions counts",
        )
    },
    Parameter {
        usual: Usual::Value("100"),
        ..Parameter::new(
            "chunk_ms",
            Kind::Whole {
                least: BLOCK_MS,
                most: 1_000,
            },
            "Milliseconds of audio that one message carries, a multiple of 20",
        )
    },
    Parameter {
        usual: Usual::Value("send"),
        ..Parameter::new(
            "silence",
            Kind::OneOf(&SILENCE),
            "What callers send while they say nothing",
        )
    },
    Parameter {
        usual: Usual::Value("deepgram"),
        ..Parameter::new("stt_provider", Kind::OneOf(&STT), "Who recognises speech")
    },
    Parameter {
        usual: Usual::Value("deepgram"),
        ..Parameter::new("tts_provider", Kind::OneOf(&TTS), "Who speaks")
    },
    Parameter {
        usual: Usual::Value("usual"),
        ..Parameter::new(
            "provider_latency",
            Kind::OneOf(&LATENCIES),
            "How long the mock providers take",
        )
    },
    Parameter {
        usual: Usual::Value("30"),
        fits: &[of_tests(&["calls", "mixed"])],
        ..Parameter::new(
            "call_s",
            Kind::Whole {
                least: 10,
                most: 3_600,
            },
            "Seconds that a call lasts",
        )
    },
    Parameter {
        fits: &[of_tests(&["calls", "mixed", "speak", "rest"])],
        ..Parameter::new(
            "poisson",
            Kind::Flag,
            "Arrivals as a Poisson process instead of evenly spaced",
        )
    },
    Parameter {
        value_name: "LIST",
        usual: Usual::Value(USUAL),
        fits: &[of_tests(&["stages"])],
        ..Parameter::new(
            "stages",
            Kind::Text,
            "Callers x seconds of each stage; or public: 10x30, then 100, 500, 1000, 2000, 5000 and 10000 callers for 60 s",
        )
    },
    Parameter {
        usual: Usual::Value("tts-refuse"),
        fits: &[of_tests(&["faults"])],
        ..Parameter::new(
            "fault",
            Kind::OneOf(&FAULTS),
            "What fails, a third into the measured window; a restart is in its middle",
        )
    },
    Parameter {
        fits: &[of_tests(&["talk", "calls", "breaking", "stages"])],
        only_running: true,
        ..Parameter::new(
            "real_providers",
            Kind::Flag,
            "The server asks real providers: its gates are end to end, because nothing says how long they took",
        )
    },
];
