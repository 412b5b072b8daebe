//! Tests the routes without a socket.

mod pages;
mod refusals;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use plimsoll_core::record::{Bracket, Trial};
use plimsoll_report::ResultFolder;
use tower::ServiceExt;

use super::guard::{Guard, Token};
use super::{Site, router};

#[path = "../../../../report/tests/example/mod.rs"]
mod example;

/// The content of files that nobody may see.
const PRIVATE: &str = "private-to-this-machine";

/// A folder of results, and beside it a private one.
struct Place(tempfile::TempDir);

/// An answer.
struct Reply {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Reply {
    #[track_caller]
    fn expect(&self, status: u16, words: &[&str]) -> &Self {
        assert_eq!(self.status, status, "{}", self.body);
        for word in words {
            assert!(self.body.contains(word), "no {word:?} in {}", self.body);
        }
        self
    }

    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap_or("odd"))
    }
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a scratch folder"));
        fs::create_dir_all(place.results()).expect("mkdir");
        let private = place.0.path().join("private");
        fs::create_dir_all(&private).expect("mkdir");
        for name in ["report.html", "chart.svg", "trial-001.json"] {
            fs::write(private.join(name), PRIVATE).expect("written");
        }
        place
    }

    /// With three searches: two alike, one under other conditions.
    fn with_results() -> Self {
        let place = Self::new();
        let find = example::find();
        place.find("a-find", &find.bracket, &find.trials);
        let mut later = find.bracket.clone();
        later.started_at = "2026-01-03T03:04:05Z".to_owned();
        place.find("sorted/b find", &later, &find.trials);
        let mut trials = find.trials.clone();
        for trial in &mut trials {
            trial.vcpu = Some(0.25);
        }
        let quarter = Bracket {
            vcpu: Some(0.25),
            ..find.bracket
        };
        place.find("quarter", &quarter, &trials);
        place
    }

    fn results(&self) -> PathBuf {
        self.0.path().join("results")
    }

    fn find(&self, name: &str, bracket: &Bracket, trials: &[Trial]) {
        let folder = ResultFolder::create(self.results().join(name)).expect("a folder");
        for trial in trials {
            folder.write_trial(trial, &[], &[]).expect("written");
        }
        folder.write_bracket(bracket).expect("written");
    }

    fn site(&self, token: Option<Token>) -> Router {
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        router(Site {
            results: self.results(),
            guard: Guard::new("127.0.0.1", address, 7878, token),
        })
    }

    fn get(&self, uri: &str) -> Reply {
        ask(&self.site(None), "GET", uri, &[("host", "localhost:7878")])
    }
}

fn ask(site: &Router, method: &str, uri: &str, headers: &[(&str, &str)]) -> Reply {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let response = site.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 16 << 20).await.expect("its body");
        Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    })
}
