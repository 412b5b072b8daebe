//! The settings of the mock providers.

use std::net::{IpAddr, Ipv4Addr};

use plimsoll_mock_server::settings::Setting;
use plimsoll_workload_voice::marks::BLOCK_MS;
use serde::Serialize;

use crate::profile::Profile;

/// Valid settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// The address to listen at.
    pub bind: IpAddr,
    /// The port to listen at; 0 takes a free one.
    pub port: u16,
    /// The seed of all draws.
    pub seed: u64,
    /// How long providers take.
    pub profile: Profile,
    /// Whether replies come as fast as they are played; otherwise at once.
    pub paced: bool,
    /// Audio in a chunk of such a reply, in ms: what is not due yet may come so much less 20 ms too early.
    pub chunk_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 9100,
            seed: 1,
            profile: Profile::Usual,
            paced: true,
            chunk_ms: BLOCK_MS,
        }
    }
}

/// All settings.
pub const SETTINGS: [Setting<Config>; 6] = [
    Setting {
        variable: "BIND",
        default: "127.0.0.1",
        expected: "an IP address",
        meaning: "address to listen at",
        set: |config, text| text.parse().map(|bind| config.bind = bind).ok(),
    },
    Setting {
        variable: "PORT",
        default: "9100",
        expected: "a port from 0 to 65535 (0: any free one)",
        meaning: "port to listen at",
        set: |config, text| text.parse().map(|port| config.port = port).ok(),
    },
    Setting {
        variable: "SEED",
        default: "1",
        expected: "a whole number",
        meaning: "seed of all latencies and faults",
        set: |config, text| text.parse().map(|seed| config.seed = seed).ok(),
    },
    Setting {
        variable: "PROFILE",
        default: "usual",
        expected: "usual, slow or zero",
        meaning: "how long providers take",
        set: |config, text| Profile::by_name(text).map(|profile| config.profile = profile),
    },
    Setting {
        variable: "TTS_PACE",
        default: "1",
        expected: "1 (as fast as it is played) or 0 (at once)",
        meaning: "how fast replies come",
        set: |config, text| {
            config.paced = match text {
                "1" => true,
                "0" => false,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        variable: "TTS_CHUNK_MS",
        default: "20",
        expected: "20 or 40",
        meaning: "audio in a chunk of a reply",
        set: |config, text| {
            let chunk_ms = text.parse().ok()?;
            config.chunk_ms = chunk_ms;
            matches!(chunk_ms, 20 | 40).then_some(())
        },
    },
];

#[cfg(test)]
mod tests {
    use plimsoll_mock_server::settings::{self, Command, SettingError, help};

    use super::*;

    fn of(
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Command<Config>, SettingError> {
        settings::parse(
            &SETTINGS,
            arguments.iter().map(|text| (*text).to_owned()),
            |name| {
                let found = environment.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            },
        )
    }

    #[test]
    fn a_flag_wins_over_its_variable() {
        let environment = [
            ("PORT", "1"),
            ("SEED", "7"),
            ("PROFILE", ""),
            ("TTS_PACE", "0"),
        ];
        let expected = Config {
            port: 0,
            seed: 7,
            paced: false,
            ..Config::default()
        };
        assert_eq!(
            of(&["--port", "0"], &environment),
            Ok(Command::Run(expected))
        );
        assert_eq!(of(&[], &[]), Ok(Command::Run(Config::default())));
    }

    #[test]
    fn bad_values_are_one_line_that_names_the_setting() {
        for (name, value) in [
            ("PORT", "65536"),
            ("BIND", "localhost"),
            ("SEED", "-1"),
            ("PROFILE", "slow\n"),
            ("TTS_PACE", "2"),
            ("TTS_CHUNK_MS", "30"),
        ] {
            let told = of(&[], &[(name, value)]).expect_err(value).to_string();
            assert!(
                told.starts_with(&format!("{name}=")) && !told.contains('\n'),
                "{told}"
            );
        }
        let unknown = SettingError::UnknownFlag("--speed".to_owned());
        assert_eq!(of(&["--speed", "1"], &[]), Err(unknown));
        assert_eq!(
            of(&["--port"], &[]),
            Err(SettingError::NoValue("--port".to_owned()))
        );
    }

    #[test]
    fn help_names_the_defaults_that_hold() {
        for setting in &SETTINGS {
            let given = of(&[&setting.flag(), setting.default], &[]);
            assert_eq!(given, Ok(Command::Run(Config::default())));
            assert!(help(&SETTINGS).contains(setting.default));
        }
    }

    #[test]
    fn help_names_every_setting() {
        assert_eq!(of(&["-h"], &[]), Ok(Command::Help));
        assert!(
            SETTINGS
                .iter()
                .all(|setting| help(&SETTINGS).contains(&setting.flag()))
        );
    }
}
