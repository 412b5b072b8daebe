//! Turns the flags of a workload's parameters into its plan, and keeps apart what is not one load.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use plimsoll_core::record::LeftOut;
use plimsoll_host::machine::Limits;
use plimsoll_lab::manifest::Manifest;
use plimsoll_lab::trial::Subject;
use plimsoll_lab::trial::processes::PROCESSES_MAX;
use plimsoll_workload::{Kind, Parameter, Plan, Value, Workload};

use crate::args::{LOAD_MAX, LoadArgs, Which};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::{secrets, workloads};

/// Connections from one address: slightly fewer than the ports that Linux assigns by itself.
const CONNECTIONS_PER_ADDRESS: u64 = 25_000;

/// The plan, for a target with this manifest or for a server that is already running.
pub(crate) fn plan(
    which: &Which,
    load: &LoadArgs,
    manifest: Option<&Manifest>,
) -> Result<Arc<dyn Plan>, Failure> {
    let workload = which.workload;
    let given = secrets::with_secret_files(&load.parameters)?;
    let mut values = given.settled(workload, workloads::ALL, manifest)?;
    if manifest.is_none() {
        secrets::add_of_environment(workload, &mut values)?;
    }
    Ok(match manifest {
        Some(manifest) => workload.plan_for(values, manifest)?,
        None => workload.plan(values)?,
    })
}

/// The parameters that are properties of a target.
fn of_targets(workload: &dyn Workload) -> impl Iterator<Item = &'static Parameter> {
    let rows = workload.parameters().iter();
    rows.filter(|row| row.of_target.is_some())
}

/// Gives a load that looks for the machine's limit enough loopback addresses for every connection that its client can
/// hold, unless the user gave some.
pub(super) fn spread_over_addresses(
    plan: Arc<dyn Plan>,
    subject: &Subject,
) -> Result<Arc<dyn Plan>, Failure> {
    let on_loopback = match subject {
        Subject::Started(_) => true,
        Subject::Running { url, .. } => url.address.is_ipv4() && url.address.ip().is_loopback(),
    };
    let workload = plan.workload();
    let mut rows = workload.parameters().iter();
    let row = rows.find(|row| matches!(row.kind, Kind::Addresses));
    let Some(row) = row.filter(|_| plan.looks_for_the_machines_limit()) else {
        return Ok(plan);
    };
    if !plan.source_addresses().is_empty() || !on_loopback {
        return Ok(plan);
    }
    let of_a_process = Limits::of_this_process().sessions_of_a_process();
    let connections = of_a_process.saturating_mul(PROCESSES_MAX.into());
    let needed = connections.min(LOAD_MAX.into()) / CONNECTIONS_PER_ADDRESS + 1;
    if needed <= 1 {
        return Ok(plan);
    }
    let last = u8::try_from(needed).unwrap_or(u8::MAX).min(254);
    let addresses = (1..=last).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    let addresses = Value::Addresses(addresses.collect());
    Ok(workload.plan(plan.values().clone().with(row.name, addresses))?)
}

/// Refuses what turns one trial into several measurements, for commands that search or compare: a series of plans, and
/// what runs after a trial. Refuses a crash too: what a target carries and costs is not measured over one.
pub(crate) fn must_be_one_load(plan: &dyn Plan, what: &str) -> Result<(), Failure> {
    if let Some(series) = plan.series()? {
        return Err(Failure::Usage(format!(
            "{} runs one trial per row, which only `plimsoll run` does; {what} {}",
            series.asked_by, series.one_at_a_time
        )));
    }
    if let Some(asked_by) = plan.decides_nothing() {
        return Err(Failure::Usage(format!(
            "{asked_by} is a closed loop, which every target keeps up with; {what} a load by the clock. Run it with `plimsoll run` to see how fast the target is"
        )));
    }
    if let Some(crash) = plan.crash() {
        return Err(Failure::Usage(format!(
            "{} crashes the target, so its load line and its costs say nothing; use `plimsoll run` with --sessions",
            crash.asked_by
        )));
    }
    match plan.afterwards() {
        Some(afterwards) => Err(Failure::Usage(format!(
            "{} does not affect the verdict and doubles the time; {what} trials without it. Run the load once more with `plimsoll run` for it",
            afterwards.asked_by
        ))),
        None => Ok(()),
    }
}

