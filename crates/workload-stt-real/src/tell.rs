//! What a trial of workload `stt-real` tells: its utterances, lag and words, and trials side by side.

use plimsoll_core::durations::Durations;
use plimsoll_core::record::{Parameters, Trial};
use plimsoll_document::words::{count, maybe, ms_digits, number, plain, target, us, verdict};
use plimsoll_document::{Blocks, Cells, Fact, Named, Nouns, Section, Table, Tell};
use plimsoll_speech::interval::Interval;
use plimsoll_workload::parameter::that_can_be_given;
use schemars::{Schema, SchemaGenerator};

use crate::SttReal;
use crate::outcome::{SECTION, SttRealRecord};
use crate::parameters::PARAMETERS;
use crate::tally::Tally;

const LATENCIES: &str = "An utterance is a clip of known text. First result: the first words about it, from the schedule of the frame with its onset. Final: the final that covers its end, from the schedule of its last frame; the server's wait for the end of speech is part of it. Lag: audio due less the final cursor, which is how far finals have come; a sample for each session and second. What never came counts with the time we waited, a lower bound.";
const WORDS: &str = "Word error rate: substituted, inserted and missing words by the words said, of all utterances together; with a 95 % bootstrap interval over utterances. It guards against garbage. It is no ranking of recognisers: the voices are synthetic.";
const SIDE_BY_SIDE: &str = "First result, final and lag in ms, from the schedule. Uncovered: speech that no final covers. CPU: the target's, for each second of audio.";

impl Tell for SttReal {
    fn workload(&self) -> &'static str {
        "stt-real"
    }

    fn nouns(&self, _trial: &Trial) -> Nouns {
        Nouns {
            frames: "frames",
            answers: "finals",
            messages: "finals",
        }
    }

    fn repeated_with<'a>(&self, parameters: &'a Parameters, started: bool) -> Vec<&'a str> {
        that_can_be_given(&PARAMETERS, parameters, started)
    }

    fn trial(&self, trial: &Trial) -> Option<Section> {
        record(trial).map(|record| section(&record))
    }

    fn in_lines(&self, trial: &Trial) -> Vec<Fact> {
        record(trial).map_or_else(Vec::new, |record| in_lines(&record))
    }

    fn properties(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let told = record(trial).map(|record| ("words", words_in_a_line(&record)));
        told.into_iter().collect()
    }

    fn side_by_side(&self, blocks: &mut Blocks, trials: &[Named<'_>]) {
        let rows: Vec<Row<'_>> = trials
            .iter()
            .filter_map(|named| {
                let record = record(named.trial)?;
                Some(Row {
                    trial: named.trial,
                    record,
                })
            })
            .collect();
        if rows.is_empty() {
            return;
        }
        let caption = "Streams of speech";
        blocks.push(Table::of_cells(caption, &columns(), &rows).hooked("streams-table"));
        blocks.note(SIDE_BY_SIDE);
        blocks.note(WORDS);
    }

    fn schemas(&self, generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        let mut schema = generator.subschema_for::<Option<SttRealRecord>>();
        let meaning = "Further results of workload `stt-real`; `null` for other workloads.";
        schema.insert("description".to_owned(), meaning.into());
        vec![(SECTION, schema)]
    }
}

fn record(trial: &Trial) -> Option<SttRealRecord> {
    trial.sections.get(SECTION)
}

fn section(record: &SttRealRecord) -> Section {
    let mut blocks = Blocks::default();
    let latencies = Table::new("Latency and lag in ms", LATENCY_COLUMNS).hooked("latencies");
    blocks.push(latencies.with_rows(latencies_of(&record.tally)));
    blocks.note(LATENCIES);
    blocks.push(Table::of_facts("Speech and words", facts(record)).hooked("words"));
    blocks.note(WORDS);
    for undecided in &record.undecided {
        blocks.note(format!("No gate decides: {undecided}."));
    }
    Section::new("speech", "Speech", blocks)
}

const LATENCY_COLUMNS: [&str; 7] = [
    "what",
    ">p50",
    ">p95",
    ">p99",
    ">max",
    ">samples",
    ">never came",
];

fn latencies_of(tally: &Tally) -> Vec<[String; 7]> {
    let row = |what: &str, of: &Durations| {
        let [p50, p95, p99, max] =
            [of.p50_ms, of.p95_ms, of.p99_ms, of.max_ms].map(|value| maybe(value, ms_digits));
        let (samples, never) = (count(of.samples), count(of.unanswered));
        [what.to_owned(), p50, p95, p99, max, samples, never]
    };
    let all = [
        ("first result", &tally.first_result),
        ("final", &tally.final_result),
        ("the server says that speech ended", &tally.endpoint),
        (
            "flush, or end of audio, to the last final",
            &tally.finalisation,
        ),
        ("lag", &tally.lag),
    ];
    let observed = all.into_iter().filter(|(_, of)| of.samples > 0);
    observed.map(|(what, of)| row(what, of)).collect()
}

