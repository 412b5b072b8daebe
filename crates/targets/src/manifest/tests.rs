//! The whole format, and what is refused. The texts name keys of some workloads.

use super::*;

pub(crate) const RUST_AXUM: &str = r#"
name = "rust-axum"
workload = "stt"
tier = "idiomatic"
language = "Rust"
description = "Tokio + axum, hyper h2c client"
threads_per_vcpu = 1
inference_transport = "h2c"
[build]
command = ["cargo", "build", "--release", "--locked"]
[[build.needs]]
tool = "cargo"
version_command = ["cargo", "--version"]
install = "install Rust 1.88 or newer with rustup (https://rustup.rs)"
[run]
command = ["target/release/rust-axum"]
[run.env]
MALLOC_ARENA_MAX = "2"
[test]
command = ["sh", "test.sh"]
"#;

/// The keys of three workloads.
pub(crate) fn keys(workload: &str) -> Option<Keys> {
    match workload {
        "stt" => Some(Keys::of(&[
            Key {
                name: "inference_transport",
                takes: Takes::OneOf(&["h2c", "http1"]),
                required: true,
            },
            Key {
                name: "asks_inference",
                takes: Takes::TrueUnlessTest {
                    without: "its inference server",
                },
                required: false,
            },
        ])),
        "ws" => Some(Keys::of(&[Key {
            name: "dialect",
            takes: Takes::OneOf(&["echo", "wse"]),
            required: false,
        }])),
        "toy" => Some(Keys {
            own: &TOY,
            rule: |manifest| match manifest.list("colours") {
                Some(_) if manifest.list("reasons").is_none() => {
                    Err("colours need reasons; add the key".into())
                }
                _ => Ok(()),
            },
        }),
        _ => None,
    }
}

/// A key of each further kind.
const TOY: [Key; 4] = [
    Key {
        name: "colours",
        takes: Takes::SomeOf(&["red", "green"]),
        required: false,
    },
    Key {
        name: "lengths",
        takes: Takes::SomeOfNumbers(&[64, 1_024]),
        required: false,
    },
    Key {
        name: "reasons",
        takes: Takes::Lines,
        required: false,
    },
    Key {
        name: "back_door",
        takes: Takes::Port {
            variable: "BACK_PORT",
        },
        required: false,
    },
];

fn parse(text: &str) -> std::result::Result<Manifest, String> {
    Manifest::parse(text, Path::new("/t/stt/rust-axum/target.toml"), keys)
}

#[test]
fn the_whole_format_is_read() {
    let manifest = parse(RUST_AXUM).expect("valid");
    assert_eq!(manifest.tier, Tier::Idiomatic);
    assert_eq!(manifest.property("inference_transport"), Some("h2c"));
    assert_eq!(manifest.run.env["MALLOC_ARENA_MAX"], "2");
    assert_eq!(
        manifest.build.as_ref().expect("build").needs[0].tool,
        "cargo"
    );
    assert!(!manifest.optional && !manifest.denies("asks_inference"));
    assert_eq!(manifest.folder(), Path::new("/t/stt/rust-axum"));
    assert_eq!(manifest.run.stop_signal, StopSignal::Term);
    let quit = RUST_AXUM.replace("[run]\n", "[run]\nstop_signal = \"QUIT\"\n");
    let quit = parse(&quit).expect("valid").run.stop_signal;
    assert_eq!(quit, StopSignal::Quit);
    assert_eq!(manifest.worker_threads(1.0), 1);
    assert_eq!(manifest.worker_threads(0.5), 1);
    assert_eq!(manifest.worker_threads(2.5), 3);
    assert_eq!(manifest.start_timeout(), Duration::from_secs(60));
    let slow = "threads_per_vcpu = 1\nstart_timeout_s = 600\n";
    let slow = parse(&RUST_AXUM.replace("threads_per_vcpu = 1\n", slow)).expect("valid");
    assert_eq!(slow.start_timeout(), Duration::from_secs(600));
}