/// With `--all`, keeps the targets that have the same properties: the requested ones, otherwise the usual ones. The
/// same load is not the same work for the others.
pub(crate) fn of_one_kind(
    catalogue: Catalogue,
    workload: &dyn Workload,
    load: &LoadArgs,
) -> Result<Catalogue, Failure> {
    let Catalogue {
        mut targets,
        mut left_out,
    } = catalogue;
    for row in of_targets(workload) {
        let given = load.parameters.given.get(row.name).cloned();
        let Some(wanted) = given.or_else(|| row.usual_value()) else {
            continue;
        };
        let verb = row.of_target.unwrap_or_default();
        let (same, others): (Vec<_>, Vec<_>) = targets
            .into_iter()
            .partition(|manifest| row.of(manifest).as_ref() == Some(&wanted));
        targets = same;
        left_out.extend(others.into_iter().map(|manifest| {
            let its = row
                .of(&manifest)
                .map_or_else(String::new, |its| its.to_string());
            LeftOut {
                name: manifest.name,
                reason: format!("{verb} {its}; measure it with --{} {its}", row.flag()),
            }
        }));
        if targets.is_empty() {
            return Err(Failure::Usage(format!(
                "no target that {verb} {wanted} runs here; see plimsoll list"
            )));
        }
    }
    Ok(Catalogue { targets, left_out })
}

/// With `--all`, leaves out the targets that do not have what the load asks for, or that the first one must not be compared
/// with, each with the reason.
///
/// # Errors
/// None has it: the first reason.
pub(crate) fn that_fit(
    catalogue: Catalogue,
    which: &Which,
    load: &LoadArgs,
) -> Result<Catalogue, Failure> {
    let Catalogue {
        targets,
        mut left_out,
    } = catalogue;
    let mut fit: Vec<Manifest> = Vec::new();
    let mut first_plan: Option<Arc<dyn Plan>> = None;
    let mut first = None;
    for manifest in targets {
        let like_the_first = |plan: Arc<dyn Plan>| match (&first_plan, fit.first()) {
            (Some(known), Some(other)) => like((other, &**known), (&manifest, &*plan)),
            _ => {
                first_plan = Some(plan);
                Ok(())
            }
        };
        match plan(which, load, Some(&manifest)).and_then(like_the_first) {
            Ok(()) => fit.push(manifest),
            // Whatever the user can do something about; the rest is no matter of this target.
            Err(error) if error.exit_code() == 2 => {
                let reason = error.to_string();
                first.get_or_insert_with(|| reason.clone());
                left_out.push(LeftOut {
                    name: manifest.name,
                    reason,
                });
            }
            Err(other) => return Err(other),
        }
    }
    match first {
        Some(reason) if fit.is_empty() => Err(Failure::Usage(reason)),
        _ => Ok(Catalogue {
            targets: fit,
            left_out,
        }),
    }
}

/// Refuses two targets whose plans must not be compared.
fn like(
    (first, its): (&Manifest, &dyn Plan),
    (other, others): (&Manifest, &dyn Plan),
) -> Result<(), Failure> {
    its.must_be_like(others)
        .map_err(|why| Failure::Usage(format!("{} and {}: {why}", first.name, other.name)))
}

