//! A mock server in a thread of its own, and checks of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use plimsoll_conformance::{Check as _, CheckReport, Options as How, Subject};
use plimsoll_mock_stt::config::Config;
use plimsoll_mock_stt::dialect::Known;
use plimsoll_mock_stt::faults::Faults;
use plimsoll_mock_stt::server::Mock;
use plimsoll_speech::clip::Clip;
use plimsoll_speech::corpus::Corpus;

use super::super::{DialectSuite, Times};
use crate::dialect::{self, Dialect, Message, OptionError, Options, Setup, Transcription};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/stt-real/corpus");

/// So many clips are enough, however many were made.
const CLIPS_MAX: usize = 3;

/// The clips that the tests say, and that their mocks know.
pub(super) static CLIPS: LazyLock<Arc<[Clip]>> = LazyLock::new(|| {
    let corpus = Corpus::pinned(Path::new(CORPUS)).expect("it is in the repository");
    corpus.clips.into_iter().take(CLIPS_MAX).collect()
});

/// Audio goes out twenty times as fast as it is spoken.
pub(super) const QUICK: Times = Times {
    patience: Duration::from_secs(20),
    look: Duration::from_millis(300),
    idle: Duration::from_millis(300),
    speed: 20,
};

/// For a server that is known to keep silent.
pub(super) const IMPATIENT: Times = Times {
    patience: Duration::from_secs(3),
    look: Duration::from_secs(1),
    ..QUICK
};

/// Settings of a mock with this fault.
pub(super) fn config(dialect: &str, fault: &str) -> Config {
    Config {
        port: 0,
        dialect: Known::by_name(dialect).expect("a dialect").name,
        delay_ms: 20,
        fault: Faults::parse(fault).expect("a fault"),
        ..Config::default()
    }
}

/// Serves until the tests are over.
pub(super) fn serve(config: Config) -> SocketAddr {
    let known = plimsoll_mock_stt::corpus::Corpus::of(CLIPS.to_vec());
    Mock::in_a_thread(config, known).expect("it listens")
}

/// The options of a user who gives only what must be given.
pub(super) fn options() -> Options {
    Options {
        model: Some("mock".to_owned()),
        ..Options::default()
    }
}

/// The cases of a dialect.
pub(super) fn suite(name: &'static str, options: Options, times: Times) -> DialectSuite {
    let make = move |options: &Options| dialect::by_name(name, options);
    DialectSuite::new(make, options, Arc::clone(&CLIPS)).with_times(times)
}

/// The URL of a mock, as users of the dialect write it.
pub(super) fn url(name: &str, address: SocketAddr) -> String {
    match name {
        "wyoming" => format!("tcp://{address}"),
        _ => format!("ws://{address}"),
    }
}

/// Checks a server that is known by its URL with the cases whose ids these are; with all of them if there are none.
pub(super) fn check(suite: &DialectSuite, url: String, only: &[&str]) -> CheckReport {
    let wanted = |id: &str| only.is_empty() || only.contains(&id);
    let how = How {
        only: Some(&wanted),
        ..How::default()
    };
    suite.run(&Subject::Url { url, token: None }, &how, &mut |_| {})
}

/// What was seen in the only case that ran; it must have failed.
pub(super) fn failed<'a>(report: &'a CheckReport, id: &str) -> &'a str {
    let case = report.cases.iter().find(|case| case.id == id);
    let case = case.unwrap_or_else(|| panic!("no case {id}: {report:?}"));
    assert!(case.failed(), "{}: {case:?}", report.target);
    &case.seen
}

/// The ids of the cases that this is true of.
pub(super) fn ids(
    report: &CheckReport,
    wanted: impl Fn(&plimsoll_conformance::CaseResult) -> bool,
) -> Vec<&str> {
    let cases = report.cases.iter().filter(|case| wanted(case));
    cases.map(|case| case.id.as_str()).collect()
}

/// Tries all of these side by side, for most of the time is spent waiting.
pub(super) fn side_by_side<T: Copy + Send>(
    items: impl IntoIterator<Item = T>,
    tries: impl Fn(T) + Sync,
) {
    std::thread::scope(|scope| {
        for item in items {
            let tries = &tries;
            scope.spawn(move || tries(item));
        }
    });
}

/// Tries all dialects side by side.
pub(super) fn in_each_dialect(tries: impl Fn(&'static str) + Sync) {
    side_by_side(dialect::NAMES, tries);
}

/// A dialect of which something is not true.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) inner: Box<dyn Dialect>,
    pub(super) setup: Setup,
    pub(super) keep_alive: Option<Message>,
}

impl Wrong {
    /// The dialect of this name, after `change`.
    pub(super) fn of(
        name: &str,
        options: &Options,
        change: fn(&mut Self),
    ) -> Result<Box<dyn Dialect>, OptionError> {
        let inner = dialect::by_name(name, options)?;
        let told = inner.setup();
        let setup = Setup {
            name: told.name,
            facts: told.facts,
            limits: told.limits,
            audio: told.audio,
            connect: told.connect.clone(),
            opening: told.opening.clone(),
        };
        let mut wrong = Self {
            keep_alive: inner.keep_alive(),
            inner,
            setup,
        };
        change(&mut wrong);
        Ok(Box::new(wrong))
    }
}

impl Dialect for Wrong {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn pack(&self, frame: &[u8]) -> Message {
        self.inner.pack(frame)
    }

    fn keep_alive(&self) -> Option<Message> {
        self.keep_alive.clone()
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        self.inner.transcription()
    }
}
