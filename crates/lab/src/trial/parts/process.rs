//! A part that is a process of this machine.

use std::io::{BufRead as _, BufReader, stdin, stdout};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::Sender;

use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::{Child, Launch, Piped};
use plimsoll_host::signals::Stop;

use super::part::{Ear, Others, drive};
use super::{Heard, Order, Reported, SUBCOMMAND, Said, Told, read_line, write_line};
use crate::error::{Error, Result};
use crate::trial::work::Registry;

/// Does one part of a trial. This is what the hidden subcommand does.
///
/// # Errors
/// One line: its input is not an order from the command, or the engine could not start.
pub fn serve(workloads: Registry, stop: &Stop) -> Result<()> {
    let refuse = |why: &str| {
        Error::Usage(format!(
            "this subcommand is internal: Plimsoll starts it with an order on stdin: {why}"
        ))
    };
    let order = match read_line(&mut stdin().lock()) {
        Ok(Told::Order(order)) => order,
        Ok(_) => return Err(refuse("something else came")),
        Err(error) => return Err(refuse(&error.to_string())),
    };
    let failed = |source| {
        Error::from(plimsoll_host::Error::Io {
            what: "talking to the command".to_owned(),
            source,
        })
    };
    let say = |said: &Said| write_line(&mut stdout().lock(), said);
    let (ear, cues) = Ear::new(stop);
    listen_to_command(ear).map_err(failed)?;
    let others = Others { say: &say, cues };
    let part = drive(&order, workloads, &others)?;
    let seen = None;
    say(&Said::Report(Box::new(Reported { part, seen }))).map_err(failed)
}

/// The end of the input is a stop.
fn listen_to_command(ear: Ear) -> std::io::Result<()> {
    let listen = move || {
        while let Ok(told) = read_line(&mut stdin().lock()) {
            ear.hear(&told);
        }
        ear.hear(&Told::Stop);
    };
    std::thread::Builder::new()
        .name("engine-stdin".to_owned())
        .spawn(listen)
        .map(drop)
}

/// How the processes of a trial are started. Their logs are named after `log_name`.
///
/// # Errors
/// The command does not know its own program.
pub(super) fn launches(
    orders: &[Order],
    log_folder: &Path,
    log_name: &str,
    cpus: &CpuList,
) -> Result<Vec<Launch>> {
    let program = std::env::current_exe().map_err(|source| plimsoll_host::Error::Io {
        what: "finding the command's own program".to_owned(),
        source,
    })?;
    let command = [
        program.to_string_lossy().into_owned(),
        SUBCOMMAND.to_owned(),
    ];
    let launch = |number: usize| {
        let name = format!("client process {number} of {}", orders.len());
        let log = log_folder.join(format!("{log_name}-{number}.log"));
        let mut launch = Launch::new(&name, &command, Path::new("."), &log);
        launch.cpus = Some(cpus.clone());
        launch
    };
    Ok((1..=orders.len()).map(launch).collect())
}

/// Starts one, and passes on what it says to `heard`, with its number.
///
/// # Errors
/// It does not start.
pub(super) fn start(
    launch: &Launch,
    number: usize,
    heard: Sender<(usize, Heard)>,
) -> Result<(Child, ChildStdin)> {
    let Piped {
        child,
        stdin,
        stdout,
    } = launch.start_piped()?;
    listen(number, stdout, heard)?;
    Ok((child, stdin))
}

/// Passes on what a process says, until it says no more.
fn listen(number: usize, stdout: ChildStdout, to: Sender<(usize, Heard)>) -> Result<()> {
    let listen = move || {
        let mut lines = BufReader::new(stdout);
        loop {
            let mut line = Vec::new();
            let heard = match lines.read_until(b'\n', &mut line) {
                Ok(0) => Heard::Silence(None),
                Ok(_) => Heard::Said(line),
                Err(error) => Heard::Silence(Some(format!("what it says cannot be read: {error}"))),
            };
            let last = matches!(heard, Heard::Silence(_));
            if to.send((number, heard)).is_err() || last {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("client-{}", number + 1))
        .spawn(listen)
        .map(drop)
        .map_err(|source| plimsoll_host::Error::Io {
            what: "listening to a client process".to_owned(),
            source,
        })?;
    Ok(())
}
