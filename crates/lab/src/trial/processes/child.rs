//! One process of a client of several.

use std::io::{BufRead, stdin, stdout};
use std::sync::atomic::Ordering;

use super::{Order, Said, read_line, write_line};
use crate::error::{Error, Result};
use crate::signals::Stop;

/// Drives its part of a trial's sessions: what the hidden subcommand does.
///
/// # Errors
/// One line: its input is no order of the command's, or the engine could not start.
pub fn serve(stop: &Stop) -> Result<()> {
    let order: Order = read_line(&mut stdin().lock()).map_err(|error| {
        Error::Usage(format!(
            "this is for Plimsoll itself, which starts it with an order on stdin: {error}"
        ))
    })?;
    let begin = || {
        say(&Said::Ready)?;
        let clock = read_line(&mut stdin().lock())?;
        stop_when_left_alone(stop)?;
        Ok(clock)
    };
    let flag = stop.flag();
    let report = order
        .pings
        .run_from(&order.options, begin, &flag, &mut |second| {
            // Nobody is there to be told: the command has died, or given up.
            if say(&Said::Second(Box::new(second))).is_err() {
                flag.store(true, Ordering::Relaxed);
            }
        })?;
    say(&Said::Report(Box::new(report))).map_err(|source| Error::Io {
        what: "telling the report".to_owned(),
        source,
    })
}

fn say(said: &Said) -> std::io::Result<()> {
    write_line(&mut stdout().lock(), said)
}

/// Stops the engine at the end of the input.
fn stop_when_left_alone(stop: &Stop) -> std::io::Result<()> {
    let stop = stop.clone();
    let listen = move || {
        let mut line = String::new();
        while matches!(stdin().lock().read_line(&mut line), Ok(1..)) {
            line.clear();
        }
        stop.request();
    };
    std::thread::Builder::new()
        .name("engine-stdin".to_owned())
        .spawn(listen)
        .map(drop)
}
