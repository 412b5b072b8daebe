//! The list of all cases, and the gateway that they are tried on.

use std::borrow::Cow;
use std::ops::Deref;
use std::time::Duration;

use plimsoll_conformance::socket::Upgrade;
use plimsoll_conformance::{self as conformance};
use plimsoll_host::http::Metrics;

use super::client::{Connection, Session, usual};
use super::setup::BASE;
use super::simulators::Simulator;
use super::{SpeechSuite, drain, environment, flush, frames, http_surface, in_flight};
use super::{
    inference_errors, inference_request, limits, metrics, overflow, rejected_frames, start,
};

pub(super) use conformance::Verdict;

/// A case of this contract.
pub(super) type Case = conformance::Case<SpeechSuite>;

/// Numbers of sessions whose synthetic audio never coincides: windows begin at multiples of 160 plus the number.
const DISTINCT_SESSIONS: u64 = 160;

/// A case in the base setup that needs nothing but the gateway's address.
pub(super) fn case(
    id: impl Into<Cow<'static, str>>,
    title: impl Into<Cow<'static, str>>,
    expected: impl Into<Cow<'static, str>>,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    Case::new(id, title, expected, &BASE, move |site| run(&Site { site }))
}

/// Every case, in the order of the contract.
pub(super) fn all() -> Vec<Case> {
    [
        http_surface::cases(),
        start::cases(),
        frames::cases(),
        rejected_frames::cases(),
        flush::cases(),
        in_flight::cases(),
        inference_request::cases(),
        inference_errors::cases(),
        overflow::cases(),
        limits::cases(),
        drain::cases(),
        metrics::cases(),
        environment::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A gateway that runs, as cases see it.
pub(super) struct Site<'a> {
    site: &'a conformance::Site<'a, SpeechSuite>,
}

impl<'a> Deref for Site<'a> {
    type Target = conformance::Site<'a, SpeechSuite>;

    fn deref(&self) -> &Self::Target {
        self.site
    }
}

impl Site<'_> {
    /// The simulator behind the gateway.
    pub(super) fn simulator(&self) -> Result<&dyn Simulator, String> {
        self.companion().map(|simulator| &**simulator)
    }

    /// A session upgraded in another way than the usual.
    pub(super) fn upgrade(&self, how: &Connection) -> Result<Upgrade<Session>, String> {
        let number = self.next_number() % (DISTINCT_SESSIONS - 1);
        // Session 0 belongs to the golden vector.
        self.upgrade_as(how, number + 1)
    }

    /// The same with a given session number.
    pub(super) fn upgrade_as(
        &self,
        how: &Connection,
        number: u64,
    ) -> Result<Upgrade<Session>, String> {
        let upgrade = self.site.upgrade(how, number)?;
        Ok(upgrade.map(|socket| Session::over(socket, number)))
    }

    /// An upgraded session that has not sent its start message.
    pub(super) fn connect(&self) -> Result<Session, String> {
        self.upgrade(&usual())?.accepted()
    }

    /// A session that has sent its start message.
    pub(super) fn session(&self) -> Result<Session, String> {
        let mut session = self.connect()?;
        session.start()?;
        Ok(session)
    }

    pub(super) fn flush_interval(&self) -> Duration {
        self.millis("FLUSH_INTERVAL_MS", 1000)
    }

    pub(super) fn jitter(&self) -> Duration {
        self.millis("FLUSH_PHASE_JITTER_MS", 1000)
    }

    /// How long the simulator takes.
    pub(super) fn model_delay(&self) -> Duration {
        let delay_ms = self.setup.companion_number("MODEL_DELAY_MS");
        Duration::from_millis(delay_ms.unwrap_or_default().into())
    }

    /// More than the longest time from a frame to the message that names it, when nothing is wrong.
    pub(super) fn patience(&self) -> Duration {
        2 * self.flush_interval()
            + self.jitter()
            + 2 * self.model_delay()
            + Duration::from_millis(1500)
    }

    /// Reads the metrics again and again until `reached` holds of them; the last scrape with whether it did.
    ///
    /// A gateway may enter what a session did with its next flush.
    pub(super) fn metrics_until(
        &self,
        reached: impl Fn(&Metrics) -> bool,
    ) -> Result<(Metrics, bool), String> {
        self.metrics_within(self.patience(), reached)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_plain() {
        let cases = all();
        let ids: BTreeSet<&str> = cases.iter().map(|case| &*case.id).collect();
        assert_eq!(ids.len(), cases.len());
        assert!(cases.len() >= 35, "{} cases", cases.len());
        for case in &cases {
            let plain = |letter: char| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
            };
            assert!(case.id.chars().all(plain), "{}", case.id);
            assert!(
                !case.title.is_empty() && !case.expected.is_empty(),
                "{}",
                case.id
            );
        }
    }
}
