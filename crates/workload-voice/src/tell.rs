//! What a trial of workload `voice` tells: its turns, what the gateway added to each leg, the providers' account, and trials
//! side by side.

use plimsoll_core::durations::Durations;
use plimsoll_core::latency::Quantiles;
use plimsoll_core::record::{Parameters, Trial};
use plimsoll_document::words::{
    count, maybe, ms_digits, near_whole, number, percent, plain, target, verdict, whole_bytes,
};
use plimsoll_document::{Blocks, Cells, Fact, Named, Nouns, Section, Table, Tell};
use plimsoll_workload::parameter::that_can_be_given;
use schemars::{Schema, SchemaGenerator};

use crate::Voice;
use crate::load::Test;
use crate::outcome::{Counts, SECTION, VoiceRecord};
use crate::parameters::PARAMETERS;
use crate::rest::{self, RequestRecord};
use crate::sides;
use crate::slow::SlowRecord;
use crate::tally::LegRecord;

const LEGS: &str = "Each turn has two legs. The result is due with the last block of the utterance, the first audio with the text to be spoken. Overhead is the time of a leg without the time that the provider took for that request, so it is what the gateway and the network added; it is never a difference of percentiles. In is its part from the schedule until the provider had read the request, out that from the provider's handing over to the arrival. What never came counts with the time we waited, a lower bound.";
const TURNS: &str = "Good: complete, with at most 250 ms of overhead on each leg. Gap: a player that is 60 ms behind would have run dry.";

const STAGES: &str = "Connect: from the schedule to the answer to the upgrade. Ready: from `config`. Turn: both legs together, from the schedule, in ms; its overhead is that of both legs. Due and goodput count the turns due in the window, over its length.";

impl Tell for Voice {
    fn workload(&self) -> &'static str {
        "voice"
    }

    fn nouns(&self, trial: &Trial) -> Nouns {
        let of_requests = record(trial).is_some_and(|voice| is_of_requests(&voice));
        if of_requests {
            return Nouns {
                frames: "requests",
                answers: "right answers",
                messages: "right answers",
            };
        }
        Nouns {
            frames: "turns",
            answers: "complete turns",
            messages: "complete turns",
        }
    }

    fn repeated_with<'a>(&self, parameters: &'a Parameters, started: bool) -> Vec<&'a str> {
        that_can_be_given(&PARAMETERS, parameters, started)
    }

    fn trial(&self, trial: &Trial) -> Option<Section> {
        record(trial).map(|voice| section(trial, &voice))
    }

    fn in_lines(&self, trial: &Trial) -> Vec<Fact> {
        record(trial).map_or_else(Vec::new, |voice| in_lines(trial, &voice))
    }

    fn companions(&self, trial: &Trial) -> Option<Section> {
        let voice = record(trial)?;
        let mut blocks = Blocks::default();
        blocks.push(providers(&voice)?);
        blocks.push(sides::table(trial));
        Some(Section::new("providers", "Mock providers", blocks))
    }

    fn companions_in_lines(&self, trial: &Trial) -> Vec<Fact> {
        let told = trial.companion.as_ref().map(|used| {
            let late = maybe(used.answer_lateness.p99_us.map(|us| us / 1e3), ms_digits);
            format!(
                "{} requests, {} of a core, answers later than drawn p99 {late} ms",
                count(used.requests),
                percent(used.busy_share)
            )
        });
        let fact = told.map(|told| Fact::new("providers", told));
        fact.into_iter().collect()
    }

    fn properties(&self, trial: &Trial) -> Vec<(&'static str, String)> {
        let told = record(trial).map(|voice| [("goodput", goodput_in_a_line(trial, &voice))]);
        told.into_iter().flatten().collect()
    }

    fn side_by_side(&self, blocks: &mut Blocks, trials: &[Named<'_>]) {
        for rows in groups(trials) {
            let caption = format!(
                "Test {} of {}",
                plain(&rows[0].voice.test),
                rows[0].target()
            );
            if is_of_requests(&rows[0].voice) {
                let table = Table::of_cells(caption, &columns_of_requests(), &rows);
                blocks.push(table.hooked("test-table"));
                blocks.note(rest::tell::REQUESTS);
                continue;
            }
            blocks.push(Table::of_cells(caption, &columns(), &rows).hooked("test-table"));
            blocks.note(STAGES);
            let legs = Table::of_cells("The legs of these turns, in ms", &leg_columns(), &rows);
            blocks.full(legs);
            blocks.note(TURNS);
        }
    }

    fn schemas(&self, generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        let mut schema = generator.subschema_for::<Option<VoiceRecord>>();
        let meaning = "Further results of workload `voice`; `null` for other workloads.";
        schema.insert("description".to_owned(), meaning.into());
        vec![(SECTION, schema)]
    }
}

