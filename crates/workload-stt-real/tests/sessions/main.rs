//! Golden sessions: `targets/stt-real/vectors/DIALECT/*.jsonl` (the README there has the form). Each goes through the
//! parser of its dialect, and every server message must give the events that its line has.
//!
//! `PLIMSOLL_UPDATE=1` writes the events that the parser gives into the files, for recordings of real servers. Review the
//! difference.

mod properties;
mod replay;
mod templates;

use plimsoll_workload_stt_real::dialect;

#[test]
fn every_golden_session_gives_its_events() {
    let is_update = std::env::var_os("PLIMSOLL_UPDATE").is_some();
    let mut wrong = Vec::new();
    for dialect in dialect::NAMES {
        let sessions = replay::sessions_of(dialect);
        let written = sessions.iter().filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            !name.starts_with("real-")
        });
        let written = written.count();
        assert!(written >= 2, "{dialect}: only {written} golden sessions");
        for path in sessions {
            wrong.extend(replay::replay(dialect, &path, is_update));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
