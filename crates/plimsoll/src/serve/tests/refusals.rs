//! What is never handed out, and what a browser may do with the rest.

use std::fs;
use std::path::Path;

use plimsoll_report::ResultFolder;

use super::{PRIVATE, Place, ask, example};
use crate::serve::events;
use crate::serve::guard::Token;
use crate::workloads::tellers;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn charts_are_handed_out_by_their_names_and_nothing_else_is() {
    let place = Place::with_results();
    plimsoll_report::render_all(&place.results().join("a-find"), tellers()).expect("rendered");
    let chart = place.get("/result/a-find/chart.svg");
    chart.expect(200, &["<svg"]);
    assert_eq!(chart.header("content-type"), "image/svg+xml");
    assert!(chart.header("content-security-policy").contains("sandbox"));
    let image = place.get("/result/a-find/chart.png");
    assert_eq!(
        (image.status, image.header("content-type")),
        (200, "image/png")
    );
    for name in [
        "trial-001.json",
        "summary.md",
        "ranking.svg",
        "logs",
        "",
        "live.json",
    ] {
        place
            .get(&format!("/result/a-find/{name}"))
            .expect(404, &[]);
    }
}

#[test]
fn no_path_from_a_request_reaches_the_file_system() {
    let place = Place::with_results();
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, place.results().join(name)).expect("a link");
    };
    let private = place.0.path().join("private");
    link(&private, "linked");
    link(&private.join("chart.svg"), "a-find/chart.svg");
    link(&private.join("report.html"), "a-find/report.html");
    // The folder is in the index first, and then becomes a link.
    place.get("/").expect(200, &[]);
    fs::remove_dir_all(place.results().join("quarter")).expect("removed");
    link(&private, "quarter");
    for uri in [
        "/result/../private/report.html",
        "/result/..",
        "/result/%2e%2e/private/report.html",
        "/result/%2e%2e%2fprivate%2freport.html",
        "/result/a-find/../../private/report.html",
        "/result/a-find/%2e%2e/%2e%2e/private/chart.svg",
        "/result/a-find/..%5c..%5cprivate%5cchart.svg",
        "/result//etc/hostname",
        "/result/%2fetc%2fhostname",
        "/result/./a-find/report.html",
        "/result/linked/report.html",
        "/result/linked/chart.svg",
        "/result/quarter/report.html",
        "/result/quarter/chart.svg",
        "/result/a-find/chart.svg",
        "/result/a-find/chart.svg%00.json",
        "/result/%00",
        "/result/%ff",
        "/live/..",
        "/live/linked",
        "/events/%2e%2e%2fprivate",
        "/events/linked",
        "/compare?a=..%2fprivate&b=a-find",
        "/compare?a=linked&b=a-find",
        "/assets/../mod.rs",
        "/assets/tests.rs",
        "/history.sqlite",
        "/result/history.sqlite",
    ] {
        let reply = place.get(uri);
        assert!(
            [400, 404].contains(&reply.status),
            "{uri}: {}",
            reply.status
        );
        assert!(!reply.body.contains(PRIVATE), "{uri}");
    }
    // The report is a link, so one is made from the records instead.
    let report = place.get("/result/a-find/report.html");
    report.expect(200, &["1,650"]);
    assert!(!report.body.contains(PRIVATE));
}

