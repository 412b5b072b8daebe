//! Workload `ws`: turns its flags into its load. The test decides what a flag means, so a flag that the test does not
//! use is refused.

use std::net::{IpAddr, Ipv4Addr};

use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::record::LeftOut;
use plimsoll_core::schedule::Spacing;
use plimsoll_host::machine::Limits;
use plimsoll_lab::manifest::Manifest;
use plimsoll_lab::trial::processes::PROCESSES_MAX;
use plimsoll_lab::trial::{Subject, WsLoad};
use plimsoll_workload_ws::{Dialect, Format, Test};

use crate::args::{LOAD_MAX, LoadArgs, WorkloadName};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::secrets;

/// Connections from one address: slightly fewer than the ports that Linux assigns by itself.
const CONNECTIONS_PER_ADDRESS: u64 = 25_000;

/// Refuses flags of this workload if another one is requested.
pub(super) fn must_be_unused(workload: WorkloadName, load: &LoadArgs) -> Result<(), Failure> {
    let ws = &load.ws;
    let given = [
        ("--test", ws.test.is_some()),
        ("--dialect", ws.dialect.is_some()),
        ("--connections", ws.connections.is_some()),
        ("--rate", ws.rate.is_some()),
        ("--format", ws.format.is_some()),
        ("--linger-ms", ws.linger_ms.is_some()),
        ("--poisson", ws.poisson),
        ("--closed-loop", ws.closed_loop),
        ("--source-addresses", !ws.source_addresses.is_empty()),
        ("--token-secret", ws.token_secret.is_some()),
        ("--token-secret-file", ws.token_secret_file.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::Usage(format!(
            "{flag} is for --workload ws, this is {}",
            workload.word()
        ))),
        None => Ok(()),
    }
}

/// The load, for a target that Plimsoll starts or for a server that is already running. The load itself checks whether
/// its values can be used.
pub(super) fn load(args: &LoadArgs, manifest: Option<&Manifest>) -> Result<WsLoad, Failure> {
    let ws = &args.ws;
    let (test, dialect) = (ws.test(), dialect(ws.dialect, manifest)?);
    must_fit(args, test, dialect, manifest)?;
    let mut load = WsLoad::new(test, dialect);
    load.connections = ws.connections.unwrap_or(load.connections);
    load.rate_per_s = ws.rate.unwrap_or(load.rate_per_s);
    load.message_bytes = args.message_bytes.unwrap_or(load.message_bytes);
    load.format = ws.format.unwrap_or(load.format);
    if let Some(period_ms) = args.period_ms {
        load.period_ns = period_ms.saturating_mul(NS_PER_MS);
    }
    if let Some(linger_ms) = ws.linger_ms {
        load.linger_ns = linger_ms.saturating_mul(NS_PER_MS);
    }
    if ws.poisson {
        load.spacing = Spacing::Poisson;
    }
    let takes_tokens = dialect == Dialect::Wse && manifest.is_none();
    if let Some(secret) = secrets::token_secret(ws)?.filter(|_| takes_tokens) {
        load.credentials.secret = secret;
    }
    load.source_addresses.clone_from(&ws.source_addresses);
    load.closed_loop = ws.closed_loop;
    // The same object in another format has exactly one length, which may be given explicitly.
    let length = load.bytes_of_a_message();
    if load.format != Format::Json
        && args
            .message_bytes
            .is_some_and(|given| length != Some(given))
    {
        return Err(Failure::Usage(format!(
            "--message-bytes: only json messages can have any length; {} messages always have {} bytes",
            load.format.name(),
            length.unwrap_or_default()
        )));
    }
    Ok(load)
}

/// The dialect of the server: from its manifest, or from the flag if Plimsoll does not start the server.
fn dialect(asked: Option<Dialect>, manifest: Option<&Manifest>) -> Result<Dialect, Failure> {
    let Some(manifest) = manifest else {
        return Ok(asked.unwrap_or_default());
    };
    let spoken = manifest.dialect();
    match asked {
        Some(asked) if asked != spoken => Err(Failure::Usage(format!(
            "--dialect {}: {} speaks {} by its target.toml; leave the flag out",
            asked.name(),
            manifest.name,
            spoken.name()
        ))),
        _ => Ok(spoken),
    }
}

