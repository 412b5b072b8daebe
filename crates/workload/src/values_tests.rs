//! What `Values` does with what a user gave, by the rows of two made-up workloads.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::fields::Fields;
use crate::parameter::{Choice, Kind, Usual, that_can_be_given};
use crate::{About, Plan};

const DIALECTS: [Choice; 2] = [Choice::new("plain", ""), Choice::new("signed", "")];
const TESTS: [Choice; 2] = [Choice::new("calm", ""), Choice::new("storm", "")];

const STORM: [Fit; 1] = [Fit {
    of: "test",
    among: &["storm"],
}];

const ROWS: [Parameter; 7] = [
    Parameter {
        usual: Usual::Value("plain"),
        of_target: Some("speaks"),
        ..Parameter::new("dialect", Kind::OneOf(&DIALECTS), "")
    },
    Parameter {
        usual: Usual::Value("calm"),
        ..Parameter::new("test", Kind::OneOf(&TESTS), "")
    },
    Parameter {
        usual: Usual::Value("1000"),
        fits: &STORM,
        ..Parameter::new(
            "linger_ms",
            Kind::Whole {
                least: 0,
                most: 9_999,
            },
            "",
        )
    },
    Parameter {
        usual: Usual::Told("depends on the test"),
        ..Parameter::new("message_bytes", Kind::Whole { least: 0, most: 99 }, "")
    },
    Parameter {
        fits: &STORM,
        ..Parameter::new("poisson", Kind::Flag, "")
    },
    Parameter {
        usual: Usual::Told("that of the contract"),
        fits: &[Fit {
            of: "dialect",
            among: &["signed"],
        }],
        only_running: true,
        ..Parameter::new("token_secret", Kind::Secret, "")
    },
    Parameter {
        only_running: true,
        ..Parameter::new("depth", Kind::Whole { least: 1, most: 99 }, "")
    },
];

/// A workload that only has rows.
#[derive(Debug)]
struct Toy(&'static str, &'static [Parameter]);

impl Workload for Toy {
    fn about(&self) -> &'static About {
        match self.0 {
            "toy" => &About {
                name: "toy",
                line: "",
                floor: None,
                contract: None,
            },
            _ => &About {
                name: "other",
                line: "",
                floor: None,
                contract: None,
            },
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.1
    }

    fn plan(&self, _values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Err(Refusal::new("a toy has no plan"))
    }
}

const TOY: Toy = Toy("toy", &ROWS);
const OTHER: Toy = Toy("other", &[Parameter::new("audio", Kind::File, ""), ROWS[1]]);
const ALL: [&dyn Workload; 2] = [&TOY, &OTHER];

fn word(text: &str) -> Value {
    Value::Word(text.to_owned())
}

/// Values as words of a command line: `test=storm poisson=true`.
fn values(line: &str) -> Values {
    let mut values = Values::default();
    for pair in line.split_whitespace() {
        let (name, text) = pair.split_once('=').expect(pair);
        let mut rows = ROWS.iter().chain(OTHER.1);
        let row = rows.find(|row| row.name == name).expect(name);
        values.set(name, row.kind.parse(text).expect(pair));
    }
    values
}

fn manifest(own_keys: &str) -> Manifest {
    let text = format!(
        "name = \"a\"\nworkload = \"toy\"\ntier = \"test\"\nlanguage = \"x\"\ndescription = \"x\"\n{own_keys}\n[run]\ncommand = [\"sh\"]\n"
    );
    Manifest::parse(&text, Path::new("/t/toy/a/target.toml"), |_| None).expect("valid")
}

fn settled(line: &str) -> Result<Values, String> {
    let settled = values(line).settled(&TOY, &ALL, None);
    settled.map_err(|refusal| refusal.to_string())
}

fn settled_for(line: &str, manifest: &Manifest) -> Result<Values, String> {
    let settled = values(line).settled(&TOY, &ALL, Some(manifest));
    settled.map_err(|refusal| refusal.to_string())
}

#[test]
fn a_value_of_another_workload_is_refused_with_its_owner() {
    assert_eq!(
        settled("audio=x.wav").unwrap_err(),
        "--audio is for --workload other, this is toy"
    );
    // Both have this one.
    assert_eq!(settled("test=storm").unwrap().word("test"), Some("storm"));
}

