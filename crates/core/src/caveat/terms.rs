//! What a workload calls things, so that caveats use the same words.

use crate::bottleneck::Bottleneck;
use crate::record::LoadUnit;
use crate::sanity::MetricNames;

/// What a workload calls things, so that caveats use the same words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// What its loads count.
    pub load_unit: LoadUnit,
    /// What the target's counters are called.
    pub metrics: MetricNames,
    /// What runs beside the target.
    pub companion: CompanionTerms,
}

/// What the program beside the target is called, and what to do if it is the limit. The examples are those of a made-up
/// program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompanionTerms {
    /// What the ids of its caveats begin with: `model` gives `model-queued`.
    pub id: &'static str,
    /// What it is called: `the model`.
    pub name: &'static str,
    /// How it gets more of the CPUs: `give the client more cores (--client-cpus)`.
    pub more_cores: &'static str,
    /// Where its log is: `the result folder's logs/`.
    pub log: &'static str,
    /// How it takes more requests at once: `raise MODEL_PLACES`.
    pub more_places: &'static str,
    /// Bytes that a frame of the load adds to the requests that it gets; `None` if these do not follow from the frames.
    pub frame_bytes: Option<u64>,
    /// Stages of a target's `error` in which the target waits for it.
    pub error_stages: &'static [&'static str],
    /// What a trial that it limited has as its bottleneck.
    pub bottleneck: Bottleneck,
}

impl CompanionTerms {
    /// The same for one that runs elsewhere, and not on the client's cores.
    #[must_use]
    pub const fn elsewhere(self) -> Self {
        Self {
            more_cores: "give it more cores, or run more of them",
            log: "the place where it runs",
            ..self
        }
    }
}

impl Default for CompanionTerms {
    fn default() -> Self {
        Self {
            id: "companion",
            name: "the program beside the target",
            more_cores: "give the client more cores (--client-cpus)",
            log: "the result folder's logs/",
            more_places: "let it take more requests at once",
            frame_bytes: None,
            error_stages: &[],
            bottleneck: Bottleneck::BackEnd,
        }
    }
}
