//! The goals of a measurement, read before its first trial.

use std::path::Path;

use plimsoll_core::goals::GoalsFile;
use plimsoll_workload::{Kind, Workload};
use sha2::{Digest as _, Sha256};

use crate::args::GoalsArgs;
use crate::failure::Failure;

/// The goals that were given, for a target of this workload.
pub(crate) fn goals(
    args: &GoalsArgs,
    workload: &dyn Workload,
) -> Result<Option<GoalsFile>, Failure> {
    let Some(file) = &args.goals else {
        return Ok(None);
    };
    let refuse = |why: String| Failure::Usage(format!("--goals {}: {why}", file.display()));
    let bytes = read(file)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| refuse(format!("cannot read the goals: {error}")))?;
    let goals = GoalsFile::parse(text, hash(&bytes), workload.metrics(), &tests(workload));
    goals.map(Some).map_err(|error| refuse(error.to_string()))
}

/// The SHA-256 of a goals file, in hexadecimal digits.
pub(crate) fn hash_of(file: &Path) -> Result<String, Failure> {
    read(file).map(|bytes| hash(&bytes))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|error| Failure::Usage(format!("--goals {}: {error}", file.display())))
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tests of a workload.
fn tests(workload: &dyn Workload) -> Vec<&'static str> {
    let rows = workload.parameters().iter();
    let row = rows.filter(|row| row.name == "test");
    row.flat_map(|row| match row.kind {
        Kind::OneOf(choices) => choices,
        _ => &[],
    })
    .map(|choice| choice.name)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads;

    fn read(bytes: &[u8], workload: &str) -> Result<Option<GoalsFile>, String> {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = folder.path().join("goals.toml");
        std::fs::write(&file, bytes).expect("write");
        let args = GoalsArgs { goals: Some(file) };
        let of = workloads::ALL.iter();
        let mut of = of.filter(|known| known.about().name == workload);
        let workload = *of.next().expect("a workload");
        goals(&args, workload).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_hash_is_of_the_files_bytes() {
        let file = b"[[goal]]\nmetric = \"load_line\"\nat_least = 5\n";
        let goals = read(file, "stt").expect("good").expect("goals");
        // sha256sum says so.
        assert_eq!(
            goals.sha256,
            "fa8bd9693d63d408c0491c321ab0b5f041bea46782a4435cbcd951ce3e68c703"
        );
    }

    #[test]
    fn metrics_and_tests_are_those_of_the_workload() {
        let goal = |test: &str| {
            let text = format!(
                "[[goal]]\nmetric = \"turns_with_gap\"\nat_most = 0.1\ntest = \"{test}\"\n"
            );
            text.into_bytes()
        };
        assert!(read(&goal("slow"), "voice").is_ok());
        for (test, workload, words) in [
            ("slow", "stt", "unknown metric `turns_with_gap`"),
            ("storm", "voice", "unknown test `storm`; known tests: talk"),
        ] {
            let text = read(&goal(test), workload).expect_err("refused");
            assert!(
                text.starts_with("--goals ") && text.contains(words),
                "{text}"
            );
        }
    }

    #[test]
    fn the_example_of_the_pages_can_be_read() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/voice/goals.toml");
        let example = std::fs::read(file).expect("the example");
        assert!(read(&example, "voice").expect("good").is_some());
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let text = read(b"\xff\xfe", "stt").expect_err("refused");
        assert!(text.contains("cannot read the goals"), "{text}");
        let args = GoalsArgs {
            goals: Some("/no/such/file".into()),
        };
        let failure = goals(&args, workloads::ALL[0]).expect_err("refused");
        assert!(failure.to_string().starts_with("--goals /no/such/file: "));
    }
}