/// Refuses targets of two kinds in one ranking or comparison.
pub(crate) fn must_be_alike(
    which: &Which,
    load: &LoadArgs,
    targets: &[Manifest],
) -> Result<(), Failure> {
    let Some((first, others)) = targets.split_first() else {
        return Ok(());
    };
    for row in of_targets(which.workload) {
        let verb = row.of_target.unwrap_or_default();
        if let Some(other) = others.iter().find(|other| row.of(other) != row.of(first)) {
            let told = |manifest: &Manifest| {
                let its = row
                    .of(manifest)
                    .map_or_else(String::new, |its| its.to_string());
                format!("{} {verb} {its}", manifest.name)
            };
            return Err(Failure::Usage(format!(
                "{}, {}: the same load is not the same work; measure each by itself",
                told(first),
                told(other)
            )));
        }
    }
    let its = plan(which, load, Some(first))?;
    for other in others {
        like((first, &*its), (other, &*plan(which, load, Some(other))?))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command, RunArgs};
    use clap::Parser;
    use plimsoll_core::profile::Profile;
    use plimsoll_workload::{Usual, Values};

    fn run_args(line: &str) -> Result<RunArgs, String> {
        let words = format!("plimsoll run x --sessions 5 --workload {line}");
        let args = Args::try_parse_from(words.split_whitespace());
        match args.map_err(|error| error.to_string())?.command {
            Command::Run(run) => Ok(run),
            other => panic!("{other:?}"),
        }
    }

    /// The plan for a server that is already running.
    fn planned(line: &str) -> Result<Arc<dyn Plan>, String> {
        let run = run_args(line)?;
        plan(&run.which, &run.load, None).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_given_its_own_values_is_the_same() {
        for line in [
            "stt",
            "echo",
            "echo --period-ms 7",
            "ws",
            "ws --test storm --poisson",
            "ws --test hold --message-bytes 99",
            "ws --dialect wse --test throughput --format msgpack",
            "ws --dialect wse --test matrix",
            "ws --test fanout --rate 2.5",
            "ws --closed-loop --source-addresses 127.0.0.1,127.0.0.2",
            "http",
            "http --closed-loop --headers browser --poisson --warm-up-rate 5",
            "http --test post --body-bytes 10 --dispatch fixed",
            "http --test connect --connections 7",
            "http --protocol h2c --streams 3",
            "http --test sizes",
            "http --test connections --body-bytes 64",
            "broker --dialect nats --confirm-at disk --deliver-at cache",
            "broker --test fanout --rate 5",
            "broker --test sizes --dialect mqtt",
            "broker --test windows --burst-on-ms 5 --burst-off-ms 7",
        ] {
            let first = planned(line).unwrap();
            let again = first.workload().plan(first.values().clone()).unwrap();
            assert_eq!(again.values(), first.values(), "{line}");
            let json = serde_json::to_string(first.values()).unwrap();
            let read: Values = serde_json::from_str(&json).unwrap();
            assert_eq!(read, *first.values(), "{line}");
            for row in first
                .series()
                .unwrap()
                .map_or_else(Vec::new, |series| series.rows)
            {
                let again = row.plan.workload().plan(row.plan.values().clone()).unwrap();
                assert_eq!(again.values(), row.plan.values(), "{line}: {}", row.name);
            }
        }
    }

    /// Values of a row that are worth a try.
    fn some_of(row: &Parameter) -> Vec<Value> {
        let texts: Vec<String> = match row.kind {
            Kind::Whole { least, .. } => [least, 50, 1_000].map(|n| n.to_string()).into(),
            Kind::OneOf(choices) => choices
                .iter()
                .map(|choice| choice.name.to_owned())
                .collect(),
            Kind::Flag => vec!["true".to_owned()],
            Kind::Number => vec!["0.5".to_owned()],
            Kind::Addresses => vec!["127.0.0.1,127.0.0.2".to_owned()],
            Kind::Secret => vec!["s".repeat(40)],
            // There is none here.
            Kind::File => Vec::new(),
        };
        let values = texts.iter().map(|text| row.kind.parse(text).unwrap());
        values.collect()
    }

    #[test]
    fn every_usual_value_is_one_of_its_parameter() {
        for row in workloads::ALL.iter().flat_map(|one| one.parameters()) {
            let is_told = matches!(row.usual, Usual::Value(_));
            assert_eq!(row.usual_value().is_some(), is_told, "{}", row.name);
        }
    }

    #[test]
    fn what_is_settled_and_planned_stays_as_it_is() {
        for workload in workloads::ALL.iter().copied() {
            let rows = workload.parameters();
            let choices = |row: &&Parameter| matches!(row.kind, Kind::OneOf(_));
            let mut combinations = vec![Values::default()];
            for row in rows.iter().filter(choices) {
                let with = |values: &Values| {
                    let values = values.clone();
                    some_of(row)
                        .into_iter()
                        .map(move |value| values.clone().with(row.name, value))
                };
                let more: Vec<_> = combinations.iter().flat_map(with).collect();
                combinations.extend(more);
            }
            let (mut settled, mut planned) = (0, 0);
            for given in combinations {
                for row in rows {
                    for value in some_of(row) {
                        let given = given.clone().with(row.name, value);
                        let Ok(once) = given.settled(workload, workloads::ALL, None) else {
                            continue;
                        };
                        settled += 1;
                        let again = once.clone().settled(workload, workloads::ALL, None);
                        assert_eq!(again.as_ref(), Ok(&once));
                        let Ok(plan) = workload.plan(once) else {
                            continue;
                        };
                        planned += 1;
                        let again = workload.planned(plan.values().clone()).unwrap();
                        assert_eq!(again.values(), plan.values());
                    }
                }
            }
            let name = workload.about().name;
            let has_more = rows.iter().any(|row| !some_of(row).is_empty());
            assert_eq!(planned > 0, has_more, "{name}: {settled} settled");
        }
    }

    #[test]
    fn a_secret_of_another_workload_is_refused_from_a_file_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "canary-of-a-file").unwrap();
        let text = planned(&format!("echo --token-secret-file {}", file.display())).unwrap_err();
        assert_eq!(text, "--token-secret is for --workload ws, this is echo");
    }

    #[test]
    fn a_parameter_that_has_no_meaning_is_refused() {
        for (line, words) in [
            ("ws --rate 5", "--rate is for --test fanout, this is ping"),
            (
                "ws --test storm --connections 5",
                "throughput, matrix, formats",
            ),
            ("ws --test formats --format zlib", "--test throughput"),
            ("ws --test matrix --message-bytes 99", "--message-bytes"),
            ("ws --test hold --closed-loop", "--test ping, throughput"),
            ("ws --test throughput --period-ms 5", "--period-ms"),
            (
                "ws --test throughput --dialect wse --format msgpack --message-bytes 99",
                "msgpack messages always have 137 bytes",
            ),
            ("ws --dialect wse --message-bytes 99", "leave the flag out"),
            ("ws --token-secret x", "--dialect wse"),
            ("ws --dialect wse --token-secret x", "32"),
            ("ws --message-bytes 5", "--message-bytes"),
            (
                "ws --audio x.wav",
                "--audio is for --workload stt, this is ws",
            ),
            ("ws --test fanout --rate 0", "--rate 0"),
            (
                "echo --test storm",
                "--test is for --workload ws, http, broker, this is echo",
            ),
            ("stt --audio nowhere.wav", "--audio nowhere.wav"),
            ("http --test storm", "--test storm: give one of rate, post"),
            (
                "http --streams 5",
                "--streams is for --protocol h2c, this is h1",
            ),
            (
                "http --test connect --protocol h2c",
                "leave --protocol h2c out",
            ),
            (
                "http --test connect --closed-loop",
                "--test rate, post, json",
            ),
            (
                "http --test connect --dispatch fixed",
                "--test rate, post, json, sizes, connections",
            ),
            ("http --test sizes --body-bytes 64", "this is sizes"),
            (
                "http --test connections --connections 5",
                "this is connections",
            ),
            ("http --test json --body-bytes 64", "this is json"),
            ("http --test sizes --warm-up-rate 5", "this is sizes"),
            (
                "http --expect-body nowhere.html",
                "--expect-body nowhere.html",
            ),
            ("http --expect-body /dev/null", "the file is empty"),
            (
                "http --test post --expect-body x",
                "--test rate, this is post",
            ),
        ] {
            let text = planned(line).expect_err(line);
            assert!(
                text.contains(words) && !text.contains('\n'),
                "{line}: {text}"
            );
        }
        let text = planned("ws --period-ms 0").expect_err("parsed");
        assert!(text.contains("from 1 to"), "{text}");
    }

    #[test]
    fn a_matrix_has_a_row_for_each_size_and_formats_for_each_format() {
        let rows = |line: &str| planned(line).unwrap().series().unwrap().unwrap().rows;
        for dialect in ["", " --dialect wse"] {
            let sizes = rows(&format!("ws --test matrix{dialect}"));
            let names: Vec<_> = sizes.iter().map(|row| row.name.as_str()).collect();
            assert_eq!(
                names,
                [
                    "64 B", "256 B", "1,024 B", "4,096 B", "16,384 B", "65,536 B"
                ]
            );
            let formats = rows(&format!("ws --test formats{dialect}"));
            let names: Vec<_> = formats.iter().map(|row| row.name.as_str()).collect();
            assert_eq!(names, ["json", "msgpack", "zlib"]);
        }
        let names = |line: &str| -> Vec<String> {
            let rows = rows(line).into_iter();
            rows.map(|row| row.name).collect()
        };
        let sizes = [
            "2 B",
            "64 B",
            "1,024 B",
            "16,384 B",
            "65,536 B",
            "1,048,576 B",
        ];
        assert_eq!(names("http --test sizes"), sizes);
        let numbers = [10, 100, 1_000, 10_000];
        let found = names("http --test connections");
        assert_eq!(
            found,
            ["10", "100", "1,000", "10,000"].map(|n| format!("{n} connections"))
        );
        let plans = rows("http --test connections --body-bytes 64").into_iter();
        let told: Vec<_> = plans
            .map(|row| {
                (
                    row.plan.demand(5, &Profile::quick()).sessions,
                    row.plan.told().path,
                )
            })
            .collect();
        assert_eq!(told, numbers.map(|number| (number, "/bytes/64".into())));
        // A MessagePack session is requested by its path.
        let formats = rows("ws --test formats --dialect wse");
        assert_ne!(formats[0].plan.told().path, formats[1].plan.told().path);
        assert!(planned("ws").unwrap().series().unwrap().is_none());
    }

    #[test]
    fn several_loads_in_one_are_no_search() {
        let refused = |line: &str| {
            must_be_one_load(&*planned(line).unwrap(), "a search takes")
                .map_err(|error| error.to_string())
        };
        assert!(refused("ws --test throughput").is_ok());
        let text = refused("ws --test matrix").unwrap_err();
        assert!(
            text.ends_with("--test throughput --message-bytes N"),
            "{text}"
        );
        let text = refused("ws --test formats").unwrap_err();
        assert!(text.ends_with("--test throughput --format F"), "{text}");
        for (test, remedy) in [
            ("sizes", "--test rate --body-bytes N"),
            ("connections", "--test rate --connections N"),
        ] {
            let text = refused(&format!("http --test {test}")).unwrap_err();
            assert!(text.ends_with(remedy), "{text}");
        }
        assert!(refused("http --test connect").is_ok());
        let text = refused("ws --test ping --closed-loop").unwrap_err();
        assert!(text.ends_with("for it"), "{text}");
    }
}
