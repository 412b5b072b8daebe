//! The list of all cases, and the gateway that they are tried on.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_conformance::socket::{Connection, Upgrade};
use plimsoll_conformance::{self as conformance, Setup};
use serde_json::Value;

use super::mock::{Mock, Scene};
use super::session::{PATIENCE, Session, config, usual, without_audio};
use super::setup::BASE;
use super::{VoiceSuite, admission, bad, barge_in, failure, http_surface, limits, slow_reader};
use super::{speak, stt, tts, tts_requests};

pub(super) use conformance::Verdict;

/// A case of this contract.
pub(super) type Case = conformance::Case<VoiceSuite>;

/// A case that needs nothing but the gateway's address.
pub(super) fn open_case(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    Case::new(id, title, expected, &BASE, move |site| run(&Site { site }))
}

/// A case that needs the mock providers.
pub(super) fn case(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    open_case(id, title, expected, run).only_when_started()
}

/// A case that needs the variables of a setup.
pub(super) fn case_in(
    setup: &'static Setup,
    (id, title, expected): (&'static str, &'static str, &'static str),
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    open_case(id, title, expected, run).in_setup(setup)
}

/// Every case, in the order of the contract.
pub(super) fn all() -> Vec<Case> {
    [
        http_surface::cases(),
        speak::cases(),
        super::config::cases(),
        stt::cases(),
        tts::cases(),
        tts_requests::cases(),
        barge_in::cases(),
        bad::cases(),
        failure::cases(),
        admission::cases(),
        limits::cases(),
        slow_reader::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A gateway that runs, as cases see it.
pub(super) struct Site<'a> {
    site: &'a conformance::Site<'a, VoiceSuite>,
}

impl<'a> Deref for Site<'a> {
    type Target = conformance::Site<'a, VoiceSuite>;

    fn deref(&self) -> &Self::Target {
        self.site
    }
}

impl Site<'_> {
    /// The providers behind the gateway.
    pub(super) fn mock(&self) -> Result<&Mock, String> {
        self.companion().map(|providers| &providers.0)
    }

    /// A part of the providers that no other case has.
    pub(super) fn scene(&self) -> Result<Arc<Scene>, String> {
        self.mock().map(Mock::scene)
    }

    /// An upgrade in another way than the usual.
    pub(super) fn upgrade(&self, how: &Connection) -> Result<Upgrade<Session>, String> {
        let upgrade = self.site.upgrade(how, self.next_number())?;
        Ok(upgrade.map(|socket| Session::over(socket, self.suite.fields)))
    }

    /// An upgraded session that has not sent its `config`.
    pub(super) fn connect(&self) -> Result<Session, String> {
        self.upgrade(&usual())?.accepted()
    }

    /// A session that is ready, with these providers behind it, and Deepgram's way to speak.
    pub(super) fn session(&self, scene: &Scene) -> Result<Session, String> {
        self.session_with(scene, "deepgram")
    }

    /// The same with another provider that speaks.
    pub(super) fn session_with(&self, scene: &Scene, tts: &str) -> Result<Session, String> {
        self.configured(&config(scene.name(), tts))
    }

    /// A session that is ready without providers.
    pub(super) fn session_without_audio(&self) -> Result<Session, String> {
        self.configured(&without_audio())
    }

    fn configured(&self, config: &Value) -> Result<Session, String> {
        let mut session = self.connect()?;
        session.tell(config)?;
        session.expect_ready(self.ready_limit())?;
        Ok(session)
    }

    /// The time for recognition to open, and some for the way.
    pub(super) fn ready_limit(&self) -> Duration {
        self.millis("READY_MS", 30_000) + PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn there_are_as_many_cases_of_each_group_as_the_specification_says() {
        let groups = all().into_iter().fold(BTreeMap::new(), |mut groups, case| {
            let group = case.id.split('-').next().unwrap_or_default().to_owned();
            *groups.entry(group).or_insert(0) += 1;
            groups
        });
        let expected = [
            ("http", 5),
            ("speak", 6),
            ("config", 7),
            ("stt", 5),
            ("tts", 6),
            ("barge", 5),
            ("bad", 5),
            ("failure", 5),
            ("admission", 3),
            ("limits", 3),
        ];
        let expected = expected.map(|(group, count)| (group.to_owned(), count));
        assert_eq!(groups, BTreeMap::from(expected));
    }

    #[test]
    fn ids_are_unique_and_plain_and_texts_name_their_section() {
        let cases = all();
        let ids: BTreeSet<&str> = cases.iter().map(|case| &*case.id).collect();
        assert_eq!(ids.len(), 50);
        for case in &cases {
            let plain = |letter: char| letter.is_ascii_lowercase() || letter == '-';
            assert!(case.id.chars().all(plain), "{}", case.id);
            assert!(!case.title.is_empty(), "{}", case.id);
            assert!(case.expected.starts_with("section"), "{}", case.id);
        }
    }
}