#[test]
fn what_is_missing_gets_its_usual_value_if_it_has_a_meaning() {
    assert_eq!(settled("").unwrap(), values("dialect=plain test=calm"));
    // The row of `linger_ms` depends on one before it, given or not.
    assert_eq!(
        settled("test=storm").unwrap(),
        values("dialect=plain test=storm linger_ms=1000")
    );
    assert_eq!(
        settled("test=storm linger_ms=0")
            .unwrap()
            .whole("linger_ms"),
        Some(0)
    );
}

#[test]
fn what_is_settled_stays_as_it_is() {
    for line in [
        "",
        "test=storm",
        "test=storm poisson=true",
        "message_bytes=5",
        "dialect=signed",
    ] {
        let once = settled(line).unwrap();
        let again = once.clone().settled(&TOY, &ALL, None).unwrap();
        assert_eq!(again, once, "{line}");
        for own_key in ["", "dialect = \"signed\"", "dialect = \"plain\""] {
            let manifest = manifest(own_key);
            if let Ok(once) = settled_for(line, &manifest) {
                let again = once.clone().settled(&TOY, &ALL, Some(&manifest)).unwrap();
                assert_eq!(again, once, "{line} {own_key}");
            }
        }
    }
}

#[test]
fn a_value_without_a_meaning_beside_the_others_is_refused() {
    assert_eq!(
        settled("linger_ms=5").unwrap_err(),
        "--linger-ms is for --test storm, this is calm"
    );
    assert_eq!(
        settled("dialect=plain test=calm poisson=true").unwrap_err(),
        "--poisson is for --test storm, this is calm"
    );
}

#[test]
fn a_target_says_its_own_properties() {
    let signed = manifest("dialect = \"signed\"");
    let taken = |manifest: &Manifest| settled_for("", manifest).unwrap();
    assert_eq!(taken(&signed).word("dialect"), Some("signed"));
    // A manifest that does not say it means the usual value.
    assert_eq!(taken(&manifest("")).word("dialect"), Some("plain"));
    assert!(settled_for("dialect=signed", &signed).is_ok());
    assert_eq!(
        settled_for("dialect=plain", &signed).unwrap_err(),
        "--dialect plain: a speaks signed by its target.toml; leave the flag out"
    );
    assert_eq!(
        settled_for("dialect=signed", &manifest("")).unwrap_err(),
        "--dialect signed: a speaks plain by its target.toml; leave the flag out"
    );
}

#[test]
fn what_is_for_a_running_server_is_refused_for_a_target() {
    let line = "dialect=signed token_secret=canary-1";
    assert!(settled(line).is_ok());
    let text = settled_for(line, &manifest("dialect = \"signed\"")).unwrap_err();
    assert!(text.starts_with("--token-secret is for a server"), "{text}");
    assert!(
        text.contains("Plimsoll starts a") && !text.contains("canary"),
        "{text}"
    );
    let text = settled("token_secret=canary-1").unwrap_err();
    assert_eq!(
        text,
        "--token-secret is for --dialect signed, this is plain"
    );
}

#[test]
fn only_rows_of_targets_have_a_value_there() {
    let of = |name: &str| {
        let row = ROWS.iter().find(|row| row.name == name).unwrap();
        row.of(&manifest("dialect = \"signed\"\nmessage_bytes = \"5\""))
    };
    assert_eq!(of("dialect"), Some(word("signed")));
    assert_eq!(of("message_bytes"), None);
}

#[test]
fn what_was_recorded_is_given_again_as_far_as_it_has_a_meaning() {
    let given = |line: &str| {
        let recorded = values(line).recorded();
        let names = that_can_be_given(&ROWS, &recorded, false);
        names.join(" ")
    };
    assert_eq!(
        given("poisson=true linger_ms=5 message_bytes=9 test=storm dialect=plain"),
        "dialect test linger_ms message_bytes poisson"
    );
    assert_eq!(
        given("poisson=true message_bytes=9 test=calm"),
        "test message_bytes"
    );
    assert_eq!(given("linger_ms=5 audio=x.wav"), "", "of another version");
    // The manifest of a target that is started says it, and the flag is refused.
    let recorded = values("test=calm depth=7").recorded();
    assert_eq!(
        that_can_be_given(&ROWS, &recorded, false),
        ["test", "depth"]
    );
    assert_eq!(that_can_be_given(&ROWS, &recorded, true), ["test"]);
    assert!(settled("depth=7").is_ok());
    let refused = settled_for("depth=7", &manifest("")).unwrap_err();
    assert!(refused.ends_with("leave the flag out"), "{refused}");
}

