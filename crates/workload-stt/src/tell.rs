//! What a trial of workload `stt` tells: what the inference simulator used, and that answers are partials.

use plimsoll_core::record::{CompanionWindow, Parameters, Trial};
use plimsoll_document::facts::{lag, process};
use plimsoll_document::words::{count, maybe, percent, us, whole_bytes};
use plimsoll_document::{Fact, Nouns, Section, Table, Tell};
use plimsoll_workload::parameter::that_can_be_given;

use crate::Stt;
use crate::plan::PARAMETERS;

impl Tell for Stt {
    fn workload(&self) -> &'static str {
        "stt"
    }

    fn nouns(&self, _trial: &Trial) -> Nouns {
        Nouns {
            answers: "partials",
            messages: "partials",
            ..Nouns::default()
        }
    }

    fn repeated_with<'a>(&self, parameters: &'a Parameters, started: bool) -> Vec<&'a str> {
        that_can_be_given(&PARAMETERS, parameters, started)
    }

    fn companions(&self, trial: &Trial) -> Option<Section> {
        let rows = rows(trial.companion.as_ref()?);
        let table = Table::of_facts("What the inference simulator used", rows);
        Some(Section::of("inference", "Inference simulator", table))
    }

    fn companions_in_lines(&self, trial: &Trial) -> Vec<Fact> {
        let told = trial.companion.as_ref().map(in_a_line);
        let told = told.map(|told| Fact::new("inference", told));
        told.into_iter().collect()
    }
}

fn rows(inference: &CompanionWindow) -> Vec<(String, String)> {
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    let mut rows: Vec<_> = [
        ("requests", count(inference.requests)),
        ("share of one core", percent(inference.busy_share)),
        ("CPU per request", maybe(inference.cpu_us_per_request, us)),
    ]
    .map(owned)
    .into();
    rows.extend(lag("queue wait", &inference.queue_wait));
    rows.extend(lag("answers later than drawn", &inference.answer_lateness));
    let audio = inference.request_bytes.map(whole_bytes);
    rows.extend(audio.map(|bytes| owned(("audio received", bytes))));
    rows.extend(inference.resources.iter().flat_map(process).map(owned));
    rows
}

fn in_a_line(inference: &CompanionWindow) -> String {
    format!(
        "{} requests, {} of a core, queue wait p99 {}, answers later than drawn p99 {}",
        count(inference.requests),
        percent(inference.busy_share),
        maybe(inference.queue_wait.p99_us, us),
        maybe(inference.answer_lateness.p99_us, us),
    )
}
