//! Tests the real inference simulator, if it is built. `cargo test --workspace` builds it with these tests.

use std::path::PathBuf;

use plimsoll_host::http;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_testing::skipped;
use plimsoll_workload::Findings;
use plimsoll_workload::companion::Start;
use plimsoll_workload::companion::program::Program;
use plimsoll_workload_stt::simulator::{ABOUT, SeenRequest, Stats};

/// `target/<profile>/plimsoll-inference`, seen from `target/<profile>/deps/<this test>`.
fn built() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let place = executable.parent()?.parent()?.join(ABOUT.name);
    if place.is_file() {
        return Some(place);
    }
    skipped!("there is no {}", place.display());
    None
}

#[test]
fn it_starts_works_is_steered_and_stops() {
    let Some(binary) = built() else { return };
    let folder = tempfile::tempdir().expect("temp");
    let settings = [("MODEL_DELAY_MS", "1"), ("MODEL_BATCH_WAIT_MAX_MS", "0")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = settings.to_vec();
    let cpus = CpuList::allowed_to_us().expect("allowed");
    let how = Start {
        seed: 0,
        told: &Findings::Null,
        bind: None,
        cpus: Some(&cpus),
        log_folder: folder.path(),
        stop: &Stop::new(),
    };
    let program = Program::start(&ABOUT, &binary, settings, &how).expect("starts");
    let simulator = program.control();
    let stats = || simulator.stats::<Stats>().expect("stats");
    let infer = || {
        let url = format!("{}/infer", simulator.url());
        http::post(
            &url,
            "application/octet-stream",
            &[0; 640],
            std::time::Duration::from_secs(5),
        )
    };
    assert_eq!(infer().expect("answer").status, 200);
    let first = stats();
    assert_eq!((first.requests, first.inflight), (1, 0));
    assert!(first.window_us > 0 && first.busy_share() <= 1.0);
    let seen: Vec<SeenRequest> = simulator.get("/requests?last=8").expect("requests");
    assert_eq!((seen.len(), seen[0].audio_bytes), (1, 640));
    simulator
        .set_faults(&serde_json::json!({"http_503": 1.0}))
        .expect("set");
    assert_eq!(infer().expect("answer").status, 503);
    assert_eq!(stats().faults["http_503"], 1);
    let refused = simulator
        .set_faults(&serde_json::json!({"http_503": 2.0}))
        .expect_err("a share of 2");
    assert!(refused.to_string().contains("answered 400"), "{refused}");
    simulator.reset_stats().expect("reset");
    assert_eq!(stats().requests, 0);
    let ended = program.stop().expect("ended");
    assert_eq!((ended.status.code(), ended.killed), (Some(0), false));
}
