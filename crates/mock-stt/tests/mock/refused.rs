//! Sessions that are refused, as each dialect refuses them.

use plimsoll_core::secret::Secret;
use plimsoll_mock_stt::config::Config;
use plimsoll_workload_stt_real::dialect::{Kind, Options};

use crate::client::{Client, LONG, Seen, dialect_of};
use crate::rig::{config, in_each_dialect, serve, stats};

fn refused_by(settings: Config, name: &str) -> (Seen, serde_json::Value) {
    let address = serve(settings);
    let mut client = Client::open(address, dialect_of(name, Options::default()));
    client.end();
    client.read_until(LONG, |seen| seen.drained);
    (client.seen, stats(address))
}

#[test]
fn each_refusal_is_understood() {
    in_each_dialect(|name| {
        for (fault, expected) in [
            ("401", Kind::Auth),
            ("429", Kind::Rate),
            ("capacity", Kind::Capacity),
        ] {
            let (seen, stats) = refused_by(config(name, fault), name);
            assert!(seen.closed && !seen.drained, "{name} {fault}: {seen:?}");
            let expected = match (name, expected) {
                // These say no more than that something is wrong, or nothing.
                ("wyoming" | "vosk", _) => None,
                // One code for all that an account may use.
                ("speechmatics", Kind::Rate) => Some(Kind::Quota),
                // A worker that cannot take the job does not say why.
                ("speechmatics", Kind::Capacity) => Some(Kind::Internal),
                ("assemblyai", Kind::Capacity) => Some(Kind::Rate),
                _ => Some(expected),
            };
            assert_eq!(seen.refused, expected, "{name} {fault}: {seen:?}");
            assert!(
                expected.is_some() || !seen.errors.is_empty() || seen.died.is_some(),
                "{name} {fault}: {seen:?}"
            );
            assert_eq!(stats["sessions_refused"], 1, "{name} {fault}: {stats}");
            assert_eq!(stats["sessions"], 0, "{name} {fault}: {stats}");
            assert_eq!(stats["faults"][fault], 1, "{name} {fault}: {stats}");
        }
    });
}

#[test]
fn a_wrong_key_is_refused_where_there_are_keys() {
    in_each_dialect(|name| {
        let settings = Config {
            key: Secret::new("sesame"),
            ..config(name, "none")
        };
        let (seen, stats) = refused_by(settings, name);
        let has_keys = !["wyoming", "vosk"].contains(&name);
        assert_eq!(
            seen.refused,
            has_keys.then_some(Kind::Auth),
            "{name}: {seen:?}"
        );
        assert_eq!(stats["sessions_refused"], u64::from(has_keys), "{name}");
    });
}

#[test]
fn a_full_server_takes_no_more() {
    let address = serve(Config {
        sessions_max: 2,
        ..config("deepgram", "none")
    });
    let open = || Client::open(address, dialect_of("deepgram", Options::default()));
    let (first, second, third) = (open(), open(), open());
    assert_eq!(first.seen.refused.or(second.seen.refused), None);
    assert_eq!(third.seen.refused, Some(Kind::Capacity));
    drop(first);
    plimsoll_testing::eventually("a place is free again", || open().seen.refused.is_none());
}
