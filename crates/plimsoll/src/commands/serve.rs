//! `plimsoll serve`: shows the history, any report, results side by side, and what is being measured now, as local web
//! pages.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use plimsoll_host::signals::Stop;
use plimsoll_report::history::History;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::output::{note, say};
use crate::secrets;
use crate::serve::guard::{Guard, Token};
use crate::serve::{Site, router};
use crate::workloads::tellers;

/// How often to check whether we were asked to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long answers in progress may still take after that. Event streams are cut off.
const GRACE: Duration = Duration::from_millis(500);

/// Exits with 0 when asked to stop, because nothing can be left half done.
pub(crate) fn run(args: &ServeArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    if !args.results.exists() {
        return Err(Failure::Usage(format!(
            "there is no folder {}; measure something first, or name the folder of results with --results",
            args.results.display()
        )));
    }
    // An error that every page would show is reported here.
    History::open(&args.results, tellers())?.refresh()?;
    let given = match &args.token {
        Some(token) => Some(token.clone()),
        None => secrets::in_file_or_environment(
            "--token-file",
            args.token_file.as_deref(),
            secrets::SERVE_TOKEN_VARIABLE,
        )?,
    };
    let chosen = given
        .as_ref()
        .map(|token| chosen(token.expose()))
        .transpose()?;
    // A user who chose a token knows it. One that was made up is shown only here.
    let known = chosen.is_some();
    let listener = listen(&args.listen)?;
    secrets::warn_of_the_process_list();
    let address = listener
        .local_addr()
        .map_err(|error| cannot_listen(&args.listen, &error))?;
    let token = match chosen {
        None if !address.ip().is_loopback() => Some(Token::of_random(random()?)),
        chosen => chosen,
    };
    let shown = token
        .as_ref()
        .filter(|_| !known)
        .map_or_else(String::new, |token| format!("?token={}", token.text()));
    let site = Site {
        results: args.results.clone(),
        guard: Guard::new(host_of(&args.listen), address.ip(), address.port(), token),
    };
    say!("http://{}/{shown}", reachable(&args.listen, address));
    note!("serving {}; press Ctrl-C to stop", args.results.display());
    served(listener, site, stop).map_err(|error| cannot_listen(&args.listen, &error))?;
    Ok(ExitCode::SUCCESS)
}

fn served(listener: TcpListener, site: Site, stop: &Stop) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let ended = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            ended = axum::serve(listener, router(site)).into_future() => ended,
            () = asked_to(stop) => Ok(()),
        }
    });
    runtime.shutdown_timeout(GRACE);
    ended
}

async fn asked_to(stop: &Stop) {
    while !stop.requested() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn chosen(token: &str) -> Result<Token, Failure> {
    // The token itself is not repeated: messages end up in logs.
    Token::chosen(token).ok_or_else(|| {
        Failure::Usage(
            "--token: give at least 16 characters of A-Z, a-z, 0-9, - and _; or leave it out, and a random one is used if needed"
                .to_owned(),
        )
    })
}

fn listen(asked: &str) -> Result<TcpListener, Failure> {
    let addresses: Vec<SocketAddr> = match asked.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            return Err(Failure::Usage(format!(
                "--listen {asked}: {error}; give ADDRESS:PORT, for example 127.0.0.1:7878"
            )));
        }
    };
    TcpListener::bind(addresses.as_slice()).map_err(|error| cannot_listen(asked, &error))
}

fn cannot_listen(asked: &str, error: &std::io::Error) -> Failure {
    Failure::Usage(match error.kind() {
        ErrorKind::AddrInUse => format!(
            "--listen {asked}: the port is taken; choose another one, or stop the program that uses it"
        ),
        ErrorKind::AddrNotAvailable => {
            format!(
                "--listen {asked}: this machine does not have that address; name one that it has"
            )
        }
        ErrorKind::PermissionDenied => {
            format!("--listen {asked}: permission denied; choose a port above 1023")
        }
        _ => format!("--listen {asked}: {error}"),
    })
}

/// The host in `HOST:PORT`.
fn host_of(asked: &str) -> &str {
    asked.rsplit_once(':').map_or(asked, |(host, _)| host)
}

/// The address to open in a browser. "All addresses" is not one.
fn reachable(asked: &str, address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        return format!("127.0.0.1:{}", address.port());
    }
    match host_of(asked) {
        name if name.parse::<std::net::IpAddr>().is_err() && !name.starts_with('[') => {
            format!("{name}:{}", address.port())
        }
        _ => address.to_string(),
    }
}

fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| {
        Failure::Usage(format!("/dev/urandom: {error}; give a token with --token"))
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_opened() {
        let reachable =
            |asked: &str, address: &str| reachable(asked, address.parse().expect("an address"));
        assert_eq!(reachable("127.0.0.1:0", "127.0.0.1:4711"), "127.0.0.1:4711");
        assert_eq!(
            reachable("localhost:7878", "127.0.0.1:7878"),
            "localhost:7878"
        );
        assert_eq!(reachable("0.0.0.0:7878", "0.0.0.0:7878"), "127.0.0.1:7878");
        assert_eq!(reachable("[::1]:7878", "[::1]:7878"), "[::1]:7878");
        assert_eq!(reachable("10.0.0.7:1", "10.0.0.7:1"), "10.0.0.7:1");
    }

    #[test]
    fn an_address_that_is_none_is_one_line() {
        for asked in ["7878", "localhost", "x:y", "127.0.0.1:70000", ""] {
            let refused = listen(asked).expect_err(asked).to_string();
            assert!(refused.starts_with("--listen "), "{refused}");
            assert!(!refused.contains('\n'), "{refused}");
        }
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let asked = taken.local_addr().expect("its address").to_string();
        let refused = listen(&asked).expect_err("taken").to_string();
        assert!(refused.contains("the port is taken"), "{refused}");
    }

    #[test]
    fn two_tokens_that_are_made_up_differ() {
        assert_ne!(random().expect("bytes"), random().expect("bytes"));
    }
}
