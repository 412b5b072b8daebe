//! The checker against the mock server: an honest one passes in every dialect, and each fault fails the case that is about
//! it, in each dialect in which a client can see it.

mod rig;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_conformance::subject::{Bench, Ended, Environment, Server};
use plimsoll_conformance::{Check as _, Options as How, Subject};
use plimsoll_core::secret::Secret;
use plimsoll_host::signals::Stop;
use plimsoll_mock_stt::config::Config;

use super::DialectSuite;
use crate::dialect::{self, Dialect, Key, KeyPlace, Message, OptionError, Options, Silence};
use rig::{
    CLIPS, IMPATIENT, QUICK, Wrong, check, config, failed, ids, in_each_dialect, options, serve,
    side_by_side, suite, url,
};

/// The cases that do not apply to a dialect where the server wants no key.
fn not_run(name: &str) -> &'static [&'static str] {
    match name {
        "deepgram" => &["broken-opening", "bad-key"],
        "whisperlive" => &["bad-key", "silence", "flush", "keep-alive"],
        "wyoming" => &[
            "bad-key",
            "final-spans",
            "final-cursor",
            "speech-covered",
            "interims",
            "silence",
            "flush",
            "keep-alive",
        ],
        "vosk" => &["bad-key", "flush", "keep-alive"],
        "openai-realtime" => &["bad-key", "silence", "keep-alive"],
        "vllm-realtime" => &[
            "bad-key",
            "final-spans",
            "final-cursor",
            "speech-covered",
            "interims",
            "silence",
            "flush",
            "keep-alive",
        ],
        "speechmatics" => &["bad-key", "keep-alive"],
        "assemblyai" => &["broken-opening", "bad-key"],
        "moshi" => &["broken-opening", "bad-key", "flush", "keep-alive"],
        other => panic!("what is not run of {other}?"),
    }
}

#[test]
fn an_honest_server_passes_in_every_dialect() {
    in_each_dialect(|name| {
        let address = serve(config(name, "none"));
        let report = check(&suite(name, options(), QUICK), url(name, address), &[]);
        assert_eq!(ids(&report, |case| case.failed()), [""; 0], "{report:#?}");
        let skipped = ids(&report, |case| case.skipped.is_some());
        assert_eq!(skipped, not_run(name), "{report:#?}");
        assert_eq!(report.passed + report.skipped, report.cases.len());
        // Words, as the clips have them.
        let words = report.cases.iter().find(|case| case.id == "words");
        assert!(
            words.is_some_and(|case| case.seen.starts_with("0 % of ")),
            "{report:#?}"
        );
    });
}

/// A fault, the case that fails, and what is seen; then the dialects in which a client cannot see it.
type Named = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

/// Faults that one session shows. The others: a lost word, and wrong words or a lag under load, fail no case, because a case
/// demands no more than words, and has no load.
const NAMED: [Named; 13] = [
    ("silent", "words", "100 % of", &[]),
    ("doubled-final", "words", "100 % of", &[]),
    (
        "doubled-final",
        "final-spans",
        "",
        // The second answer is for a message of its own; a turn and text without times cannot overlap.
        &["vosk", "wyoming", "vllm-realtime"],
    ),
    (
        "beyond-audio",
        "final-spans",
        "were sent",
        &["wyoming", "vllm-realtime"],
    ),
    (
        "lost-second",
        "speech-covered",
        "in one place",
        &["wyoming", "vosk", "openai-realtime", "vllm-realtime"],
    ),
    (
        "stall",
        "final-cursor",
        "speech ends at",
        // Their times cannot be seen.
        &["wyoming", "vllm-realtime"],
    ),
    ("stall", "end", "nothing said that", &[]),
    ("close", "end", "", &[]),
    ("bad-json", "messages", "times)", &[]),
    ("huge-message", "messages", "over the limit", &["wyoming"]),
    // The transcript is the end.
    ("no-end", "end", "nothing said that", &["wyoming"]),
    ("429", "opening", "the session did not open", &[]),
    ("capacity", "opening", "the session did not open", &[]),
];

/// Faults that make a check wait in vain.
const WAITED_FOR: [&str; 3] = ["silent", "stall", "no-end"];

#[test]
fn each_fault_fails_the_case_that_names_it() {
    for (is_waited_for, times) in [(false, QUICK), (true, IMPATIENT)] {
        let named = NAMED.iter();
        let named = named.filter(|named| WAITED_FOR.contains(&named.0) == is_waited_for);
        let pairs = named.flat_map(|named| {
            let seen = dialect::NAMES
                .into_iter()
                .filter(|name| !named.3.contains(name));
            seen.map(move |name| (name, named))
        });
        side_by_side(pairs, |(name, (fault, case, text, _))| {
            let address = serve(config(name, fault));
            let report = check(&suite(name, options(), times), url(name, address), &[case]);
            let seen = failed(&report, case);
            assert!(seen.contains(text), "{name} {fault}: {seen}");
        });
    }
}

