//! The program, for both brokers: configuration, log, sockets, signals.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::broker::Broker;
use crate::conduct::Conduct;
use crate::config::Config;
use crate::disk::Folder;
use crate::edge::Edge;

/// What a program is made of, as its `build.rs` found it.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// Its name and version.
    pub program: (&'static str, &'static str),
    /// The compiler, by its own word.
    pub rustc: &'static str,
    /// `name version` of each library, between commas.
    pub libraries: &'static str,
}

/// A [`Built`] of the crate that calls it.
#[macro_export]
macro_rules! built {
    () => {
        $crate::run::Built {
            program: (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            rustc: env!("TARGET_RUSTC"),
            libraries: env!("TARGET_LIBRARIES"),
        }
    };
}

/// The program: reads the environment, serves until SIGTERM or SIGINT. `conduct` makes the broker's conduct of the same
/// variables, or says in one line which has a value that is of no use.
pub fn main<C: Conduct>(
    built: Built,
    conduct: impl FnOnce(&dyn Fn(&str) -> Option<OsString>) -> Result<C, String>,
) -> ExitCode {
    let variable = |name: &str| std::env::var_os(name);
    let config = Config::read(variable).map_err(|problem| problem.to_string());
    let (config, conduct) = match config.and_then(|config| Ok((config, conduct(&variable)?))) {
        Ok(both) => both,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let (port, folder) = (config.port, config.data_dir.clone());
    match serve(&built, config, conduct) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot serve on port {port} with the data in {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn serve<C: Conduct>(built: &Built, config: Config, conduct: C) -> io::Result<()> {
    raise_descriptor_limit();
    // Before anybody can know of this process: a signal must not find it without a handler.
    let signals = signals()?;
    let disk = Folder::new(config.data_dir)?;
    let (broker, recovery) = Broker::start(disk, config.settings, conduct)?;
    if recovery.cut_bytes > 0 || recovery.segments_set_aside > 0 {
        eprintln!(
            "the log was torn: {} records are whole, {} bytes were cut off and {} later segments set aside",
            recovery.records, recovery.cut_bytes, recovery.segments_set_aside
        );
    }
    let edge = Edge::new(broker, config.port, config.http_port, signals)?;
    println!("{}", start_line(built, config.port));
    edge.run()
}

/// The line that is printed on start: one JSON object. Nothing in it needs escaping: names and numbers of versions.
fn start_line(built: &Built, port: u16) -> String {
    let (name, version) = built.program;
    let libraries: Vec<String> = built
        .libraries
        .split(',')
        .filter_map(|library| library.split_once(' '))
        .map(|(name, version)| format!(r#""{name}":"{version}""#))
        .collect();
    format!(
        r#"{{"event":"start","target":"{name} {version}","runtime":"none","language":"{}","libraries":{{{}}},"port":{port},"worker_threads":1}}"#,
        built.rustc,
        libraries.join(","),
    )
}

/// A socket that becomes readable when the process is told to end.
fn signals() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}

/// A connection is a descriptor: takes as many as are allowed.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused the old limit stands, and running into it is told when it happens.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_line_names_every_version() {
        let built =
            Built { program: ("broker", "0.1.0"), rustc: "rustc 1.95.0", libraries: "rustix 1.1.6,slab 0.4.12" };
        let expected = r#"{"event":"start","target":"broker 0.1.0","runtime":"none","language":"rustc 1.95.0","libraries":{"rustix":"1.1.6","slab":"0.4.12"},"port":9876,"worker_threads":1}"#;
        assert_eq!(start_line(&built, 9876), expected);
    }
}
