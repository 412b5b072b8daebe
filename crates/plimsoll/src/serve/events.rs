//! What a running command shows, as server-sent events: `live` with a snapshot whenever there is a new one, `silent` if
//! none came for a while, `ended` at the end. A browser that loses the connection asks again, and continues with the
//! current state.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use plimsoll_core::record::Live;
use plimsoll_report::folder::{LIVE, read_live};

/// How often to look at the file, which a command writes once a second.
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// How long a browser waits before it asks again after losing the connection.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The events of a folder, until the command in it ends.
pub(super) fn stream(folder: PathBuf) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let watch = Watch {
        folder,
        told: SentSoFar::default(),
    };
    Sse::new(stream::unfold(watch, next)).keep_alive(KeepAlive::default())
}

struct Watch {
    folder: PathBuf,
    told: SentSoFar,
}

async fn next(mut watch: Watch) -> Option<(Result<Event, Infallible>, Watch)> {
    while !watch.told.ended {
        let folder = watch.folder.clone();
        let look = tokio::task::spawn_blocking(move || Seen::now(&folder, SystemTime::now()));
        // This can fail only while we are ending ourselves.
        let seen = look.await.ok()?;
        if let Some(message) = watch.told.news(seen) {
            return Some((Ok(message.event()), watch));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    None
}

/// The state of a folder.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    /// A fresh snapshot.
    Live(Box<Live>),
    /// A snapshot that is not fresh: the command crashed, was stopped, or is busy with something.
    Stale,
    /// No snapshot: no command is running.
    Gone,
}

impl Seen {
    fn now(folder: &Path, now: SystemTime) -> Self {
        // A link could lead out of the folder.
        let there = fs::symlink_metadata(folder.join(LIVE)).is_ok_and(|file| file.is_file());
        match there.then(|| read_live(folder, now)) {
            Some(Some(live)) => Self::Live(Box::new(live)),
            Some(None) => Self::Stale,
            None => Self::Gone,
        }
    }
}

/// What is sent to the browser.
#[derive(Debug, Clone, PartialEq)]
enum Message {
    Live(Box<Live>),
    Silent,
    Ended,
}

impl Message {
    fn event(&self) -> Event {
        let event = Event::default().retry(ASK_AGAIN);
        match self {
            Self::Live(live) => {
                // The JSON has no line breaks between its parts. Writing it cannot fail, because the snapshot was read
                // from JSON.
                let json = serde_json::to_string(live).unwrap_or_default();
                event.event("live").data(json)
            }
            Self::Silent => event.event("silent").data("{}"),
            Self::Ended => event.event("ended").data("{}"),
        }
    }
}

/// What was sent so far: everything is sent once.
#[derive(Debug, Default)]
struct SentSoFar {
    updated_at: Option<String>,
    silent: bool,
    ended: bool,
}

impl SentSoFar {
    fn news(&mut self, seen: Seen) -> Option<Message> {
        match seen {
            Seen::Live(live) => {
                let same = self.updated_at.as_ref() == Some(&live.updated_at);
                let was_silent = std::mem::take(&mut self.silent);
                self.updated_at = Some(live.updated_at.clone());
                (!same || was_silent).then_some(Message::Live(live))
            }
            Seen::Stale => {
                let was_silent = std::mem::replace(&mut self.silent, true);
                (!was_silent).then_some(Message::Silent)
            }
            Seen::Gone => {
                self.ended = true;
                Some(Message::Ended)
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use plimsoll_core::record::{
        LiveBracket, LiveCommand, LiveEnded, LiveGate, LivePhases, LiveTrial, LoadUnit, Phase,
        SCHEMA_VERSION, Verdict,
    };
    use plimsoll_report::ResultFolder;

    use super::*;

    /// A search in its second trial.
    pub(in crate::serve) fn live(updated_at: &str) -> Live {
        Live {
            schema_version: SCHEMA_VERSION,
            command: LiveCommand::Find,
            target: "rust-axum".to_owned(),
            targets: vec!["rust-axum".to_owned()],
            slo: "stt".to_owned(),
            profile: "quick".to_owned(),
            started_at: "2026-01-02T03:00:00Z".to_owned(),
            updated_at: updated_at.to_owned(),
            pid: 17,
            vcpu: Some(0.25),
            phases: LivePhases::default(),
            load_unit: LoadUnit::SESSIONS,
            trial: Some(LiveTrial {
                number: 2,
                sessions: 800,
                why: "probe".to_owned(),
                phase: Phase::Measured,
                at_s: 9,
                errors: 0,
                sessions_lost: 0,
            }),
            gates: vec![LiveGate {
                name: "newest_p95_ms".to_owned(),
                threshold: 350.0,
                observed: Some(120.0),
            }],
            seconds: Vec::new(),
            trials: vec![LiveEnded {
                number: 1,
                target: "rust-axum".to_owned(),
                sessions: 400,
                verdict: Verdict::Pass,
                newest_p50_ms: Some(90.0),
                newest_p95_ms: Some(125.0),
                cpu_us_per_session_second: Some(500.0),
                goodput: None,
                broke_first: None,
            }],
            bracket: LiveBracket {
                highest_pass: Some(400),
                lowest_fail: None,
            },
            trials_left: 7,
            time_left_s: 120.0,
            ended: false,
        }
    }

    fn seen(updated_at: &str) -> Seen {
        Seen::Live(Box::new(live(updated_at)))
    }

    #[test]
    fn everything_is_told_once_and_the_end_is_the_end() {
        let mut told = SentSoFar::default();
        let message = |updated_at| Some(Message::Live(Box::new(live(updated_at))));
        assert_eq!(told.news(seen("1")), message("1"));
        assert_eq!(told.news(seen("1")), None);
        assert_eq!(told.news(seen("2")), message("2"));
        assert_eq!(told.news(Seen::Stale), Some(Message::Silent));
        assert_eq!(told.news(Seen::Stale), None);
        // The command is back, even if only with what it said before.
        assert_eq!(told.news(seen("2")), message("2"));
        assert!(!told.ended);
        assert_eq!(told.news(Seen::Gone), Some(Message::Ended));
        assert!(told.ended);
    }

    #[test]
    fn a_folder_is_live_stale_or_over() {
        let place = tempfile::tempdir().expect("a scratch folder");
        let now = SystemTime::now();
        assert_eq!(Seen::now(place.path(), now), Seen::Gone);
        let folder = ResultFolder::create(place.path()).expect("a folder");
        let fresh = live(&plimsoll_host::timestamp::now());
        folder.write_live(&fresh).expect("written");
        assert_eq!(Seen::now(place.path(), now), Seen::Live(Box::new(fresh)));
        let later = now + Duration::from_secs(60);
        assert_eq!(Seen::now(place.path(), later), Seen::Stale);
        let elsewhere = tempfile::tempdir().expect("a scratch folder");
        let link = elsewhere.path().join(LIVE);
        std::os::unix::fs::symlink(place.path().join(LIVE), link).expect("a link");
        assert_eq!(Seen::now(elsewhere.path(), now), Seen::Gone);
    }
}
