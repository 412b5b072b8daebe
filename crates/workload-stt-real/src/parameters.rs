//! What a user can choose of workload `stt-real`.

use plimsoll_workload::{Choice, Kind, Parameter, Usual};

const DIALECTS: [Choice; 9] = [
    Choice::new("deepgram", "Deepgram and servers compatible with it"),
    Choice::new("whisperlive", "WhisperLive"),
    Choice::new("wyoming", "Wyoming, over TCP; the load is lanes of turns"),
    Choice::new("vosk", "The Vosk server"),
    Choice::new("openai-realtime", "OpenAI Realtime, transcription"),
    Choice::new("vllm-realtime", "vLLM's realtime transcription"),
    Choice::new("speechmatics", "Speechmatics"),
    Choice::new("assemblyai", "AssemblyAI"),
    Choice::new("moshi", "moshi-server"),
];

const USE_CASES: [Choice; 2] = [
    Choice::new("captions", "Someone reads along"),
    Choice::new("agent", "A program answers: stricter gates"),
];

const TURNS: [Choice; 2] = [
    Choice::new("server", "Its endpointing"),
    Choice::new("client", "A flush after each utterance"),
];

const FRAMES: [Choice; 4] = [
    Choice::new("20", "50 messages a second"),
    Choice::new("40", "25 messages a second"),
    Choice::new("80", "12.5 messages a second"),
    Choice::new("100", "10 messages a second"),
];

/// The rows, each after those that it depends on.
pub(crate) const PARAMETERS: [Parameter; 10] = [
    Parameter {
        value_name: "DIALECT",
        usual: Usual::Value("deepgram"),
        of_target: Some("speaks"),
        ..Parameter::new(
            "dialect",
            Kind::OneOfOrFile(&DIALECTS),
            "What the server speaks; or a file NAME.toml that says it, see docs/stt-real/template.md. Implies --workload stt-real",
        )
    },
    Parameter {
        usual: Usual::Value("captions"),
        ..Parameter::new("use_case", Kind::OneOf(&USE_CASES), "Whose gates apply")
    },
    Parameter {
        value_name: "NAME",
        of_target: Some("serves"),
        ..Parameter::new("model", Kind::Text, "The model, as the server names it")
    },
    Parameter {
        value_name: "NAME",
        usual: Usual::Value("en"),
        of_target: Some("hears"),
        ..Parameter::new(
            "language",
            Kind::Text,
            "The language, as the server names it",
        )
    },
    Parameter {
        usual: Usual::Value("server"),
        ..Parameter::new(
            "turns",
            Kind::OneOf(&TURNS),
            "Who decides that speech ended",
        )
    },
    Parameter {
        usual: Usual::Told("the dialect's, 40, 80 or 100"),
        ..Parameter::new(
            "frame_ms",
            Kind::OneOf(&FRAMES),
            "Milliseconds of audio in one message",
        )
    },
    Parameter {
        value_name: "NAME=VALUE",
        ..Parameter::new(
            "param",
            Kind::Fields,
            "A field of the URL's query or of the opening message (a.b=VALUE for a field within a field). Repeatable",
        )
    },
    Parameter {
        value_name: "KEY",
        ..Parameter::new(
            "key",
            Kind::Secret,
            "The key of the account; it goes where the dialect has it",
        )
    },
    Parameter {
        value_name: "DIR",
        usual: Usual::Told("eight built-in clips"),
        ..Parameter::new(
            "corpus",
            Kind::File,
            "Folder of recordings: NAME.wav (16 kHz, mono, 16 bit) with its words in NAME.txt",
        )
    },
    Parameter {
        only_running: true,
        ..Parameter::new(
            "mine",
            Kind::Flag,
            "The server is yours. Without it, a public host gets at most 3 sessions and 5 minutes of audio",
        )
    },
];

#[cfg(test)]
mod tests {
    use super::DIALECTS;
    use crate::dialect::NAMES;

    #[test]
    fn each_dialect_can_be_chosen() {
        assert_eq!(DIALECTS.map(|choice| choice.name), NAMES);
    }
}