#[test]
fn crosstalk_is_named_in_every_dialect() {
    in_each_dialect(|name| {
        let address = serve(config(name, "crosstalk"));
        // The session before has said what the two are told.
        let only = ["words", "two-sessions"];
        let suite = suite(name, options(), IMPATIENT);
        let report = check(&suite, url(name, address), &only);
        let seen = failed(&report, "two-sessions");
        assert!(seen.starts_with("crosstalk: "), "{name}: {seen}");
    });
}

#[test]
fn a_wrong_key_must_be_refused_as_one() {
    in_each_dialect(|name| {
        if ["wyoming", "vosk"].contains(&name) {
            return;
        }
        let settings = Config {
            key: Secret::new("sesame-open"),
            ..config(name, "none")
        };
        let address = serve(settings);
        let with_key = Options {
            key: Some(Key {
                value: Secret::new("sesame-open"),
                place: KeyPlace::Header,
            }),
            ..options()
        };
        let only = ["opening", "bad-key"];
        let right = check(&suite(name, with_key, QUICK), url(name, address), &only);
        assert_eq!(right.passed, 2, "{right:#?}");
        let none = check(&suite(name, options(), QUICK), url(name, address), &only);
        let seen = failed(&none, "opening");
        assert!(seen.contains("(auth)"), "{name}: {seen}");
        // Full is no word about keys.
        let address = serve(config(name, "capacity"));
        let full = check(&suite(name, options(), QUICK), url(name, address), &only);
        let seen = failed(&full, "bad-key");
        assert!(seen.contains("was not refused as such"), "{name}: {seen}");
    });
}

#[test]
fn the_token_of_a_url_is_the_key_and_is_in_no_report() {
    let settings = Config {
        key: Secret::new("sesame-open"),
        ..config("deepgram", "none")
    };
    let address = serve(settings);
    let suite = suite("deepgram", options(), QUICK);
    let subject = Subject::Url {
        url: format!("ws://{address}/v1/listen"),
        token: Some("sesame-open".to_owned()),
    };
    let wanted = |id: &str| ["opening", "bad-key"].contains(&id);
    let how = How {
        only: Some(&wanted),
        ..How::default()
    };
    let report = suite.run(&subject, &how, &mut |_| {});
    assert_eq!(report.passed, 2, "{report:#?}");
    assert!(!format!("{report:?}").contains("sesame"));
}

/// A case of a dialect of which something is not true, against an honest mock.
fn wrongly(
    name: &'static str,
    case: &'static str,
    make: impl Fn(&Options) -> Result<Box<dyn Dialect>, OptionError> + Send + Sync + 'static,
) -> String {
    let address = serve(config(name, "none"));
    let suite = DialectSuite::new(make, options(), CLIPS.clone()).with_times(IMPATIENT);
    let report = check(&suite, url(name, address), &[case]);
    failed(&report, case).to_owned()
}