#[test]
fn a_secret_is_neither_recorded_nor_shown_nor_passed_on() {
    let values = values("dialect=signed token_secret=canary-1");
    let mut secrets = Secrets::default();
    values.add_secrets_to(&mut secrets);
    assert_eq!(secrets.scrub("its canary-1"), "its [redacted]");
    assert_eq!(values.secret("token_secret").unwrap().expose(), "canary-1");
    let shown = values.get("token_secret").unwrap().to_string();
    let recorded = serde_json::to_string(&values.recorded()).unwrap();
    assert_eq!(
        (shown.as_str(), recorded.as_str()),
        (REDACTED, "{\"dialect\":\"signed\"}")
    );
    assert!(!format!("{values:?}").contains("canary"));
    // It cannot even be written by mistake.
    assert!(serde_json::to_string(&values).is_err());
    let passed_on = serde_json::to_string(&values.without_secrets()).unwrap();
    assert!(!passed_on.contains("token"), "{passed_on}");
}

#[test]
fn values_come_back_from_json() {
    let all = Values::default()
        .with("whole", Value::Whole(u64::MAX))
        .with("number", Value::Number(2.5))
        .with("word", word("x"))
        .with("flag", Value::Flag(true))
        .with("addresses", Value::Addresses(vec![[127, 0, 0, 2].into()]))
        .with("file", Value::File("a b.wav".into()));
    let json = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Values>(&json).unwrap(), all);
    assert_eq!(
        serde_json::to_value(all.recorded()).unwrap(),
        json!({
            "whole": u64::MAX, "number": 2.5, "word": "x", "flag": true,
            "addresses": ["127.0.0.2"], "file": "a b.wav",
        })
    );
    assert_eq!(all.clone().without("word").word("word"), None);
    assert_eq!(all.whole("number"), None, "another kind");
}

const OPEN: Kind = Kind::OneOfOrFile(&DIALECTS);

#[test]
fn a_word_or_a_file_is_told_by_the_files_name() {
    assert_eq!(OPEN.parse("plain"), Ok(word("plain")));
    let file = Value::File("of/my.toml".into());
    assert_eq!(OPEN.parse("of/my.toml"), Ok(file.clone()));
    for other in ["my.json", "toml", ".toml", "plainer"] {
        assert_eq!(
            OPEN.parse(other),
            Err("give one of plain, signed, or a file NAME.toml".to_owned())
        );
    }
    // The command line reads for every workload that has the parameter; this one may take less.
    assert_eq!(OPEN.takes(&file), Ok(()));
    assert_eq!(OPEN.takes(&word("plain")), Ok(()));
    assert!(OPEN.takes(&word("nats")).is_err());
    let refused = Values::default().with("dialect", file);
    let refused = refused.settled(&TOY, &ALL, None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "--dialect of/my.toml: give one of plain, signed"
    );
}

#[test]
fn a_parameter_for_a_word_is_refused_beside_a_file() {
    const ROWS: [Parameter; 2] = [
        Parameter::new("dialect", OPEN, ""),
        Parameter {
            fits: &[Fit {
                of: "dialect",
                among: &["signed"],
            }],
            ..Parameter::new("depth", Kind::Whole { least: 1, most: 9 }, "")
        },
    ];
    const OF_FILES: Toy = Toy("other", &ROWS);
    let given = Values::default()
        .with("dialect", Value::File("my.toml".into()))
        .with("depth", Value::Whole(1));
    let refused = given.settled(&OF_FILES, &[&OF_FILES], None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "--depth is for --dialect signed, this is my.toml"
    );
}

#[test]
fn fields_keep_their_order_and_leave_their_secrets_out_of_records() {
    let mut fields = Fields::default();
    for line in ["b=1", "token=canary", "a=2", "b=3"] {
        let Ok(Value::Fields(one)) = Kind::Fields.parse(line) else {
            panic!("{line}");
        };
        fields = fields.and(one);
    }
    let values = Values::default().with("param", Value::Fields(fields.clone()));
    assert_eq!(
        values.recorded()["param"],
        json!(["b=1", "token=[redacted]", "a=2", "b=3"])
    );
    let shown = format!("{values:?} {}", values.get("param").unwrap());
    assert!(!shown.contains("canary"), "{shown}");
    let mut secrets = Secrets::default();
    values.add_secrets_to(&mut secrets);
    assert_eq!(secrets.scrub("a canary"), "a [redacted]");
    // A client process sends them.
    assert_eq!(values.without_secrets().fields("param"), Some(&fields));
    assert!(Kind::Fields.parse("canary").is_err());
}
