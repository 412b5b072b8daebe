//! Reading a child's log.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use plimsoll_core::secret::Secrets;

/// How much of a log's end is read for its last lines, because logs can be long.
const TAIL_BYTES: u64 = 64 * 1024;

/// How far into a log to look for the first JSON line.
const HEAD_BYTES: u64 = 256 * 1024;

/// The last `count` lines of a log that are not empty. A log that cannot be read has none: the lines are for adding to
/// an error, which must not be lost because of that.
#[must_use]
pub fn last_lines(log: &Path, count: usize) -> Vec<String> {
    let text = read_tail(log).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

fn read_tail(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first complete line of a log that is a JSON object. By contract, a child names its versions in that line. A
/// line still being written does not count. `None` if there is none so far.
#[must_use]
pub fn first_json_line(log: &Path) -> Option<serde_json::Value> {
    let mut reader = BufReader::new(File::open(log).ok()?.take(HEAD_BYTES));
    let mut line = Vec::new();
    loop {
        line.clear();
        reader
            .read_until(b'\n', &mut line)
            .ok()
            .filter(|length| *length > 0)?;
        if !line.ends_with(b"\n") {
            return None;
        }
        let value = serde_json::from_slice::<serde_json::Value>(&line).ok();
        if let Some(object) = value.filter(serde_json::Value::is_object) {
            return Some(object);
        }
    }
}

/// Removes these secrets from a log that nobody writes to any more. If the log cannot be rewritten without them, it is
/// emptied: a lost log is better than a published secret.
pub(super) fn scrub(log: &Path, secrets: &Secrets) {
    if secrets.is_empty() {
        return;
    }
    let Ok(bytes) = std::fs::read(log) else {
        return;
    };
    if let Some(clean) = secrets.scrubbed_bytes(&bytes)
        && std::fs::write(log, clean).is_err()
    {
        // Nobody is left to report a failure to.
        let _ = File::create(log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("temp");
        std::fs::write(file.path(), text).expect("write");
        file
    }

    #[test]
    fn the_end_of_a_log() {
        assert_eq!(last_lines(log("a\n\nb\nc\n").path(), 2), ["b", "c"]);
        assert_eq!(last_lines(log("a").path(), 2), ["a"]);
        assert!(last_lines(Path::new("/nowhere"), 2).is_empty());
        let long = "x".repeat(100_000) + "\nend\n";
        assert_eq!(last_lines(log(&long).path(), 1), ["end"]);
    }

    #[test]
    fn a_secret_does_not_stay_in_a_log() {
        let mut secrets = Secrets::default();
        secrets.add("Bearer canary");
        let told = log("GET / Authorization: Bearer canary\nok\n");
        scrub(told.path(), &secrets);
        let left = std::fs::read_to_string(told.path()).expect("there");
        assert_eq!(left, "GET / Authorization: [redacted]\nok\n");
        scrub(Path::new("/nowhere"), &secrets);
    }

    #[test]
    fn the_first_json_line_is_found_behind_other_output() {
        let value =
            first_json_line(log("warning: x\n[1]\n{\"runtime\":\"go1.26\"}\n{\"b\":1}\n").path());
        assert_eq!(value.expect("there")["runtime"], "go1.26");
        assert!(
            first_json_line(log("{\"half\":1}").path()).is_none(),
            "not yet written to its end"
        );
        assert!(first_json_line(log("nothing\n").path()).is_none());
        assert!(first_json_line(Path::new("/nowhere")).is_none());
    }
}