fn facts(record: &SttRealRecord) -> Vec<(String, String)> {
    let tally = &record.tally;
    let growth = |ms_per_s| format!("{} ms per second", number(ms_per_s));
    let facts = [
        ("dialect", plain(&record.dialect)),
        ("clips", count(record.clips)),
        ("audio in a message", format!("{} ms", record.frame_ms)),
        ("utterances", count(tally.utterances)),
        ("speech", seconds(tally.speech_ms)),
        ("of it, in no final", seconds(tally.speech_uncovered_ms)),
        ("again in a final", seconds(tally.speech_duplicated_ms)),
        ("sessions without a word", count(tally.sessions_silent)),
        ("sessions without an end", count(tally.sessions_without_end)),
        (
            "finals with another session's words",
            count(tally.crosstalk),
        ),
        ("messages with words that may change", count(tally.interims)),
        ("messages of unknown types", count(tally.unknown_messages)),
        ("words said", count(tally.words.reference_words)),
        (
            "heard as others, added, missing",
            format!(
                "{}, {}, {}",
                count(tally.words.substitutions),
                count(tally.words.insertions),
                count(tally.words.deletions)
            ),
        ),
        ("word error rate", rate(tally.wer)),
        (
            "word error rate without load",
            maybe(record.unloaded_wer, |share| {
                format!("{:.1} %", 100.0 * share)
            }),
        ),
        ("points above that", points(tally.wer_excess_points)),
        (
            "growth of lag, certain and lasting",
            maybe(tally.lag_growth_ms_per_s, growth),
        ),
    ];
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    facts.into_iter().map(owned).collect()
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a trial")]
fn seconds(ms: u64) -> String {
    format!("{} s", number(ms as f64 / 1e3))
}

fn rate(share: Option<Interval>) -> String {
    share.map_or_else(
        || "unknown".to_owned(),
        |Interval { value, low, high }| {
            let [value, low, high] = [value, low, high].map(|share| 100.0 * share);
            format!("{value:.1} % ({low:.1} to {high:.1})")
        },
    )
}

fn points(excess: Option<Interval>) -> String {
    excess.map_or_else(
        || "unknown".to_owned(),
        |Interval { value, low, high }| format!("{value:.1} ({low:.1} to {high:.1})"),
    )
}

fn words_in_a_line(record: &SttRealRecord) -> String {
    let tally = &record.tally;
    format!(
        "{} utterances, {} words, error rate {}; {} in no final",
        count(tally.utterances),
        count(tally.words.reference_words),
        rate(tally.wer),
        seconds(tally.speech_uncovered_ms)
    )
}

fn in_lines(record: &SttRealRecord) -> Vec<Fact> {
    let tally = &record.tally;
    let short = |of: &Durations| {
        let quantiles = [of.p50_ms, of.p95_ms];
        quantiles.map(|value| maybe(value, ms_digits)).join("/")
    };
    let mut latencies = format!(
        "first result p50/p95 {} ms, final {} ms",
        short(&tally.first_result),
        short(&tally.final_result)
    );
    if tally.lag.samples > 0 {
        latencies += &format!(", lag {} ms", short(&tally.lag));
    }
    vec![
        Fact::new("speech", latencies),
        Fact::new("words", words_in_a_line(record)),
    ]
}

fn cpu(trial: &Trial) -> Option<f64> {
    let used = trial.target_resources.as_ref()?;
    used.cpu_us_per_session_second
}

/// A trial with its record.
struct Row<'a> {
    trial: &'a Trial,
    record: SttRealRecord,
}

fn columns<'a>() -> [Cells<Row<'a>>; 10] {
    fn median(of: &Durations) -> String {
        maybe(of.p50_ms, ms_digits)
    }
    [
        Cells::new("target", true, |row: &Row<'_>| target(&row.trial.target)),
        Cells::new(">sessions", true, |row| count(row.trial.sessions.into())),
        Cells::new("verdict", true, |row| verdict(row.trial)),
        Cells::new(">first result p50", true, |row| {
            median(&row.record.tally.first_result)
        }),
        Cells::new(">final p50", true, |row| {
            median(&row.record.tally.final_result)
        }),
        Cells::new(">lag p95", true, |row| {
            maybe(row.record.tally.lag.p95_ms, ms_digits)
        }),
        Cells::new(">uncovered", false, |row| {
            seconds(row.record.tally.speech_uncovered_ms)
        }),
        Cells::new(">word error rate", true, |row| rate(row.record.tally.wer)),
        Cells::new(">points above unloaded", false, |row| {
            points(row.record.tally.wer_excess_points)
        }),
        Cells::new(">CPU", false, |row| maybe(cpu(row.trial), us)),
    ]
}