fn record(trial: &Trial) -> Option<VoiceRecord> {
    trial.sections.get(SECTION)
}

fn good_per_s(trial: &Trial) -> Option<f64> {
    trial.goodput.map(|goodput| goodput.good_per_s)
}

/// Whether the trial's frames are requests, because there were no callers.
fn is_of_requests(voice: &VoiceRecord) -> bool {
    Test::by_name(&voice.test).is_some_and(Test::is_of_requests)
}

fn section(trial: &Trial, voice: &VoiceRecord) -> Section {
    let mut blocks = Blocks::default();
    if is_of_requests(voice) {
        rest::tell::append(&voice.tally.requests, &mut blocks);
        return Section::new("requests", "Requests", blocks);
    }
    blocks.push(Table::of_facts("Turns", turns(trial, voice)).hooked("turns"));
    blocks.note(TURNS);
    let legs = Table::new("Latency and overhead in ms", LEG_COLUMNS).hooked("legs");
    blocks.push(legs.with_rows(legs_of(voice)));
    blocks.note(LEGS);
    if !voice.tally.requests.is_empty() {
        rest::tell::append(&voice.tally.requests, &mut blocks);
    }
    Section::new("turns", "Turns", blocks)
}

fn turns(trial: &Trial, voice: &VoiceRecord) -> Vec<(String, String)> {
    let tally = &voice.tally;
    let of_all = |part: u64| format!("{} ({})", count(part), near_whole(share(part, tally.turns)));
    let mut facts = vec![
        ("due", count(tally.turns)),
        ("complete", of_all(tally.complete)),
        ("good", of_all(tally.good)),
        ("good per second", maybe(good_per_s(trial), number)),
        ("with a gap in the reply", of_all(tally.with_gap)),
        ("interrupted by the caller", of_all(tally.interrupted)),
    ];
    if voice.fault.is_some() || tally.recovery_s.is_some() {
        let recovery = tally.recovery_s.map(|s| format!("{} s", number(s)));
        let never = || "never within the window".to_owned();
        facts.push((
            "until turns were good again",
            recovery.unwrap_or_else(never),
        ));
    }
    if let Some(slow) = tally.slow {
        facts.push(("of slow callers, apart", slow_in_a_line(&slow)));
    }
    let mut facts: Vec<_> = facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let errors = tally.errors.iter();
    facts.extend(errors.map(|(kind, times)| (format!("error {}", plain(kind)), count(*times))));
    facts
}

pub(crate) const LEG_COLUMNS: [&str; 8] = [
    "what",
    ">p50",
    ">p95",
    ">p99",
    ">p99.9",
    ">max",
    ">samples",
    ">never came",
];

fn legs_of(voice: &VoiceRecord) -> Vec<[String; 8]> {
    let tally = &voice.tally;
    let legs = [
        ("result", &tally.result),
        ("first audio", &tally.first_audio),
    ];
    let legs = legs
        .into_iter()
        .flat_map(|(name, leg)| rows_of_leg(name, leg));
    let others = [
        row_of("config to ready", &tally.ready),
        row_of("barge-in to the last stale byte", &tally.barge_in),
    ];
    legs.chain(others).collect()
}

fn slow_in_a_line(slow: &SlowRecord) -> String {
    format!(
        "{} callers, {} died; {} turns due, {} complete, {} good, {} with a gap; {} of replies dropped",
        count(slow.callers),
        count(slow.died),
        count(slow.turns),
        count(slow.complete),
        count(slow.good),
        count(slow.with_gap),
        whole_bytes(slow.dropped_bytes)
    )
}

/// A leg whose providers mark what they hand over. Its ways in and out are known only where the marks are of this machine's
/// clock.
pub(crate) fn rows_of_leg(name: &str, leg: &LegRecord) -> Vec<[String; 8]> {
    let parts = [
        ("end to end", &leg.end_to_end),
        ("provider", &leg.provider),
        ("overhead", &leg.overhead),
    ];
    let ways = [("in", &leg.to_provider), ("out", &leg.from_provider)];
    let ways = ways.into_iter().filter(|(_, way)| way.samples > 0);
    let all = parts.into_iter().chain(ways);
    all.map(|(part, of)| row_of(&format!("{name}, {part}"), of))
        .collect()
}

/// A row of [`LEG_COLUMNS`].
pub(crate) fn row_of(what: &str, of: &Durations) -> [String; 8] {
    let quantiles = [of.p50_ms, of.p95_ms, of.p99_ms, of.p999_ms, of.max_ms];
    let [p50, p95, p99, p999, max] = quantiles.map(|value| maybe(value, ms_digits));
    let (samples, never) = (count(of.samples), count(of.unanswered));
    [what.to_owned(), p50, p95, p99, p999, max, samples, never]
}

