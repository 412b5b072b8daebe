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
        "voice",
        "voice --test calls --poisson --call-s 20",
        "voice --test stages --stages 5x10,7x20",
        "voice --test faults --fault stress --tts-provider openai --chunk-ms 20",
        "stt-real",
        "stt-real --dialect vllm-realtime --model m --param a=b --frame-ms 20 --use-case agent",
        "stt-real --dialect deepgram --turns client --language de --mine",
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
        Kind::OneOf(choices) | Kind::OneOfOrFile(choices) => choices
            .iter()
            .map(|choice| choice.name.to_owned())
            .collect(),
        Kind::Flag => vec!["true".to_owned()],
        Kind::Number => vec!["0.5".to_owned()],
        Kind::Fields => vec!["model=x".to_owned()],
        Kind::Addresses => vec!["127.0.0.1,127.0.0.2".to_owned()],
        Kind::Secret => vec!["s".repeat(40)],
        // Only its workload knows what others it could have.
        Kind::Text => match row.usual {
            Usual::Value(usual) => vec![usual.to_owned()],
            _ => Vec::new(),
        },
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
        let choices = |row: &&Parameter| !row.kind.choices().is_empty();
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
        // All of them would take minutes. These are spread over them, for this stride is prime.
        let count = combinations.len().min(400);
        let spread = (0..count).map(|nth| &combinations[nth * 7_919 % combinations.len()]);
        let (mut settled, mut planned) = (0, 0);
        for given in spread {
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
            "--test is for --workload ws, http, broker, voice, this is echo",
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
