//! One process of a client that has several.

use std::io::{stdin, stdout};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_engine::Company;
use plimsoll_engine::clock::Clock;
use plimsoll_host::signals::Stop;

use super::{End, Order, Said, read_line, write_line};
use crate::error::{Error, Result};
use crate::trial::work::Registry;

/// Drives its part of a trial's sessions. This is what the hidden subcommand does.
///
/// # Errors
/// One line: its input is not an order from the command, or the engine could not start.
pub fn serve(workloads: Registry, stop: &Stop) -> Result<()> {
    let order: Order = read_line(&mut stdin().lock()).map_err(|error| {
        Error::Usage(format!(
            "this subcommand is internal: Plimsoll starts it with an order on stdin: {error}"
        ))
    })?;
    let others = Others {
        stop: stop.clone(),
        may_end: Arc::default(),
    };
    let mut on_second = |second| {
        others.tell(&Said::Second(Box::new(second)));
        ControlFlow::Continue(())
    };
    let flag = stop.flag();
    let plan = order.work.plan(workloads)?;
    let machines = order.work.machines(&*plan, &order.options.profile)?;
    let part = machines.run_part(&others, &order.options, &flag, &mut on_second)?;
    let said = say(&Said::Report(Box::new(part)));
    Ok(said.map_err(|source| plimsoll_host::Error::Io {
        what: "sending the report".to_owned(),
        source,
    })?)
}

/// The other processes, reached through the command.
struct Others {
    stop: Stop,
    may_end: Arc<AtomicBool>,
}

impl Others {
    fn tell(&self, said: &Said) {
        // Nobody listens any more: the command has died, or given up.
        if say(said).is_err() {
            self.stop.request();
        }
    }

    /// Stops the engine when the input ends.
    fn listen(&self) -> std::io::Result<()> {
        let (stop, may_end) = (self.stop.clone(), Arc::clone(&self.may_end));
        let listen = move || {
            while let Ok(End) = read_line(&mut stdin().lock()) {
                may_end.store(true, Ordering::Relaxed);
            }
            stop.request();
        };
        std::thread::Builder::new()
            .name("engine-stdin".to_owned())
            .spawn(listen)
            .map(drop)
    }
}

impl Company for Others {
    fn begin(&self) -> std::io::Result<Clock> {
        say(&Said::Ready)?;
        let clock = read_line(&mut stdin().lock())?;
        self.listen()?;
        Ok(clock)
    }

    fn settled(&self) {
        self.tell(&Said::Settled);
    }

    fn may_end(&self) -> bool {
        self.may_end.load(Ordering::Relaxed)
    }
}

fn say(said: &Said) -> std::io::Result<()> {
    write_line(&mut stdout().lock(), said)
}