#[test]
fn an_unknown_key_is_named_with_its_line_at_every_level() {
    for (insert_after, key) in [
        ("language = \"Rust\"\n", "colour"),
        ("[run]\n", "commands"),
        ("[[build.needs]]\n", "instal"),
    ] {
        let text = RUST_AXUM.replacen(insert_after, &format!("{insert_after}{key} = \"x\"\n"), 1);
        let error = parse(&text).expect_err("unknown key");
        assert!(error.contains(&format!("unknown field `{key}`")), "{error}");
        assert!(error.starts_with("line "), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_missing_key_is_named() {
    let error = parse(&RUST_AXUM.replace("tier = \"idiomatic\"\n", "")).expect_err("missing");
    assert_eq!(error, "missing field `tier`");
}

#[test]
fn impossible_values_are_refused_in_one_line() {
    let cases = [
        (
            "tier = \"idiomatic\"",
            "tier = \"best\"",
            "unknown variant `best`",
        ),
        (
            "name = \"rust-axum\"",
            "name = \"Rust/Axum\"",
            "name \"Rust/Axum\" must be",
        ),
        (
            "threads_per_vcpu = 1",
            "threads_per_vcpu = 0",
            "threads_per_vcpu is 0",
        ),
        (
            "threads_per_vcpu = 1",
            "threads_per_vcpu = -1",
            "invalid value",
        ),
        (
            "threads_per_vcpu = 1",
            "start_timeout_s = 0",
            "start_timeout_s is 0; it must be 1 to 600 seconds",
        ),
        (
            "threads_per_vcpu = 1",
            "start_timeout_s = 601",
            "start_timeout_s is 601; it must be 1 to 600 seconds",
        ),
        (
            "inference_transport = \"h2c\"\n",
            "",
            "inference_transport is missing",
        ),
        (
            "workload = \"stt\"",
            "workload = \"ws\"",
            "unknown field `inference_transport` of workload ws",
        ),
        (
            "inference_transport = \"h2c\"\n",
            "inference_transport = \"h2c\"\nasks_inference = false\n",
            "only a target of tier \"test\" may work without",
        ),
        (
            "command = [\"target/release/rust-axum\"]",
            "command = []",
            "run.command is empty",
        ),
        (
            "command = [\"sh\", \"test.sh\"]",
            "command = [\"\"]",
            "test.command is empty",
        ),
        (
            "[\"cargo\", \"--version\"]",
            "[]",
            "version_command of cargo is empty",
        ),
        (
            "[run]\n",
            "[run]\nstop_signal = \"KILL\"\n",
            "unknown variant `KILL`, expected one of `TERM`, `INT`, `QUIT`",
        ),
        (
            "[run]\n",
            "[deviations]\n\"Bad Case\" = \"x\"\n[run]\n",
            "deviations: \"Bad Case\" must be",
        ),
        (
            "[run]\n",
            "[deviations]\nbad-case = \"\"\n[run]\n",
            "deviations: say why bad-case is not passed",
        ),
        (
            "[build]\n",
            "runtime = [\"lib\"]\n[build]\n",
            "runtime: \"lib\" is relative; give an absolute path",
        ),
        (
            "[build]\n",
            "tuned = \"rust-epoll\"\n[build]\n",
            "tuned: only a target of tier framework",
        ),
        ("[build]\n", "ships = [\"\"]\n[build]\n", "ships: a path"),
        ("tier = \"idiomatic\"", "tier = ", "line 4"),
    ];
    for (from, to, expected) in cases {
        assert!(RUST_AXUM.contains(from), "{from}");
        let error = parse(&RUST_AXUM.replace(from, to)).expect_err(to);
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_websocket_server_says_what_it_speaks() {
    let text = |keys: &str| {
        RUST_AXUM
            .replace("workload = \"stt\"", "workload = \"ws\"")
            .replace("inference_transport = \"h2c\"\n", keys)
    };
    let plain = parse(&text("")).expect("valid");
    assert_eq!(plain.property("dialect"), None);
    assert!(!plain.separate_metrics_port);
    let wse = parse(&text("dialect = \"wse\"\nseparate_metrics_port = true\n"));
    let wse = wse.expect("valid");
    assert_eq!(wse.property("dialect"), Some("wse"));
    assert!(wse.separate_metrics_port);
    let error = parse(&text("dialect = \"stomp\"\n")).expect_err("unknown");
    assert!(error.contains("dialect is \"stomp\"; say"), "{error}");
    let stt = RUST_AXUM.replace("[build]\n", "dialect = \"echo\"\n[build]\n");
    let error = parse(&stt).expect_err("another workload");
    assert!(error.contains("of workload stt"), "{error}");
    // Nobody knows what a workload of a later version asks for.
    let later = text("colour = \"red\"\n").replace("\"ws\"", "\"later\"");
    assert_eq!(
        parse(&later).expect("valid").property("colour"),
        Some("red")
    );
}

fn toy(own: &str) -> std::result::Result<Manifest, String> {
    let text = RUST_AXUM
        .replace("workload = \"stt\"", "workload = \"toy\"")
        .replace("inference_transport = \"h2c\"\n", own);
    parse(&text)
}

#[test]
fn a_key_may_take_a_list_of_words_or_of_lines() {
    let both = "colours = [\"green\", \"red\"]\nreasons = [\"because\", \"why not\"]\n";
    let manifest = toy(both).expect("valid");
    assert_eq!(manifest.list("colours"), Some(vec!["green", "red"]));
    assert_eq!(manifest.list("reasons"), Some(vec!["because", "why not"]));
    assert_eq!(toy("").expect("valid").list("colours"), None);
    let words = "say a list of some of \"red\", \"green\", each once";
    for value in ["[\"blue\"]", "[]", "\"red\"", "[\"red\", \"red\"]", "[1]"] {
        let error = toy(&format!("colours = {value}\n")).expect_err(value);
        assert_eq!(error, format!("colours is {value}; {words}"));
    }
    for value in ["[]", "\"why\"", "[\" \"]", "[\"two\\nlines\"]"] {
        let error = toy(&format!("reasons = {value}\n")).expect_err(value);
        assert!(error.starts_with("reasons is "), "{error}");
        assert!(
            error.ends_with("say a list of texts, each one line"),
            "{error}"
        );
    }
}

#[test]
fn a_key_may_take_a_list_of_numbers() {
    let manifest = toy("lengths = [1024, 64]\n").expect("valid");
    assert_eq!(manifest.numbers("lengths"), Some(vec![1024, 64]));
    assert_eq!(toy("").expect("valid").numbers("lengths"), None);
    for value in ["[65]", "[]", "64", "[64, 64]", "[\"64\"]", "[-64]"] {
        let error = toy(&format!("lengths = {value}\n")).expect_err(value);
        let words = "say a list of some of 64, 1024, each once";
        assert_eq!(error, format!("lengths is {value}; {words}"));
    }
}

#[test]
fn a_workload_may_have_a_rule_between_its_keys() {
    let error = toy("colours = [\"red\"]\n").expect_err("no reasons");
    assert_eq!(error, "colours need reasons; add the key");
}

#[test]
fn further_ports_are_known_by_their_variables() {
    assert!(toy("").expect("valid").ports.is_empty());
    assert!(toy("back_door = false\n").expect("valid").ports.is_empty());
    let both = toy("back_door = true\nseparate_metrics_port = true\n").expect("valid");
    assert_eq!(both.ports, [METRICS_PORT, "BACK_PORT"]);
    let error = toy("back_door = 3001\n").expect_err("a number");
    assert_eq!(error, "back_door is 3001; say true or false");
}

#[test]
fn a_target_that_tests_plimsoll_need_not_ask_its_back_end() {
    let text = RUST_AXUM
        .replace("tier = \"idiomatic\"", "tier = \"test\"")
        .replace(
            "threads_per_vcpu = 1",
            "threads_per_vcpu = 1\nasks_inference = false",
        );
    assert!(parse(&text).expect("valid").denies("asks_inference"));
    let said = text.replace("= false", "= true");
    assert!(!parse(&said).expect("valid").denies("asks_inference"));
    let error = parse(&text.replace("= false", "= \"no\"")).expect_err("a word");
    assert_eq!(error, "asks_inference is \"no\"; say true or false");
}

#[test]
fn a_file_that_is_not_there_is_one_line_with_its_name() {
    let error = Manifest::read(Path::new("/nowhere/target.toml"), keys).expect_err("absent");
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/target.toml: cannot read"),
        "{error}"
    );
}

/// The keys of a table, taken from the parser's message about an unknown key.
fn known_keys(header: &str, prefix: &str) -> Vec<String> {
    let text = match header {
        "" => format!("unheard_of = 1\n{RUST_AXUM}"),
        header => RUST_AXUM.replacen(header, &format!("{header}unheard_of = 1\n"), 1),
    };
    let error = parse(&text).expect_err("an unknown key");
    let (_, expected) = error
        .split_once("expected")
        .unwrap_or_else(|| panic!("{error}"));
    let keys = expected.split('`').skip(1).step_by(2);
    keys.map(|key| format!("{prefix}{key}")).collect()
}

#[test]
fn every_key_of_a_manifest_is_known() {
    let text = RUST_AXUM.replace(
        "threads_per_vcpu = 1",
        "threads_per_vcpu = 1\nasks_inference = true\nseparate_metrics_port = true\nsource = [\"src\"]\nships = [\"x\"]\nruntime = [\"/x\"]\ndeviations = {x = \"y\"}\ntuned = \"z\"",
    );
    let manifest = parse(&text.replace("idiomatic", "framework")).expect("valid");
    let written = Value::try_from(&manifest).expect("TOML");
    let written: Vec<_> = written
        .as_table()
        .expect("a table")
        .keys()
        .cloned()
        .collect();
    let mut known: Vec<_> = KEYS.map(str::to_owned).into();
    known.extend(["inference_transport", "asks_inference"].map(str::to_owned));
    known.sort_unstable();
    assert_eq!(written, known);
}

#[test]
fn the_reference_page_has_every_key_and_no_other() {
    let mut known: Vec<String> = KEYS.map(str::to_owned).into();
    let own = ["stt", "ws"].into_iter().filter_map(keys);
    let own = own.flat_map(|keys| keys.own);
    known.extend(own.map(|key| key.name.to_owned()));
    assert!(known.len() > 10, "{known:?}");
    for (header, prefix) in [
        ("[build]\n", "build."),
        ("[[build.needs]]\n", "build.needs."),
        ("[run]\n", "run."),
        ("[test]\n", "test."),
    ] {
        known.extend(known_keys(header, prefix));
    }
    let page = include_str!("../../../../docs/reference/manifest.md");
    let (_, keys) = page.split_once("\n## Keys\n").expect("a section");
    let rows = keys.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut on_page: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    known.sort_unstable();
    on_page.sort_unstable();
    assert_eq!(on_page, known);
}

#[test]
fn the_example_of_the_reference_page_is_a_manifest() {
    let page = include_str!("../../../../docs/reference/manifest.md");
    let (_, example) = page.split_once("```toml\n").expect("an example");
    let example = example.split("```").next().unwrap_or_default();
    assert_eq!(parse(example).expect("valid").name, "go-nethttp");
}
