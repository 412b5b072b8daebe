//! `plimsoll calibrate --inference URL`: up to how many gateway sessions an inference server holds when it is loaded
//! alone.

use std::net::SocketAddr;
use std::process::ExitCode;

use plimsoll_core::record::{InferenceCalibration, InferenceLoad, SCHEMA_VERSION, Verdict};
use plimsoll_core::secret::redacted_url;
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;
use plimsoll_lab::calibrate::{self, InferenceFound, InferenceSettings};
use plimsoll_lab::trial;
use plimsoll_report::facts::inference::verdict;
use plimsoll_report::text;
use plimsoll_workload::BackEndLoad;

use super::placement;
use crate::args::CalibrateArgs;
use crate::failure::Failure;
use crate::output::{self, note, say};
use crate::{build, setup};

/// The first load to try, in sessions.
const FIRST_SESSIONS: u32 = 10;
/// The port of a URL that names none.
const HTTP_PORT: u16 = 80;

pub(super) fn run(args: &CalibrateArgs, url: &str, stop: &Stop) -> Result<ExitCode, Failure> {
    let workload = args.workload.about().name;
    let Some(batches) = args.workload.back_end_load() else {
        return Err(Failure::Usage(format!(
            "--inference {}: workload {workload} has no inference server; leave the flag out, or give a --workload that has one",
            redacted_url(url)
        )));
    };
    let settings = settings(args, url)?;
    let folder = output::folder(&args.out, "calibrate", "inference")?;
    let started_at = timestamp::now();
    let found = calibrate::inference(batches, &settings, stop, show)?;
    let record = record(workload, batches, &settings, found, started_at);
    folder.write_inference(&record)?;
    output::render(folder.path())?;
    if args.out.json {
        output::print_json(&record)?;
    } else {
        output::print(&text::inference(&record));
        say!("result: {}", folder.path().display());
    }
    Ok(match record.is_invalid() {
        true => output::code_of(Verdict::Invalid, false),
        false => ExitCode::SUCCESS,
    })
}

fn settings(args: &CalibrateArgs, url: &str) -> Result<InferenceSettings, Failure> {
    let (host, address) = resolved(url)?;
    let server = setup::source(args.pid, None)?;
    let placement = placement(args)?;
    if placement.shared() {
        note!(
            "the client has no core to itself (CPU {}): if the server runs there too, each disturbs the other",
            placement.client_cpus
        );
    }
    let max = calibrate::sessions_max();
    Ok(InferenceSettings {
        url: url.trim_end_matches('/').to_owned(),
        host,
        address,
        transport: args.inference_transport.clone(),
        client_cpus: placement.client_cpus,
        seconds: args.seconds,
        first: args.sessions.unwrap_or(FIRST_SESSIONS).min(max),
        max,
        seed: args.seed,
        server,
    })
}

/// The host with its port, and where that is.
fn resolved(url: &str) -> Result<(String, SocketAddr), Failure> {
    let shown = redacted_url(url);
    let refuse = |why: &str| Failure::Usage(format!("--inference {shown}: {why}"));
    let authority = url.strip_prefix("http://").unwrap_or_default();
    let authority = authority.trim_end_matches('/');
    if !setup::is_inference_url(url) || authority.is_empty() || authority.contains('/') {
        return Err(refuse(
            "write a URL without user, password, path and query, http://HOST:PORT",
        ));
    }
    trial::resolved(authority, Some(HTTP_PORT)).map_err(|why| refuse(&why))
}

fn record(
    workload: &str,
    batches: &dyn BackEndLoad,
    settings: &InferenceSettings,
    found: InferenceFound,
    started_at: String,
) -> InferenceCalibration {
    InferenceCalibration {
        schema_version: SCHEMA_VERSION,
        workload: workload.to_owned(),
        url: settings.url.clone(),
        transport: settings.transport.clone(),
        batch_bytes: batches.batch_bytes() as u64,
        p99_limit_ms: batches.p99_limit_ms(),
        sessions: found.sessions,
        ended: found.ended,
        loads: found.loads,
        seconds: settings.seconds,
        seed: settings.seed,
        build: build::of_this_program(),
        started_at,
    }
}

fn show(load: &InferenceLoad) {
    let p99_ms = load.from_schedule.p99_ms.unwrap_or(f64::NAN);
    let send_lag_ms = load.send_lag.p99_us.unwrap_or(f64::NAN) / 1e3;
    note!(
        "  {} sessions: {:.1} of {:.1} batches/s answered, p99 {p99_ms:.1} ms, send lag p99 {send_lag_ms:.2} ms: {}",
        load.sessions,
        load.answered_per_s,
        load.sent_per_s,
        verdict(load)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_with_a_port() {
        let of = |url| resolved(url).map_err(|it| it.to_string());
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let expected = ("127.0.0.1:9000".to_owned(), address(9000));
        assert_eq!(of("http://127.0.0.1:9000"), Ok(expected.clone()));
        assert_eq!(of("http://127.0.0.1:9000/"), Ok(expected));
        let expected = ("127.0.0.1:80".to_owned(), address(80));
        assert_eq!(of("http://127.0.0.1"), Ok(expected));
        assert!(of("http://[::1]").is_ok_and(|(host, _)| host == "[::1]:80"));
        for bad in [
            "127.0.0.1:9000",
            "https://127.0.0.1:9000",
            "http://",
            "http://127.0.0.1:9000/infer",
            "http://u:canary@127.0.0.1:9000",
            "http://127.0.0.1:9000/?key=canary",
        ] {
            let text = of(bad).unwrap_err();
            assert!(text.starts_with("--inference "), "{text}");
            assert!(text.contains("http://HOST:PORT"), "{text}");
            assert!(!text.contains("canary"), "{text}");
        }
    }
}
