//! What a workload tells of its own trials.

use std::fmt;

use plimsoll_core::record::{Parameters, Trial};
use schemars::{Schema, SchemaGenerator};

use crate::blocks::{Blocks, Fact, Section};
use crate::unknown;

/// What a workload tells of its own trials, besides what every trial has: its section of a page, the same in lines, and
/// trials side by side.
///
/// All texts are as they are: the writers escape them. What came from outside goes through [`crate::words::plain`].
pub trait Tell: Sync {
    /// The workload's name in records.
    fn workload(&self) -> &'static str;

    /// What it calls what every trial counts.
    fn nouns(&self, _trial: &Trial) -> Nouns {
        Nouns::default()
    }

    /// What distinguishes a trial from others with the same load, such as the cells of a matrix: ` of 64 B`. It follows
    /// the load in a sentence.
    fn beside_the_load(&self, _trial: &Trial) -> String {
        String::new()
    }

    /// The parameters of a trial of Plimsoll 0.1, which had them only in the workload's section.
    fn earlier_parameters(&self, _trial: &Trial) -> Parameters {
        Parameters::new()
    }

    /// The names of the parameters that a command repeats the measurement with, in its order: those that have a flag
    /// beside the others. What a series of trials varies by itself has none. `started` is whether Plimsoll started the
    /// target, whose manifest then says what is a parameter only for a server that runs already.
    fn repeated_with<'a>(&self, parameters: &'a Parameters, _started: bool) -> Vec<&'a str> {
        parameters.keys().map(String::as_str).collect()
    }

    /// Its section of a trial's page.
    fn trial(&self, _trial: &Trial) -> Option<Section> {
        None
    }

    /// The same in lines, for a reader with little room.
    fn in_lines(&self, _trial: &Trial) -> Vec<Fact> {
        Vec::new()
    }

    /// The section of a trial's page about the programs that ran beside the target for this workload.
    fn companions(&self, _trial: &Trial) -> Option<Section> {
        None
    }

    /// The same in lines.
    fn companions_in_lines(&self, _trial: &Trial) -> Vec<Fact> {
        Vec::new()
    }

    /// What it says as properties of a test report, for a build server.
    fn properties(&self, _trial: &Trial) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Several trials side by side.
    fn side_by_side(&self, _blocks: &mut Blocks, _trials: &[Named<'_>]) {}

    /// The JSON Schema of what it adds to the record of a trial, by the names of the fields. Types that these refer to
    /// become definitions of the generator.
    fn schemas(&self, _generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        Vec::new()
    }
}

/// A trial among others.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The stem of its files: `trial-001`.
    pub stem: &'a str,
    /// The record.
    pub trial: &'a Trial,
}

/// What a workload calls what every trial counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nouns {
    /// What is due: `frames`.
    pub frames: &'static str,
    /// The answers, as a row of the ledger: `answers`.
    pub answers: &'static str,
    /// The same in a line that begins with `answers`: `messages`.
    pub messages: &'static str,
}

impl Default for Nouns {
    fn default() -> Self {
        Self {
            frames: "frames",
            answers: "answers",
            messages: "messages",
        }
    }
}

/// Those who tell the trials of each workload.
#[derive(Clone, Copy)]
pub struct Tellers(&'static [&'static dyn Tell]);

impl Tellers {
    /// Nobody: of each trial, only what every trial has is told.
    pub const NONE: Self = Self(&[]);

    /// One for each workload that has more to say than every trial has.
    #[must_use]
    pub const fn new(tellers: &'static [&'static dyn Tell]) -> Self {
        Self(tellers)
    }

    /// Who tells the trials of that workload.
    #[must_use]
    pub fn of(self, workload: &str) -> &'static dyn Tell {
        let known = self.0.iter().find(|teller| teller.workload() == workload);
        known.copied().unwrap_or(&Unknown)
    }

    /// The section of a trial's page by its workload. What nobody can tell is shown as it is.
    #[must_use]
    pub fn trial(self, trial: &Trial) -> Option<Section> {
        let told = self.of(&trial.workload).trial(trial);
        told.or_else(|| unknown::sections(trial))
    }

    /// Adds the trials side by side, each workload's own ones.
    pub fn side_by_side(self, blocks: &mut Blocks, trials: &[Named<'_>]) {
        for teller in self.0 {
            let own = trials.iter().copied();
            let own: Vec<_> = own
                .filter(|named| named.trial.workload == teller.workload())
                .collect();
            if !own.is_empty() {
                teller.side_by_side(blocks, &own);
            }
        }
    }

    /// What all of them add to the schema of a trial.
    #[must_use]
    pub fn schemas(self, generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        let all = self.0.iter();
        all.flat_map(|teller| teller.schemas(generator)).collect()
    }
}

impl fmt::Debug for Tellers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|teller| teller.workload());
        f.debug_list().entries(names).finish()
    }
}

/// Tells the trials of a workload that nobody knows, such as one of a later Plimsoll.
struct Unknown;

impl Tell for Unknown {
    fn workload(&self) -> &'static str {
        ""
    }
}
