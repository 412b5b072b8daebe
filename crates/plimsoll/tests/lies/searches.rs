//! Lies that only a search can fall for.

use crate::document;
use crate::support::manifests::{Root, manifest_of_gateway};
use crate::support::{Ended, Plimsoll, built, turn_of_search};
use plimsoll_testing::measures;

/// `stall_rarely` over repeated trials: only the first trial of the search is struck. Each trial starts the target
/// afresh, and this one remembers that it was started before. Its start line, which would show that, goes to a file,
/// because a search must not continue with another target. That fail is false, so the answer must be that of an honest
/// server: everything up to `--max` passes, and nothing is known to fail. It must not be forgotten either: the trial is
/// there, with its verdict. (One that the machine disturbed may have been the struck one; then the search is made again.)
#[test]
#[measures]
fn one_bad_trial_does_not_bound_a_search() {
    let _turn = turn_of_search();
    expect_the_answer_of_an_honest_server(&search());
}

fn search() -> Ended {
    let program = built("stt/lying-server");
    let line = format!(
        "if [ -e struck ]; then export LIE_SHARE=0; else touch struck; export LIE_SHARE=1; fi; echo '{{}}'; exec {} > start-line",
        program.display()
    );
    let name = "stalls-once-in-a-while";
    let description = "the lying server; only its first start is struck";
    let manifest = manifest_of_gateway(name, description, &line);
    let targets = Root::new().with("stt", name, &manifest);
    let line = "find stalls-once-in-a-while --start 120 --max 140 --ramp 0.2 --warm-up 1 --measured 4 --grace 2 --time-budget 2";
    Plimsoll::measuring(line.split(' '))
        .arg("--root")
        .arg(targets.path())
        .env("LIE", "stall_rarely")
        .env("LIE_AFTER_MS", "2500")
        .env("LIE_MS", "1500")
        .run()
}

fn expect_the_answer_of_an_honest_server(ended: &Ended) {
    ended.expect_code(0);
    let bracket = ended.json_of("bracket.json");
    let trials = bracket["trials"].as_array().expect("a list");
    let failed: Vec<_> = trials.iter().filter(|t| t["verdict"] == "fail").collect();
    assert_eq!(failed.len(), 1, "{trials:#?}");
    assert_eq!(trials[0]["verdict"], "fail");
    assert_eq!(bracket["confirmed"], 140, "{bracket:#}");
    assert_eq!(bracket["lower_bound_only"], true, "{bracket:#}");
    assert!(bracket["first_fail"].is_null(), "{bracket:#}");
    ended.expect_nothing_left_running();
    document::write(
        "one_bad_trial_does_not_bound_a_search",
        &format!(
            "first of {} trials **fail**, the others pass; confirmed 140, nothing fails",
            trials.len()
        ),
    );
}
