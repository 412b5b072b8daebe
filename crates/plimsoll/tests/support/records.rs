//! A trial's record, read by the names that the documentation promises. A missing name fails the test.

use serde_json::Value;

/// Counters of the ledger that are 0 if all is well.
pub(crate) const FAULTS: &[&str] = &[
    "frames_errored",
    "frames_lost",
    "frames_duplicated",
    "frames_out_of_order",
    "sessions_failed",
    "sessions_died",
    "errors",
    "protocol_faults",
    "content_wrong",
];

/// The record of a trial.
#[derive(Debug)]
pub(crate) struct Trial(pub(crate) Value);

impl Trial {
    /// The value at a path of names, `latency.newest.from_schedule`.
    #[track_caller]
    pub(crate) fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.0, |value, name| {
            value
                .get(name)
                .unwrap_or_else(|| panic!("no `{name}` of `{path}` in {value:#}"))
        })
    }

    /// The number at a path.
    #[track_caller]
    pub(crate) fn number(&self, path: &str) -> f64 {
        let value = self.at(path);
        value
            .as_f64()
            .unwrap_or_else(|| panic!("`{path}` is no number: {value}"))
    }

    /// The number at a path. A step of the path may also be the `name` of a thing in a list:
    /// `gates.frames_lost.observed`.
    #[track_caller]
    pub(crate) fn number_at(&self, path: &str) -> f64 {
        let found = path
            .split('.')
            .try_fold(&self.0, |value, step| match value {
                Value::Array(things) => things.iter().find(|thing| thing["name"] == step),
                _ => value.get(step),
            });
        let number = found.and_then(Value::as_f64);
        number.unwrap_or_else(|| panic!("`{path}` is no number: {found:?}"))
    }

    /// A count of the ledger.
    #[track_caller]
    pub(crate) fn ledger(&self, name: &str) -> u64 {
        let value = self.at(&format!("ledger.{name}"));
        value
            .as_u64()
            .unwrap_or_else(|| panic!("`{name}` is no count: {value}"))
    }

    #[track_caller]
    pub(crate) fn verdict(&self) -> &str {
        self.at("verdict").as_str().expect("a word")
    }

    /// Names of the gates that did not hold.
    #[track_caller]
    pub(crate) fn failed_gates(&self) -> Vec<&str> {
        let gates = self.at("gates").as_array().expect("a list");
        let failed = gates.iter().filter(|gate| gate["pass"] == false);
        failed
            .map(|gate| gate["name"].as_str().expect("a name"))
            .collect()
    }

    /// Names of the caveats, blocking or not.
    pub(crate) fn caveats(&self) -> Vec<&str> {
        let caveats = self.at("caveats").as_array().expect("a list");
        caveats.iter().filter_map(|c| c["id"].as_str()).collect()
    }

    /// Names of the caveats that make it `invalid`.
    pub(crate) fn blocking_caveats(&self) -> Vec<String> {
        blocking(self.at("caveats"))
    }

    /// The same of its verdicts by further SLOs.
    pub(crate) fn blocking_caveats_of_further_slos(&self) -> Vec<String> {
        let further = self.0["further_slos"].as_array();
        let judged = further.into_iter().flatten();
        judged
            .flat_map(|judged| blocking(&judged["caveats"]))
            .collect()
    }

    /// Expects the verdict `fail`, by this gate among others.
    #[track_caller]
    pub(crate) fn expect_failed_by(&self, gate: &str) {
        assert_eq!(
            self.verdict(),
            "fail",
            "blocking: {:?}",
            self.blocking_caveats()
        );
        assert!(
            self.failed_gates().contains(&gate),
            "not {gate} but {:?}",
            self.failed_gates()
        );
    }

    /// Every frame due is answered, errored or lost, exactly once; and every frame without an answer is in the
    /// latencies.
    #[track_caller]
    pub(crate) fn expect_every_frame_accounted_for(&self) {
        let count = |name| self.ledger(name);
        assert_eq!(
            count("frames_due"),
            count("frames_answered") + count("frames_errored") + count("frames_lost"),
            "{:#}",
            self.at("ledger")
        );
        for series in ["newest", "oldest"] {
            for from in ["from_schedule", "from_write"] {
                let censored = self.number(&format!("latency.{series}.{from}.censored"));
                assert_eq!(censored as u64, count("frames_lost"), "{series} {from}");
            }
        }
    }

    /// Nothing was lost, duplicated, reordered, wrong or faulty, and no session failed.
    #[track_caller]
    pub(crate) fn expect_flawless_ledger(&self) {
        self.expect_every_frame_accounted_for();
        assert_eq!(self.ledger("frames_answered"), self.ledger("frames_due"));
        assert_eq!(self.ledger("frames_sent"), self.ledger("frames_due"));
        for name in FAULTS {
            assert_eq!(self.ledger(name), 0, "{name}");
        }
    }
}

/// Validates a record against a checked-in schema.
#[track_caller]
pub(crate) fn expect_valid(record: &Value, schema: &str) {
    let faults = faults_by(record, schema);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Whether a record matches the checked-in schema of that name.
pub(crate) fn is_valid(record: &Value, schema: &str) -> bool {
    faults_by(record, schema).is_empty()
}

fn faults_by(record: &Value, schema: &str) -> Vec<String> {
    let path = super::root().join("crates/report/schema").join(schema);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    validator
        .iter_errors(record)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

/// The names of the blocking ones among these caveats.
fn blocking(caveats: &Value) -> Vec<String> {
    let caveats = caveats.as_array().expect("a list");
    let blocking = caveats.iter().filter(|caveat| caveat["blocking"] == true);
    blocking
        .filter_map(|caveat| caveat["id"].as_str().map(str::to_owned))
        .collect()
}