/// What the mock does right in every session, a server can do wrong too.
#[test]
fn a_server_that_does_otherwise_than_its_dialect_says_fails() {
    let seen = wrongly("assemblyai", "keep-alive", |options| {
        Wrong::of("assemblyai", options, |wrong| {
            wrong.keep_alive = Some(Message::text(r#"{"type":"StayAwake"}"#));
        })
    });
    assert!(
        seen.contains("did not stay open") && seen.contains("3006"),
        "{seen}"
    );
    let seen = wrongly("assemblyai", "silence", |options| {
        Wrong::of("assemblyai", options, |wrong| {
            wrong.setup.facts.silence = Silence::Decidable;
        })
    });
    assert!(
        seen.starts_with("the cursor did not move in 3.00 s"),
        "{seen}"
    );
    let seen = wrongly("assemblyai", "message-lengths", |options| {
        match options.frame_ms {
            Some(0) => Err(OptionError::FrameLength {
                dialect: "assemblyai",
                frame_ms: 0,
                least_ms: 10,
                most_ms: 1_000,
            }),
            _ => {
                let long = Options {
                    frame_ms: None,
                    ..options.clone()
                };
                Wrong::of("assemblyai", &long, |wrong| {
                    wrong.setup.audio.frame_ns = 10_000_000;
                })
            }
        }
    });
    assert!(
        seen.starts_with("messages of 10 ms: ") && seen.contains("3007"),
        "{seen}"
    );
    // The mock takes it for audio.
    let seen = wrongly("deepgram", "broken-opening", |options| {
        Wrong::of("deepgram", options, |wrong| {
            wrong.setup.opening = vec![Message::binary("hello")];
        })
    });
    assert!(seen.ends_with("nothing came within 3000 ms"), "{seen}");
}

#[test]
fn a_flush_must_bring_words_and_interims_must_come_first() {
    let names = ["deepgram", "openai-realtime", "speechmatics", "assemblyai"];
    side_by_side(names, |name| {
        let address = serve(config(name, "silent"));
        let suite = suite(name, options(), IMPATIENT);
        let report = check(&suite, url(name, address), &["flush", "interims"]);
        assert!(
            failed(&report, "flush").starts_with("no final with words"),
            "{name}"
        );
        assert!(
            failed(&report, "interims").starts_with("0 before"),
            "{name}"
        );
        // They should and need not.
        assert_eq!((report.failed, report.failed_should), (0, 2), "{name}");
    });
}

#[test]
fn a_server_with_one_place_is_not_asked_for_two() {
    let settings = Config {
        sessions_max: 1,
        ..config("deepgram", "none")
    };
    let suite = suite("deepgram", options(), QUICK);
    let report = check(&suite, url("deepgram", serve(settings)), &["two-sessions"]);
    let why = report.cases[0].skipped.as_deref().unwrap_or_default();
    assert!(
        why.starts_with("the server takes one session at a time: "),
        "{report:?}"
    );
}

#[test]
fn a_server_that_cannot_be_reached_fails_every_case_in_one_line() {
    let (_socket, address) = plimsoll_testing::nobody_listens();
    let suite = suite("deepgram", options(), QUICK);
    let report = check(&suite, format!("ws://{address}"), &["opening", "end"]);
    for id in ["opening", "end"] {
        let seen = failed(&report, id);
        assert!(
            seen.contains("cannot connect to") && !seen.contains('\n'),
            "{seen}"
        );
    }
    let report = check(&suite, format!("tcp://{address}"), &["opening"]);
    let seen = failed(&report, "opening");
    assert!(seen.contains("use ws://HOST:PORT"), "{seen}");
}

/// A server that runs already, and the bench that hands it out.
#[derive(Clone, Copy)]
struct Running(SocketAddr);

impl Server for Running {
    fn address(&self) -> SocketAddr {
        self.0
    }

    fn output(&self) -> String {
        String::new()
    }

    fn terminate(&self) -> Result<(), String> {
        Ok(())
    }

    fn wait(&self, _limit: Duration) -> Result<Option<i32>, String> {
        Ok(None)
    }
}

impl Bench for Running {
    fn start(&self, _environment: &Environment) -> Result<Box<dyn Server>, String> {
        Ok(Box::new(*self))
    }

    fn start_refused(&self, _: &Environment, _: Duration) -> Result<Ended, String> {
        Err("no case asks for that".to_owned())
    }
}

#[test]
fn a_target_is_started_and_its_deviations_are_told() {
    let bench = Running(serve(config("deepgram", "no-end")));
    let subject = Subject::Target {
        name: "mock".to_owned(),
        bench: &bench,
    };
    let deviations = BTreeMap::from([("end".to_owned(), "its library cannot".to_owned())]);
    let wanted = |id: &str| ["words", "end"].contains(&id);
    let how = How {
        only: Some(&wanted),
        deviations: Some(&deviations),
        ..How::default()
    };
    let suite = suite("deepgram", options(), IMPATIENT);
    let mut told = Vec::new();
    let report = suite.run(&subject, &how, &mut |case| told.push(case.id.clone()));
    assert_eq!(told, ["words", "end"]);
    assert_eq!(report.target, "mock");
    assert_eq!((report.passed, report.failed, report.deviations), (1, 0, 1));
}

#[test]
fn a_check_that_is_stopped_says_so_of_the_rest() {
    let address = serve(config("deepgram", "none"));
    let suite = suite("deepgram", options(), QUICK);
    let stop = Stop::new();
    let how = How {
        stop: Some(&stop),
        ..How::default()
    };
    let subject = Subject::Url {
        url: url("deepgram", address),
        token: None,
    };
    // After the first case the user has seen enough.
    let report = suite.run(&subject, &how, &mut |_| stop.request());
    assert_eq!((report.passed, report.skipped), (1, report.cases.len() - 1));
    let rest = report.cases.iter().skip(1);
    assert!(
        rest.into_iter()
            .all(|case| case.skipped.as_deref() == Some("interrupted"))
    );
}

#[test]
fn ids_are_known_before_a_check_and_each_is_its_own() {
    let ids = suite("deepgram", options(), QUICK).case_ids();
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
    assert_eq!(ids.len(), 15);
}