fn turns_in_a_line(trial: &Trial, voice: &VoiceRecord) -> String {
    let tally = &voice.tally;
    let per_second = maybe(good_per_s(trial), number);
    format!(
        "{} due, {} complete, {} good ({per_second} per second), {} with a gap, {} interrupted",
        count(tally.turns),
        count(tally.complete),
        count(tally.good),
        count(tally.with_gap),
        count(tally.interrupted),
    )
}

fn goodput_in_a_line(trial: &Trial, voice: &VoiceRecord) -> String {
    if !is_of_requests(voice) {
        return turns_in_a_line(trial, voice);
    }
    let tally = &voice.tally;
    let per_second = maybe(good_per_s(trial), number);
    format!(
        "{} due, {} right, {} good ({per_second} per second)",
        count(tally.of_requests(|kind| kind.due)),
        count(tally.of_requests(|kind| kind.right)),
        count(tally.of_requests(|kind| kind.good)),
    )
}

/// The median, the 95th and the 99th percentile.
pub(crate) fn in_short(of: &Durations) -> String {
    let quantiles = [of.p50_ms, of.p95_ms, of.p99_ms];
    quantiles.map(|value| maybe(value, ms_digits)).join("/")
}

/// The ways in and out of a leg.
fn ways_in_short(leg: &LegRecord) -> String {
    let (to, from) = (in_short(&leg.to_provider), in_short(&leg.from_provider));
    format!("in {to}, out {from}")
}

fn in_lines(trial: &Trial, voice: &VoiceRecord) -> Vec<Fact> {
    let tally = &voice.tally;
    let mut facts = vec![Fact::new("goodput", goodput_in_a_line(trial, voice))];
    if !is_of_requests(voice) {
        let legs = format!(
            "result p50/p95/p99 {} ms, first audio {} ms",
            in_short(&tally.result.overhead),
            in_short(&tally.first_audio.overhead)
        );
        facts.push(Fact::new("overhead", legs));
    }
    if tally.result.to_provider.samples > 0 {
        let [result, first] = [&tally.result, &tally.first_audio].map(ways_in_short);
        let told = format!("result p50/p95/p99 {result} ms; first audio {first} ms");
        facts.push(Fact::new("of it", told));
    }
    facts.extend(tally.requests.iter().map(rest::tell::in_a_line));
    if let Some(slow) = &tally.slow {
        facts.push(Fact::new("slow callers", slow_in_a_line(slow)));
    }
    if voice.fault.is_some() || tally.recovery_s.is_some() {
        let after = tally
            .recovery_s
            .map(|s| format!("turns were good again after {} s", number(s)));
        let never = || "turns were not good again within the window".to_owned();
        facts.push(Fact::new("recovery", after.unwrap_or_else(never)));
    }
    facts
}

fn providers(voice: &VoiceRecord) -> Option<Table> {
    const COLUMNS: [&str; 8] = [
        "provider",
        ">requests",
        ">completed",
        ">cancelled",
        ">by fault",
        ">results",
        ">blocks read",
        ">audio out",
    ];
    let row = |(name, counts): (&String, &Counts)| {
        let Counts {
            failed,
            timed_out,
            dropped,
            rate_limited,
            stalled,
            ..
        } = *counts;
        [
            plain(name),
            count(counts.requests),
            count(counts.completed),
            count(counts.cancelled),
            count(failed + timed_out + dropped + rate_limited + stalled),
            count(counts.results),
            count(counts.blocks_read),
            whole_bytes(counts.bytes_out),
        ]
    };
    let asked = !voice.providers.is_empty();
    asked.then(|| {
        let table = Table::new(
            "What the mock providers counted over the whole trial",
            COLUMNS,
        );
        table.with_rows(voice.providers.iter().map(row))
    })
}

/// A trial and its section.
struct Row<'a> {
    trial: &'a Trial,
    voice: VoiceRecord,
}

impl Row<'_> {
    /// Both legs together, from the schedule.
    fn turn(&self) -> &Quantiles {
        &self.trial.latency.newest.from_schedule
    }

    fn target(&self) -> String {
        target(&self.trial.target)
    }
}

/// The rows of each table, in order of appearance; lower loads first.
fn groups<'a>(trials: &[Named<'a>]) -> Vec<Vec<Row<'a>>> {
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for named in trials {
        let Some(voice) = record(named.trial) else {
            continue;
        };
        let row = Row {
            trial: named.trial,
            voice,
        };
        let alike = |group: &&mut Vec<Row<'_>>| {
            let first = &group[0];
            first.target() == row.target() && first.voice.test == row.voice.test
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|row| row.trial.sessions);
    }
    groups
}