#[test]
fn text_from_outside_is_text_on_every_page() {
    let place = Place::new();
    let hostile = "<script>alert(1)</script>\"'><img src=x>";
    let mut odd = example::nothing_passed();
    odd.bracket.target.name = hostile.to_owned();
    for trial in &mut odd.trials {
        trial.target.name = hostile.to_owned();
        trial.slo = "<b>slo</b>".to_owned();
    }
    odd.bracket.slo = "<b>slo</b>".to_owned();
    let name = "a <img src=x onerror=alert(1)>\"&";
    place.find(name, &odd.bracket, &odd.trials);
    place.find("plain", &odd.bracket, &odd.trials);
    let folder = ResultFolder::create(place.results().join("<i>now")).expect("a folder");
    let mut live = events::tests::live(&plimsoll_host::timestamp::now());
    live.targets = vec![hostile.to_owned()];
    live.target = hostile.to_owned();
    folder.write_live(&live).expect("written");
    let broken = place.results().join("<u>broken");
    fs::create_dir_all(&broken).expect("mkdir");
    fs::write(broken.join("bracket.json"), "<s>").expect("written");
    let escaped = "a%20%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%22%26";
    for uri in [
        "/".to_owned(),
        "/?target=%22%3E%3Cb%3Ex&since=7d".to_owned(),
        "/?since=%3Cb%3Ex".to_owned(),
        "/?kind=%3Cimg%3E".to_owned(),
        format!("/compare?a={escaped}&b=plain"),
        format!("/live/{escaped}"),
        "/live/%3Ci%3Enow".to_owned(),
        "/result/%3Cu%3Ebroken/report.html".to_owned(),
        "/%3Cb%3E".to_owned(),
    ] {
        let page = place.get(&uri);
        for markup in ["<script>alert", "<img", "<b>", "<i>", "<u>", "<s>"] {
            assert!(
                !page.body.contains(markup),
                "{uri}: {markup} in {}",
                page.body
            );
        }
    }
    let report = place.get(&format!("/result/{escaped}/report.html"));
    report.expect(200, &[]);
    for markup in ["<script>alert", "<img", "onerror=alert(1)>"] {
        assert!(!report.body.contains(markup), "{markup}");
    }
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    let place = Place::with_results();
    for (uri, status) in [
        ("/", 200),
        ("/result/a-find/report.html", 200),
        ("/assets/style.css", 200),
        ("/assets/live.js", 200),
        ("/compare?a=a-find&b=quarter", 200),
        ("/nothing", 404),
        ("/result/%ff", 400),
    ] {
        let reply = place.get(uri);
        assert_eq!(reply.status, status, "{uri}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{uri}");
        assert_eq!(reply.header("cache-control"), "no-store", "{uri}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{uri}");
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{uri}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{uri}: {policy}");
    }
    let own = place.get("/");
    let policy = own.header("content-security-policy");
    assert!(!policy.contains("unsafe"), "{policy}");
    let inline = own.body.contains("<style") || own.body.contains(" style=");
    assert!(!inline, "the policy would not let it");
}

#[test]
fn a_host_or_a_method_that_is_not_ours_gets_nothing() {
    let place = Place::with_results();
    let site = place.site(None);
    let rebound = ask(&site, "GET", "/", &[("host", "evil.example:7878")]);
    rebound.expect(421, &[]);
    assert!(!rebound.body.contains("a-find"));
    assert_eq!(ask(&site, "GET", "/", &[]).status, 421);
    for method in ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] {
        let reply = ask(&site, method, "/", &[("host", "localhost")]);
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, "GET"),
            "{method}"
        );
    }
}

#[test]
fn with_a_token_nothing_is_shown_without_it() {
    let place = Place::with_results();
    let site = place.site(Token::chosen(SECRET));
    let host = ("host", "127.0.0.1:7878");
    for uri in [
        "/",
        "/result/a-find/report.html",
        "/assets/live.js",
        "/events/a-find",
        "/x",
    ] {
        let refused = ask(&site, "GET", uri, &[host]);
        refused.expect(401, &["token"]);
        assert!(!refused.body.contains("a-find"), "{uri}");
        assert_eq!(refused.header("www-authenticate"), "Bearer");
    }
    let wrong = format!("/?token={}", SECRET.replace('0', "1"));
    ask(&site, "GET", &wrong, &[host]).expect(401, &[]);
    let entered = ask(
        &site,
        "GET",
        &format!("/?kind=find&token={SECRET}"),
        &[host],
    );
    entered.expect(
        200,
        &["content=\"0; url=/?kind=find\"", "href=\"/?kind=find\""],
    );
    assert!(!entered.body.contains("a-find") && !entered.body.contains(SECRET));
    let set = entered.header("set-cookie");
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Strict"),
        "{set}"
    );
    let cookie = set.split(';').next().unwrap_or_default();
    ask(&site, "GET", "/", &[host, ("cookie", cookie)]).expect(200, &["a-find"]);
    let bearer = format!("Bearer {SECRET}");
    ask(&site, "GET", "/", &[host, ("authorization", &bearer)]).expect(200, &["a-find"]);
    let elsewhere = format!("//evil.example/?token={SECRET}");
    ask(&site, "GET", &elsewhere, &[host]).expect(200, &["content=\"0; url=/\""]);
}
