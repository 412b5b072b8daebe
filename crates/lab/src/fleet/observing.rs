//! An agent that observes: it samples the server that listens where the load goes, and drives nothing.

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use plimsoll_core::record::MemoryAt;
use plimsoll_engine::clock::Clock;
use plimsoll_fleet::{Channel, Connection, Event, Side};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::listener_on;
use plimsoll_host::resources::{DEFAULT_INTERVAL, Monitor, Sampler, SocketWatch, Source, Watched};
use plimsoll_host::signals::Stop;
use serde::{Deserialize, Serialize};

use super::agent::{Parted, not_heard};
use crate::error::Result;
use crate::trial::parts::{Said, Told};
use crate::trial::{TARGET, memory_of};

/// How often to look whether we were asked to stop.
const POLL: Duration = Duration::from_millis(50);
/// How often samples are sent.
const SEND_EVERY: Duration = Duration::from_secs(1);

/// What an observer sees of the target at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Looked {
    /// The CPUs that its threads may use.
    pub(crate) cpus: Option<CpuList>,
    /// Where its CPU times come from.
    pub(crate) source: String,
    pub(crate) memory: Option<MemoryAt>,
}

/// Watches for one coordinator. Without a `source`, the target is the process that listens where the load goes.
pub(super) fn stay(source: Option<&Source>, channel: Channel, stop: &Stop) -> Result<Parted> {
    let (events, heard) = self::channel();
    let connection = Connection::start(channel, Side::Answers, move |event| {
        // Nobody hears it once we have left.
        let _ = events.send(event);
    })
    .map_err(not_heard)?;
    let mut observing = Observing {
        source,
        monitor: None,
    };
    // If the connection is gone, this is heard as well.
    let say = |said: Said| drop(connection.say(&said));
    let mut send_at = Instant::now() + SEND_EVERY;
    while !stop.requested() {
        match heard.recv_timeout(POLL) {
            Ok(Event::Message(json)) => match serde_json::from_slice(&json) {
                Ok(Told::Bye) => return Ok(Parted::Bye),
                Ok(told) => observing.answer(told).into_iter().for_each(say),
                Err(error) => {
                    return Ok(Parted::Gone(format!(
                        "what it says cannot be read: {error}"
                    )));
                }
            },
            Ok(Event::Gone(why)) => return Ok(Parted::Gone(why)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(Parted::Gone("the connection was ended here".to_owned()));
            }
        }
        if Instant::now() >= send_at {
            send_at += SEND_EVERY;
            observing.piece().into_iter().for_each(say);
        }
    }
    Ok(Parted::Stopped)
}

/// What is observed now.
struct Observing<'a> {
    source: Option<&'a Source>,
    monitor: Option<Monitor>,
}

impl Observing<'_> {
    /// Does what it is told, and says what there is to say.
    fn answer(&mut self, told: Told) -> Vec<Said> {
        let done = match told {
            Told::Look { address } => self
                .look(address)
                .map(|seen| vec![Said::Looked(seen.into())]),
            Told::Watch { address, epoch_ns } => self.watch(address, epoch_ns).map(|()| Vec::new()),
            Told::Stop => Ok(self.rest()),
            _ => Err("it observes, and drives no load".to_owned()),
        };
        done.unwrap_or_else(|why| vec![Said::Refused(why)])
    }

    /// The processes of the server that listens there.
    fn source(&self, address: SocketAddr) -> std::result::Result<Source, String> {
        match self.source {
            Some(source) if source.processes().is_empty() => {
                Err("what it was started to observe is gone".to_owned())
            }
            Some(source) => Ok(source.clone()),
            None => listener_on(address.port()).map(Source::Tree).map_err(|why| {
                format!("{why}; start it beside the target, or name the target with --pid or --cgroup")
            }),
        }
    }

    fn look(&self, address: SocketAddr) -> std::result::Result<Looked, String> {
        let source = self.source(address)?;
        Ok(Looked {
            cpus: source.cpus(),
            memory: memory_of(&source),
            source: Sampler::new(source, Instant::now())
                .source_name()
                .to_owned(),
        })
    }

    fn watch(&mut self, address: SocketAddr, epoch_ns: u64) -> std::result::Result<(), String> {
        let epoch = Clock::at_monotonic_ns(epoch_ns).epoch();
        let sampler = Sampler::new(self.source(address)?, epoch);
        let watched = Watched {
            samplers: vec![(TARGET.to_owned(), sampler)],
            sockets: Some(SocketWatch::new(address)),
        };
        let monitor = Monitor::start(watched, epoch, DEFAULT_INTERVAL, None);
        self.monitor = Some(monitor.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// What was sampled since the last piece.
    fn piece(&self) -> Option<Said> {
        let recorded = self.monitor.as_ref()?.take()?;
        Some(Said::Sampled(recorded.into()))
    }

    /// The last piece, and that it is the last.
    fn rest(&mut self) -> Vec<Said> {
        let Some(monitor) = self.monitor.take() else {
            // Whoever ends a trial that never began says so, too.
            return Vec::new();
        };
        match monitor.stop() {
            Ok(recorded) => vec![Said::Sampled(recorded.into()), Said::Watched],
            Err(error) => vec![Said::Refused(error.to_string())],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn refused(said: &[Said], words: &str) {
        assert!(
            matches!(said, [Said::Refused(why)] if why.contains(words)),
            "{said:?}"
        );
    }

    #[test]
    fn whoever_listens_there_is_looked_at_and_sampled() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let mut observing = Observing {
            source: None,
            monitor: None,
        };
        let said = observing.answer(Told::Look { address });
        let [Said::Looked(looked)] = said.as_slice() else {
            panic!("{said:?}")
        };
        assert_eq!(looked.cpus, CpuList::allowed_to_us().ok());
        assert!(looked.memory.is_some_and(|memory| memory.rss_bytes > 0));
        assert_eq!(looked.source, "process tree");
        assert!(observing.answer(Told::Stop).is_empty(), "nothing began");
        let epoch_ns = Clock::start_in(Duration::ZERO).epoch_monotonic_ns();
        assert!(
            observing
                .answer(Told::Watch { address, epoch_ns })
                .is_empty()
        );
        assert!(
            matches!(observing.piece(), Some(Said::Sampled(piece)) if piece.series[TARGET].samples().len() == 1)
        );
        let said = observing.answer(Told::Stop);
        assert!(
            matches!(said.as_slice(), [Said::Sampled(rest), Said::Watched] if rest.sockets.between(0, u64::MAX).is_some()),
            "{said:?}"
        );
        let (_socket, address) = plimsoll_testing::nobody_listens();
        refused(&observing.answer(Told::Look { address }), "nobody listens");
    }

    #[test]
    fn it_drives_nothing_and_misses_who_is_gone() {
        let gone = Source::Group(plimsoll_host::isolation::GroupView::of_process(
            i32::MAX,
            &plimsoll_host::isolation::Layout::of_this_machine(),
        ));
        let mut observing = Observing {
            source: Some(&gone),
            monitor: None,
        };
        refused(&observing.answer(Told::End), "drives no load");
        let address = "127.0.0.1:1".parse().expect("an address");
        refused(&observing.answer(Told::Look { address }), "is gone");
    }
}