fn ms(of: Option<f64>) -> String {
    maybe(of, ms_digits)
}

fn load(row: &Row<'_>) -> String {
    count(row.trial.sessions.into())
}

/// The turns of each trial, whatever its verdict.
fn columns<'a>() -> Vec<Cells<Row<'a>>> {
    vec![
        Cells::new(">load", true, load),
        Cells::new("verdict", true, |row: &Row<'_>| verdict(row.trial)),
        Cells::new(">connect p95", false, |row| {
            ms(row.voice.tally.connect.p95_ms)
        }),
        Cells::new(">ready p95", true, |row| ms(row.voice.tally.ready.p95_ms)),
        Cells::new(">turn p50", true, |row| ms(row.turn().p50_ms)),
        Cells::new(">p90", false, |row| ms(row.turn().p90_ms)),
        Cells::new(">p99", true, |row| ms(row.turn().p99_ms)),
        Cells::new(">p99.9", false, |row| ms(row.turn().p999_ms)),
        Cells::new(">overhead p50", true, |row| {
            ms(row.voice.tally.overhead.p50_ms)
        }),
        Cells::new(">p90", false, |row| ms(row.voice.tally.overhead.p90_ms)),
        Cells::new(">p99", true, |row| ms(row.voice.tally.overhead.p99_ms)),
        Cells::new(">p99.9", false, |row| ms(row.voice.tally.overhead.p999_ms)),
        Cells::new(">turns", true, |row| count(row.voice.tally.turns)),
        Cells::new(">due /s", true, |row| {
            maybe(row.trial.goodput.map(|of| of.due_per_s), number)
        }),
        Cells::new(">goodput /s", true, |row| {
            maybe(good_per_s(row.trial), number)
        }),
        Cells::new(">failed", true, |row| {
            near_whole(row.trial.goodput.map(|of| of.failed_share))
        }),
        Cells::new(">client", true, |row| percent(row.trial.client.cpu_share)),
    ]
}

/// What the gates judge, leg by leg.
fn leg_columns<'a>() -> Vec<Cells<Row<'a>>> {
    vec![
        Cells::new(">load", true, load),
        Cells::new("verdict", true, |row: &Row<'_>| verdict(row.trial)),
        Cells::new(">result p50", true, |row| {
            ms(row.voice.tally.result.end_to_end.p50_ms)
        }),
        Cells::new(">its overhead p95", true, |row| {
            ms(row.voice.tally.result.overhead.p95_ms)
        }),
        Cells::new(">p99", true, |row| {
            ms(row.voice.tally.result.overhead.p99_ms)
        }),
        Cells::new(">first audio p50", true, |row| {
            ms(row.voice.tally.first_audio.end_to_end.p50_ms)
        }),
        Cells::new(">its overhead p95", true, |row| {
            ms(row.voice.tally.first_audio.overhead.p95_ms)
        }),
        Cells::new(">gaps", true, |row| {
            near_whole(share(row.voice.tally.with_gap, row.voice.tally.turns))
        }),
    ]
}

/// Of trials without callers, which have requests of one kind.
fn columns_of_requests<'a>() -> Vec<Cells<Row<'a>>> {
    fn first<'b>(row: &'b Row<'_>) -> Option<&'b RequestRecord> {
        row.voice.tally.requests.first()
    }
    fn ms(row: &Row<'_>, of: fn(&LegRecord) -> Option<f64>) -> String {
        maybe(first(row).and_then(|kind| of(&kind.answer)), ms_digits)
    }
    vec![
        Cells::new(">load", true, |row: &Row<'_>| {
            count(row.trial.sessions.into())
        }),
        Cells::new("verdict", true, |row| verdict(row.trial)),
        Cells::new(">goodput /s", true, |row| {
            maybe(good_per_s(row.trial), number)
        }),
        Cells::new(">failed", true, |row| {
            near_whole(first(row).and_then(|kind| share(kind.due - kind.right, kind.due)))
        }),
        Cells::new(">p50", true, |row| ms(row, |leg| leg.end_to_end.p50_ms)),
        Cells::new(">p95", true, |row| ms(row, |leg| leg.end_to_end.p95_ms)),
        Cells::new(">p99", true, |row| ms(row, |leg| leg.end_to_end.p99_ms)),
        Cells::new(">overhead p95", false, |row| {
            ms(row, |leg| leg.overhead.p95_ms)
        }),
        Cells::new(">gaps", false, |row| {
            near_whole(first(row).and_then(|kind| share(kind.with_gap, kind.due)))
        }),
        Cells::new(">client", false, |row| percent(row.trial.client.cpu_share)),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "counts of a trial")]
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
