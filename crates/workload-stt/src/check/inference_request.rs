//! Section 5 of the contract: what the gateway sends to its inference server, as the simulator saw it.

use plimsoll_conformance::case::poll;

use super::registry::{Case, Site, Verdict, case};
use super::setup::SLOW_MODEL;
use crate::InferenceTransport;
use crate::reference;
use crate::simulator::SeenRequest;
use crate::synthetic::Synthetic;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "request-body",
            "A request's body is the raw PCM of the batch",
            "a request with the checksum of the batch",
            |site| {
                Ok(format!(
                    "{} bytes with the batch's checksum",
                    own_request(site)?.audio_bytes
                ))
            },
        )
        .only_when_started(),
        case(
            "request-content-type",
            "A request says content-type: application/octet-stream",
            "content-type application/octet-stream",
            content_type,
        )
        .only_when_started(),
        case(
            "request-passes",
            "A request says x-cpu-passes as configured",
            "x-cpu-passes 3, with CPU_PASSES=3, and the partial says so",
            passes,
        )
        .in_setup(&SLOW_MODEL),
        case(
            "request-transport",
            "Requests go over the transport that the manifest declares",
            "HTTP/2.0 for h2c, HTTP/1.1 for http1",
            transport,
        )
        .only_when_started(),
        case(
            "request-never-empty",
            "An empty buffer at a tick sends no request",
            "no request at the simulator for three intervals",
            never_empty,
        )
        .in_setup(&SLOW_MODEL),
    ]
}

/// The request of a session of its own, known by its checksum among those of other cases.
fn own_request(site: &Site<'_>) -> Result<SeenRequest, String> {
    let mut session = site.session()?;
    session.send_audio(2)?;
    let (_, partial) = session.next_partial(site.patience())?;
    let pcm = Synthetic::new().batch(session.number(), 1, partial.frames);
    let checksum = reference::checksum(&pcm, partial.cpu_passes);
    let simulator = site.simulator()?;
    let ask = || {
        let requests = simulator.requests()?;
        let own = requests
            .into_iter()
            .find(|request| request.checksum == Some(checksum));
        let found = own.is_some();
        Ok((own, found))
    };
    let (own, _) = poll(site.patience(), ask)?;
    own.ok_or_else(|| format!("no request with checksum {checksum} came to the simulator"))
}

fn content_type(site: &Site<'_>) -> Verdict {
    let seen = own_request(site)?
        .content_type
        .unwrap_or_else(|| "nothing".to_owned());
    let as_expected = seen == "application/octet-stream";
    let seen = format!("content-type {seen}");
    if as_expected { Ok(seen) } else { Err(seen) }
}

fn passes(site: &Site<'_>) -> Verdict {
    let expected = site.setup.number("CPU_PASSES", 4);
    let seen = own_request(site)?.cpu_passes;
    let text = seen.map_or("no x-cpu-passes".to_owned(), |passes| {
        format!("x-cpu-passes {passes}")
    });
    if seen == Some(expected) {
        Ok(text)
    } else {
        Err(text)
    }
}

fn transport(site: &Site<'_>) -> Verdict {
    let version = own_request(site)?.http_version;
    let expected = match site.suite.transport {
        None => return Ok(format!("{version}; nothing is declared")),
        Some(InferenceTransport::H2c) => "HTTP/2.0",
        Some(InferenceTransport::Http1) => "HTTP/1.1",
    };
    let seen = format!("{version}; {expected} is declared");
    if version == expected {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn never_empty(site: &Site<'_>) -> Verdict {
    let simulator = site.simulator()?;
    let before = simulator.stats()?.requests;
    let mut session = site.session()?;
    session.expect_silence(3 * site.flush_interval() + site.jitter())?;
    let new = simulator.stats()?.requests.saturating_sub(before);
    let seen = format!("{new} requests");
    if new == 0 { Ok(seen) } else { Err(seen) }
}
