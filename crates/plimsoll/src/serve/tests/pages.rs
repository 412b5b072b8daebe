//! What the pages say.

use std::fs;
use std::time::{Duration, SystemTime};

use plimsoll_report::ResultFolder;

use super::{Place, example};
use crate::serve::events;
use crate::workloads::tellers;

#[test]
fn the_history_has_every_result_and_its_filters() {
    let place = Place::with_results();
    let page = place.get("/");
    page.expect(
        200,
        &[
            "data-folder=\"a-find\"",
            "data-folder=\"sorted/b find\"",
            "href=\"/result/sorted/b%20find/report.html\"",
            "1,650 sessions",
        ],
    );
    assert!(page.header("content-type").starts_with("text/html"));
    let quarter = place.get("/?vcpu=0.25&target=rust-axum&kind=find");
    quarter.expect(200, &["data-folder=\"quarter\"", "value=\"0.25\""]);
    assert!(!quarter.body.contains("data-folder=\"a-find\""));
    place.get("/?kind=check").expect(200, &["No result."]);
    place
        .get("/?since=nonsense")
        .expect(400, &["nonsense", "7d"]);
    place
        .get("/?kind=nonsense")
        .expect(400, &["nonsense", "ranking"]);
    place.get("/?vcpu=inf").expect(400, &["vCPU inf"]);
}

#[test]
fn a_broken_folder_is_named_and_its_page_says_why() {
    let place = Place::with_results();
    fs::write(place.results().join("quarter/bracket.json"), "{").expect("written");
    place
        .get("/")
        .expect(200, &["data-test=\"broken\"", "<dt>quarter</dt>", "a-find"]);
    place
        .get("/result/quarter/report.html")
        .expect(500, &["bracket.json is broken"]);
}

#[test]
fn a_result_is_its_report_as_it_is_or_made_now() {
    let place = Place::with_results();
    let folder = place.results().join("a-find");
    let page = place.get("/result/a-find");
    page.expect(303, &[]);
    assert_eq!(page.header("location"), "/result/a-find/report.html");
    let made = place.get("/result/a-find/report.html");
    made.expect(200, &["1,650"]);
    let policy = made.header("content-security-policy");
    assert!(policy.contains("script-src 'sha256-") && !policy.contains("script-src 'unsafe"));
    assert!(!folder.join("report.html").exists(), "it is not kept");
    let report = folder.join("report.html");
    fs::write(&report, "as it was written").expect("written");
    place
        .get("/result/a-find/report.html")
        .expect(200, &["as it was written"]);
    // Now a record is newer than the report.
    let file = fs::File::options().write(true).open(&report).expect("open");
    file.set_modified(SystemTime::now() - Duration::from_secs(3600))
        .expect("its time");
    let again = place.get("/result/a-find/report.html");
    again.expect(200, &["1,650"]);
    assert!(!again.body.contains("as it was written"));
}

#[test]
fn results_side_by_side_say_what_they_came_to() {
    let place = Place::with_results();
    let alike = place.get("/compare?r=a-find&r=sorted%2Fb%20find");
    alike.expect(
        200,
        &[
            "B is: no difference shown",
            "data-test=\"load-lines\"",
            "data-test=\"conditions-same\"",
        ],
    );
    let unlike = place.get("/compare?a=a-find&b=quarter");
    unlike.expect(
        200,
        &[
            "No conclusion",
            "not measured under the same conditions",
            "<td class=\"differs\">0.25</td>",
        ],
    );
    let three = place.get("/compare?a=a-find&b=quarter&c=sorted/b%20find");
    three.expect(200, &["<th scope=\"col\" class=\"text\">C</th>"]);
    assert!(!three.body.contains("data-test=\"conclusion\""));
    place.get("/compare?a=a-find").expect(400, &["two to four"]);
    place
        .get("/compare?a=a-find&b=a-find")
        .expect(400, &["two to four"]);
    place.get("/compare?a=a-find&b=nothing").expect(404, &[]);
    let check = ResultFolder::create(place.results().join("check")).expect("a folder");
    check.write_check(&example::check()).expect("written");
    place
        .get("/compare?a=a-find&b=check")
        .expect(400, &["neither a search nor a trial"]);
}

#[test]
fn what_runs_is_on_top_and_its_page_survives_the_end() {
    let place = Place::with_results();
    let folder = ResultFolder::create(place.results().join("now")).expect("a folder");
    let live = events::tests::live(&plimsoll_host::timestamp::now());
    folder.write_live(&live).expect("written");
    place.get("/").expect(
        200,
        &[
            "data-test=\"live-list\"",
            "href=\"/live/now\"",
            "trial 2 of rust-axum at 800 sessions, measured",
        ],
    );
    let page = place.get("/live/now");
    page.expect(
        200,
        &[
            "data-events=\"/events/now\"",
            "href=\"/result/now/report.html\"",
            "src=\"/assets/live.js\"",
        ],
    );
    // There is no result yet, so this redirects to the live page.
    let none_yet = place.get("/result/now/report.html");
    assert_eq!(
        (none_yet.status, none_yet.header("location")),
        (303, "/live/now")
    );
    folder.remove_live().expect("removed");
    folder
        .write_trial(&example::failed_run(), &[], &[])
        .expect("written");
    // A browser that asks afterwards is told at once that it ended.
    let events = place.get("/events/now");
    events.expect(200, &["event: ended", "retry: 1000"]);
    assert_eq!(events.header("content-type"), "text/event-stream");
    assert_eq!(events.header("cache-control"), "no-store");
    place.get("/result/now/report.html").expect(200, &[]);
}

#[test]
fn an_index_made_anew_meanwhile_is_seen_at_once() {
    let place = Place::with_results();
    place.get("/").expect(200, &["a-find"]);
    fs::remove_dir_all(place.results().join("quarter")).expect("removed");
    drop(plimsoll_report::history::History::rebuild(&place.results(), tellers()).expect("made"));
    let page = place.get("/");
    page.expect(200, &["a-find"]);
    assert!(!page.body.contains("data-folder=\"quarter\""));
    fs::write(
        place.results().join("history.sqlite"),
        "no database, and long enough to look like one ".repeat(9),
    )
    .expect("written");
    place.get("/").expect(500, &["history.sqlite", "--rebuild"]);
}
