//! What HTTP does not have.

use std::net::TcpListener;

use crate::support::Plimsoll;
use crate::support::manifests::file;
use crate::{refused_at_once, run};

/// What has no meaning for requests by the clock, each in one line with its flag and what to do.
#[test]
fn flags_of_http_that_make_no_sense_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let with = |verb: &str, flags: &str| {
        let line = format!("{verb} --workload http --url {url} {flags}");
        Plimsoll::measuring(line.split_whitespace())
    };
    for (flags, names) in [
        ("--connections 0", ["--connections", "from 1 to"]),
        ("--streams 5", ["--streams", "--protocol h2c"]),
        ("--body-bytes 1048577", ["--body-bytes", "1048576"]),
        ("--body-bytes 0", ["--body-bytes", "from 1 to"]),
        ("--protocol h3", ["--protocol", "h1"]),
        ("--test storm", ["--test storm", "rate"]),
        (
            "--test connect --protocol h2c",
            ["--test connect", "--protocol h2c"],
        ),
        (
            "--test connect --dispatch fixed",
            ["--dispatch", "--test rate"],
        ),
        (
            "--test sizes --body-bytes 64",
            ["--body-bytes", "--test rate"],
        ),
        (
            "--expect-body /no/such.html",
            ["--expect-body /no/such.html", "No such file"],
        ),
        ("--tick-us 7", ["--tick-us 7", "or 0 for none"]),
        (
            "--message-bytes 5",
            ["--message-bytes", "--workload echo, ws"],
        ),
    ] {
        refused_at_once(with("run", &format!("--sessions 5 {flags}")), &names);
    }
    refused_at_once(with("run", "--sessions 0"), &["--sessions", "1..="]);
    for test in ["sizes", "connections"] {
        let names = [
            &format!("--test {test}")[..],
            "one trial per row",
            "--test rate",
        ];
        refused_at_once(with("find", &format!("--test {test}")), &names);
    }
    let names = ["--closed-loop", "without it"];
    refused_at_once(with("find", "--closed-loop"), &names);
    // The server of a URL may answer anything. What a target answers is in its contract.
    let line = "run go-nethttp-http --workload http --sessions 5 --expect-body /etc/hostname";
    let call = Plimsoll::measuring(line.split(' '));
    refused_at_once(call, &["--expect-body", "--url"]);
}

#[test]
fn loads_that_http_does_not_have_are_refused_with_what_it_has() {
    for (line, names) in [
        ("run lying-http --streams 5", ["--streams", "h2c"]),
        (
            "run rust-epoll-http --test connect --protocol h2c",
            ["--test connect", "--protocol h2c"],
        ),
        ("run lying-http --connections 0", ["--connections", "1 to"]),
        (
            "run lying-http --body-bytes 1048577",
            ["1048577", "1 to 1048576"],
        ),
        (
            "run lying-http --test json --body-bytes 10",
            ["--body-bytes", "this is json"],
        ),
        (
            "run lying-http --test connect --dispatch fixed",
            ["--dispatch", "this is connect"],
        ),
        (
            "run lying-http --test connect --closed-loop",
            ["--closed-loop", "this is connect"],
        ),
        // What the target does not have, by its manifest.
        (
            "run haproxy --body-bytes 16384",
            ["--body-bytes 16384", "haproxy serves only 64, 1024 bytes"],
        ),
        (
            "run haproxy --test sizes",
            ["--test sizes", "serves no 16384 bytes"],
        ),
        (
            "run lying-http --protocol h2c",
            ["--protocol h2c", "lying-http does not speak it"],
        ),
        (
            "run nginx-default --test post",
            ["--test post", "does not have the route sum"],
        ),
        (
            "run nginx-default --body-bytes 100",
            ["--body-bytes 100", "16384"],
        ),
        (
            "run lying-http --expect-body /etc/hostname",
            ["--expect-body", "--url"],
        ),
    ] {
        let line = format!("{line} --workload http --sessions 10");
        refused_at_once(Plimsoll::measuring(line.split(' ')), &names);
    }
    let rate = "run lying-http --workload http --sessions 0";
    refused_at_once(
        Plimsoll::measuring(rate.split(' ')),
        &["--sessions", "1..="],
    );
    for (line, names) in [
        (
            "find lying-http --test sizes",
            ["--test sizes", "--body-bytes N"],
        ),
        (
            "find lying-http --test connections",
            ["--test connections", "--connections N"],
        ),
        (
            "compare lying-http lying-http --sessions 10 --test sizes",
            ["--test sizes", "--body-bytes N"],
        ),
    ] {
        let line = format!("{line} --workload http");
        refused_at_once(Plimsoll::measuring(line.split(' ')), &names);
    }
}

#[test]
fn a_body_to_expect_that_cannot_be_used_is_named() {
    let files = tempfile::tempdir().expect("a scratch folder");
    let empty = file(files.path(), "empty", "");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let line = format!("--workload http --sessions 10 --url {url} --expect-body");
    refused_at_once(
        run(&line).arg("/no/such"),
        &["--expect-body /no/such", "No such file"],
    );
    refused_at_once(run(&line).arg(empty), &["--expect-body", "empty"]);
}
