//! The lowest load at which a trial can give a verdict.

use plimsoll_core::least_load::{LeastLoads, window_needed_s};
use plimsoll_core::profile::Length;
use plimsoll_core::slo::Slo;

use crate::trial::Conditions;

/// No trial has more sessions, messages or connections than this.
const LOAD_MOST: u32 = 10_000_000;

impl Conditions {
    /// The SLOs that judge every trial.
    pub(super) fn slos(&self) -> impl Iterator<Item = &Slo> {
        std::iter::once(&self.slo).chain(&self.further_slos)
    }

    /// The lowest load at which a trial of each length can pass by this SLO.
    #[must_use]
    pub fn least_loads(&self, slo: &Slo) -> LeastLoads {
        LeastLoads::of(slo, &self.profile, LOAD_MOST, |load| {
            self.plan.demand(load, &self.profile).answers_per_second
        })
    }

    /// Why no full trial at `load` can pass: one line with the remedy for each SLO by which none can.
    #[must_use]
    pub fn no_verdict_at(&self, load: u32) -> Vec<String> {
        let too_low = |slo: &&Slo| !self.least_loads(slo).allow(load, Length::Full);
        let slos = self.slos().filter(too_low);
        slos.map(|slo| self.why_no_verdict(slo, load)).collect()
    }

    /// Why no full trial at `load` can pass by any SLO; `None` if one can by some SLO.
    #[must_use]
    pub fn no_verdict_at_all(&self, load: u32) -> Option<String> {
        let mut lines = self.no_verdict_at(load);
        (lines.len() == self.slos().count()).then(|| lines.remove(0))
    }

    fn why_no_verdict(&self, slo: &Slo, load: u32) -> String {
        let unit = self.plan.unit();
        let per_second = self.plan.demand(load, &self.profile).answers_per_second;
        let measured_s = self.profile.measured_s;
        let needed_s = window_needed_s(slo, per_second).ceil();
        let remedy = match self.least_loads(slo).full {
            Some(least) => format!("use at least {least}, or --measured {needed_s}"),
            // Some loads have a ceiling on their answers.
            None => format!("use --measured {needed_s}"),
        };
        format!(
            "{load} {} cannot give a verdict by the SLO {}: its percentiles need {} answers, and {measured_s} s give about {:.0}; {remedy}",
            unit.name(),
            slo.name,
            slo.samples_needed(),
            per_second * measured_s,
        )
    }

    /// The length of a trial for which a search wants `wanted`. It is a full trial if, among the SLOs that can be
    /// passed at this load, one can be passed only by a full trial, or if a short one shows nothing.
    pub(crate) fn length_for(&self, load: u32, wanted: Length) -> Length {
        let only_full = |slo: &Slo| {
            let least = self.least_loads(slo);
            least.allow(load, Length::Full) && !least.allow(load, Length::Short)
        };
        if !self.plan.shows_in_a_short_trial() || self.slos().any(only_full) {
            Length::Full
        } else {
            wanted
        }
    }
}