/// Refuses a flag that the test, the dialect or the kind of target does not use.
fn must_fit(
    args: &LoadArgs,
    test: Test,
    dialect: Dialect,
    manifest: Option<&Manifest>,
) -> Result<(), Failure> {
    use Test::{Fanout, Formats, Hold, Limit, Matrix, Ping, Storm, Throughput};
    let ws = &args.ws;
    let of_tests: [(&str, bool, &[Test]); 8] = [
        (
            "--connections",
            ws.connections.is_some(),
            &[Throughput, Matrix, Formats],
        ),
        ("--rate", ws.rate.is_some(), &[Fanout]),
        ("--format", ws.format.is_some(), &[Throughput]),
        ("--linger-ms", ws.linger_ms.is_some(), &[Storm]),
        ("--poisson", ws.poisson, &[Storm]),
        ("--closed-loop", ws.closed_loop, &[Ping, Throughput]),
        (
            "--period-ms",
            args.period_ms.is_some(),
            &[Ping, Hold, Limit],
        ),
        (
            "--message-bytes",
            args.message_bytes.is_some(),
            &[Ping, Throughput, Hold, Limit, Fanout],
        ),
    ];
    for (flag, given, tests) in of_tests {
        if given && !tests.contains(&test) {
            let names: Vec<&str> = tests.iter().map(|test| test.name()).collect();
            return Err(Failure::Usage(format!(
                "{flag} is for --test {}, this is {}",
                names.join(", "),
                test.name()
            )));
        }
    }
    if test == Storm && args.ramp.is_some() {
        return Err(refuse(
            "--ramp: connections of --test storm arrive all the time, from the warm-up on; leave the flag out",
        ));
    }
    if args.audio.is_some() {
        return Err(refuse("--audio is for --workload stt, this is ws"));
    }
    let signed = ws.token_secret.is_some() || ws.token_secret_file.is_some();
    if signed && (dialect != Dialect::Wse || manifest.is_some()) {
        return Err(refuse(
            "--token-secret and --token-secret-file are for a server that runs already (--url) and speaks wse (--dialect wse)",
        ));
    }
    let pings = matches!(test, Ping | Hold | Limit);
    if args.message_bytes.is_some() && pings && dialect == Dialect::Wse {
        return Err(refuse(
            "--message-bytes: a wse ping has a fixed length; leave the flag out",
        ));
    }
    Ok(())
}

/// Gives the test `limit` enough loopback addresses for every connection that its client can hold, unless the user gave
/// some.
pub(super) fn spread_over_addresses(ws: &mut WsLoad, subject: &Subject) {
    let on_loopback = match subject {
        Subject::Started(_) => true,
        Subject::Running { url, .. } => url.address.is_ipv4() && url.address.ip().is_loopback(),
    };
    if ws.test != Test::Limit || !ws.source_addresses.is_empty() || !on_loopback {
        return;
    }
    let of_a_process = Limits::of_this_process().sessions_of_a_process();
    let connections = of_a_process.saturating_mul(PROCESSES_MAX.into());
    let needed = connections.min(LOAD_MAX.into()) / CONNECTIONS_PER_ADDRESS + 1;
    if needed > 1 {
        let last = u8::try_from(needed).unwrap_or(u8::MAX).min(254);
        ws.source_addresses = (1..=last)
            .map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)))
            .collect();
    }
}

/// Refuses what turns one trial into several measurements, for commands that search or compare: tests that consist of
/// several loads, and the closed loop.
pub(crate) fn must_be_one_load(
    workload: WorkloadName,
    load: &LoadArgs,
    what: &str,
) -> Result<(), Failure> {
    if workload != WorkloadName::Ws {
        return Ok(());
    }
    let remedy = match load.ws.test() {
        Test::Matrix => "one size at a time: --test throughput --message-bytes N",
        Test::Formats => "one format at a time: --test throughput --format F",
        _ if load.ws.closed_loop => {
            return Err(Failure::Usage(format!(
                "--closed-loop does not affect the verdict and doubles the time; {what} trials without it. For a closed loop, run the load once more with `plimsoll run`"
            )));
        }
        _ => return Ok(()),
    };
    Err(Failure::Usage(format!(
        "--test {} runs one trial per row, which only `plimsoll run` does; {what} {remedy}",
        load.ws.test().name()
    )))
}

/// With `--all`, keeps the targets of one dialect: the requested one, otherwise echo. A message asks different work of
/// a server in each dialect, so their loads are not the same.
pub(crate) fn of_one_dialect(
    catalogue: Catalogue,
    asked: Option<Dialect>,
) -> Result<Catalogue, Failure> {
    let wanted = asked.unwrap_or_default();
    let Catalogue {
        targets,
        mut left_out,
    } = catalogue;
    let (targets, others): (Vec<_>, Vec<_>) = targets
        .into_iter()
        .partition(|manifest| manifest.dialect() == wanted);
    left_out.extend(others.into_iter().map(|manifest| {
        let spoken = manifest.dialect().name();
        LeftOut {
            name: manifest.name,
            reason: format!("speaks {spoken}; measure it with --dialect {spoken}"),
        }
    }));
    if targets.is_empty() {
        return Err(Failure::Usage(format!(
            "no target that speaks {} runs here; see plimsoll list",
            wanted.name()
        )));
    }
    Ok(Catalogue { targets, left_out })
}

/// Refuses targets of two dialects in one ranking or comparison.
pub(crate) fn must_speak_alike(
    workload: WorkloadName,
    targets: &[Manifest],
) -> Result<(), Failure> {
    let Some((first, others)) = targets.split_first() else {
        return Ok(());
    };
    let other = others
        .iter()
        .filter(|_| workload == WorkloadName::Ws)
        .find(|other| other.dialect() != first.dialect());
    match other {
        Some(other) => Err(Failure::Usage(format!(
            "{} speaks {}, {} speaks {}: the same load is not the same work; measure each by itself",
            first.name,
            first.dialect().name(),
            other.name,
            other.dialect().name()
        ))),
        None => Ok(()),
    }
}

fn refuse(text: &str) -> Failure {
    Failure::Usage(text.to_owned())
}
