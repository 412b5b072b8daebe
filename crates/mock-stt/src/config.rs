//! The settings of the mock.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use plimsoll_core::secret::Secret;
use plimsoll_mock_server::settings::Setting;
use serde::Serialize;

use crate::dialect::Known;
use crate::faults::{self, Faults};

/// Valid settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// The address to listen at.
    pub bind: IpAddr,
    /// The port to listen at; 0 takes a free one.
    pub port: u16,
    /// The seed of all draws.
    pub seed: u64,
    /// The dialect at the path `/`.
    pub dialect: &'static str,
    /// The folder of the corpus.
    pub corpus: PathBuf,
    /// From audio to its results, in ms.
    pub delay_ms: u64,
    /// From the last word to the end of its utterance, in ms of audio.
    pub endpointing_ms: u64,
    /// Between interim results, in ms of audio.
    pub interim_ms: u64,
    /// CPU time for each second of audio, in ms.
    pub cpu_ms_per_s: f64,
    /// The most sessions at once; 0 is as many as come.
    pub sessions_max: u64,
    /// From so many open sessions on, fault `wrong-words` is at work.
    pub loaded_sessions: u64,
    /// The key that clients must show; empty takes any, and none.
    pub key: Secret,
    /// The file of the certificate, for TLS.
    pub cert: Option<PathBuf>,
    /// The file of its key.
    pub cert_key: Option<PathBuf>,
    /// What goes wrong.
    pub fault: Faults,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 9200,
            seed: 1,
            dialect: "whisperlive",
            corpus: "targets/stt-real/corpus".into(),
            delay_ms: 100,
            endpointing_ms: 300,
            interim_ms: 200,
            cpu_ms_per_s: 0.0,
            sessions_max: 0,
            loaded_sessions: 4,
            key: Secret::default(),
            cert: None,
            cert_key: None,
            fault: Faults::default(),
        }
    }
}

const MILLISECONDS: &str = "milliseconds from 0 to 60000";

/// A time, up to a minute.
fn milliseconds(text: &str) -> Option<u64> {
    text.parse().ok().filter(|ms| *ms <= 60_000)
}

/// A file; empty is none.
fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
}

/// All settings.
pub const SETTINGS: [Setting<Config>; 15] = [
    Setting {
        variable: "BIND",
        default: "127.0.0.1",
        expected: "an IP address",
        meaning: "address to listen at",
        set: |config, text| text.parse().map(|bind| config.bind = bind).ok(),
    },
    Setting {
        variable: "PORT",
        default: "9200",
        expected: "a port from 0 to 65535 (0: any free one)",
        meaning: "port to listen at",
        set: |config, text| text.parse().map(|port| config.port = port).ok(),
    },
    Setting {
        variable: "SEED",
        default: "1",
        expected: "a whole number",
        meaning: "seed of all faults",
        set: |config, text| text.parse().map(|seed| config.seed = seed).ok(),
    },
    Setting {
        variable: "DIALECT",
        default: "whisperlive",
        expected: "deepgram, whisperlive, wyoming, vosk, openai-realtime, vllm-realtime, speechmatics, assemblyai or moshi",
        meaning: "dialect at the path /; the others have paths of their own, and wyoming speaks TCP",
        set: |config, text| Known::by_name(text).map(|known| config.dialect = known.name),
    },
    Setting {
        variable: "CORPUS",
        default: "targets/stt-real/corpus",
        expected: "a folder with index.json and clips/",
        meaning: "the clips that it knows",
        set: |config, text| {
            config.corpus = text.into();
            Some(())
        },
    },
    Setting {
        variable: "DELAY_MS",
        default: "100",
        expected: MILLISECONDS,
        meaning: "from audio to its results",
        set: |config, text| milliseconds(text).map(|ms| config.delay_ms = ms),
    },
    Setting {
        variable: "ENDPOINTING_MS",
        default: "300",
        expected: MILLISECONDS,
        meaning: "silence that ends an utterance",
        set: |config, text| milliseconds(text).map(|ms| config.endpointing_ms = ms),
    },
    Setting {
        variable: "INTERIM_MS",
        default: "200",
        expected: MILLISECONDS,
        meaning: "audio between two interim results",
        set: |config, text| milliseconds(text).map(|ms| config.interim_ms = ms),
    },
    Setting {
        variable: "CPU_MS_PER_S",
        default: "0",
        expected: "milliseconds from 0 to 10000",
        meaning: "CPU time for each second of audio",
        set: |config, text| {
            let ms = text.parse().ok().filter(|ms| (0.0..=1e4).contains(ms))?;
            config.cpu_ms_per_s = ms;
            Some(())
        },
    },
    Setting {
        variable: "SESSIONS_MAX",
        default: "0",
        expected: "a whole number (0: as many as come)",
        meaning: "sessions at once; more are refused",
        set: |config, text| text.parse().map(|most| config.sessions_max = most).ok(),
    },
    Setting {
        variable: "LOADED_SESSIONS",
        default: "4",
        expected: "a whole number",
        meaning: "open sessions from which on fault wrong-words is at work",
        set: |config, text| text.parse().map(|from| config.loaded_sessions = from).ok(),
    },
    Setting {
        variable: "KEY",
        default: "",
        expected: "a text (empty: any key, and none)",
        meaning: "the key that clients must show",
        set: |config, text| {
            config.key = Secret::new(text);
            Some(())
        },
    },
    Setting {
        variable: "CERT",
        default: "",
        expected: "a file of certificates in PEM, with CERT_KEY (empty: no TLS)",
        meaning: "the certificate for TLS, at the same port",
        set: |config, text| {
            config.cert = path(text);
            Some(())
        },
    },
    Setting {
        variable: "CERT_KEY",
        default: "",
        expected: "a file with its key in PEM",
        meaning: "the key of the certificate",
        set: |config, text| {
            config.cert_key = path(text);
            Some(())
        },
    },
    Setting {
        variable: "FAULT",
        default: "none",
        expected: faults::EXPECTED,
        meaning: "what goes wrong",
        set: |config, text| Faults::parse(text).map(|faults| config.fault = faults),
    },
];

#[cfg(test)]
mod tests {
    use plimsoll_mock_server::settings::{Command, help, parse};

    use super::*;
    use crate::dialect::ALL;

    fn of(flag: String, value: &str) -> Result<Command<Config>, String> {
        parse(&SETTINGS, [flag, value.to_owned()], |_| None).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_those_that_help_names() {
        for setting in &SETTINGS {
            let given = of(setting.flag(), setting.default);
            assert_eq!(given, Ok(Command::Run(Config::default())));
        }
    }

    #[test]
    fn bad_values_are_refused_in_one_line() {
        for (flag, value) in [
            ("--dialect", "whisper"),
            ("--delay-ms", "60001"),
            ("--delay-ms", "-1"),
            ("--cpu-ms-per-s", "NaN"),
            ("--fault", "slow"),
            ("--sessions-max", "many"),
        ] {
            let told = of(flag.to_owned(), value).expect_err(value);
            assert!(told.starts_with(flag) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn help_names_every_dialect() {
        let told = help(&SETTINGS);
        assert!(ALL.iter().all(|known| told.contains(known.name)));
    }

    #[test]
    fn the_key_is_never_shown() {
        let Ok(Command::Run(config)) = of("--key".to_owned(), "sesame") else {
            panic!("a key")
        };
        let shown = format!("{config:?} {}", serde_json::json!(config));
        assert!(!shown.contains("sesame"), "{shown}");
        assert_eq!(config.key.expose(), "sesame");
    }
}
