//! The limits that many sessions hit: open files and outgoing ports.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::facts::ephemeral_ports;
use crate::error::{Error, Result};

/// Open files that a process needs in addition to one per session: logs, listeners, connections to other servers,
/// the runtime's own.
const FD_MARGIN: u64 = 256;

/// Outgoing ports left for everything else on the machine, including a target's connections to other servers.
const PORT_MARGIN: u64 = 512;

/// The limits of this process. Everything that it starts inherits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open files: the limit in force.
    pub fd_soft: u64,
    /// Open files: how far a process may raise that limit.
    pub fd_hard: u64,
    /// The first and the last port for outgoing connections from one address to one address and port.
    pub ports: Option<(u16, u16)>,
}

impl Limits {
    /// Reads the limits. A limit that cannot be read counts as unlimited, so that it does not stop a trial that might
    /// well run.
    #[must_use]
    pub fn of_this_process() -> Self {
        let (fd_soft, fd_hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((u64::MAX, u64::MAX));
        Self {
            fd_soft,
            fd_hard,
            ports: ephemeral_ports(),
        }
    }

    /// The number of sessions for which one client process has open files.
    #[must_use]
    pub fn sessions_of_a_process(&self) -> u64 {
        self.fd_soft.saturating_sub(FD_MARGIN)
    }

    /// The most sessions that [`preflight`] accepts, if everything else in `need` stays the same.
    #[must_use]
    pub fn room(&self, need: Need) -> Room {
        let of_a_process = self.sessions_of_a_process();
        let files = Room {
            sessions: of_a_process.saturating_mul(need.client_processes.max(1)),
            ends_by: "open files",
        };
        let ports = self.ports.map(|ports| Room {
            sessions: all_ports(ports, need.client_addresses).saturating_sub(PORT_MARGIN),
            ends_by: "ports",
        });
        match ports {
            Some(ports) if ports.sessions < files.sessions => ports,
            _ => files,
        }
    }
}

/// How many sessions a machine has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The number of sessions.
    pub sessions: u64,
    /// What one more session would lack.
    pub ends_by: &'static str,
}

/// The number of ports for outgoing connections from this many addresses. Each address has its own ports.
fn all_ports((low, high): (u16, u16), client_addresses: u64) -> u64 {
    (u64::from(high) - u64::from(low) + 1).saturating_mul(client_addresses.max(1))
}

/// Raises our limit of open files as far as allowed, and returns the limit then in force. Call this first of all,
/// because children inherit the limit.
pub fn raise_fd_limit() -> u64 {
    let Limits {
        fd_soft, fd_hard, ..
    } = Limits::of_this_process();
    // If this is refused, the old limit stays. The check before a trial says whether it is enough.
    if fd_soft < fd_hard && setrlimit(Resource::RLIMIT_NOFILE, fd_hard, fd_hard).is_ok() {
        return fd_hard;
    }
    fd_soft
}

/// What a trial needs from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The number of sessions. Each is one open file in the client and one in the target.
    pub sessions: u64,
    /// The number of client processes that may share the sessions. Each has its own open files. If there are several,
    /// the target's open files are not checked: they are part of what is measured.
    pub client_processes: u64,
    /// The number of source addresses that the client connects from. Each has its own ports.
    pub client_addresses: u64,
    /// The number of connections that the target may open to other servers.
    pub further_connections: u64,
}

impl Need {
    /// The need of this many sessions from one address.
    #[must_use]
    pub fn sessions(sessions: u64) -> Self {
        Self {
            sessions,
            client_processes: 1,
            client_addresses: 1,
            further_connections: 0,
        }
    }
}

/// Checks before a trial that it can have its open files and ports. If a trial ran out of them in the middle, that
/// would look like the target's limit.
///
/// # Errors
/// One line with the remedy.
pub fn preflight(need: Need, limits: Limits) -> Result<()> {
    let sessions = need.sessions;
    let processes = need.client_processes.max(1);
    let fds = sessions.div_ceil(processes) + need.further_connections + FD_MARGIN;
    if fds > limits.fd_soft {
        let limit = limits.fd_soft;
        let remedy = if fds <= limits.fd_hard {
            format!("ulimit -n {fds}")
        } else {
            format!(
                "raise the hard limit, for example `nofile` in /etc/security/limits.conf, to {fds}"
            )
        };
        let place = match processes {
            1 => "in the client and in the target".to_owned(),
            several => format!("in each of {several} client processes"),
        };
        return Err(Error::Usage(format!(
            "{sessions} sessions need {fds} open files {place}, but the limit is {limit}: {remedy}"
        )));
    }
    let Some((low, high)) = limits.ports else {
        return Ok(());
    };
    let ports = all_ports((low, high), need.client_addresses);
    let needed = sessions + PORT_MARGIN;
    if needed > ports {
        return Err(Error::Usage(format!(
            "{sessions} sessions need {needed} outgoing ports, but {low}-{high} has only {ports}: sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\""
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        fd_soft: 20_000,
        fd_hard: 30_000,
        ports: Some((32_768, 60_999)),
    };

    fn refusal(need: Need) -> String {
        preflight(need, LIMITS).expect_err("too much").to_string()
    }

    #[test]
    fn what_fits_passes() {
        assert!(preflight(Need::sessions(19_744), LIMITS).is_ok());
        let unknown = Limits {
            ports: None,
            ..LIMITS
        };
        assert!(preflight(Need::sessions(1000), unknown).is_ok());
    }

    #[test]
    fn too_few_open_files_is_one_line_with_the_remedy() {
        let text = refusal(Need::sessions(19_745));
        assert!(
            text.contains("need 20001 open files") && text.ends_with(": ulimit -n 20001"),
            "{text}"
        );
        assert!(refusal(Need::sessions(50_000)).contains("raise the hard limit"));
        let of_several = Need {
            client_processes: 3,
            ..Need::sessions(3 * 19_744)
        };
        let many_ports = Limits {
            ports: None,
            ..LIMITS
        };
        assert!(preflight(of_several, many_ports).is_ok());
        let text = refusal(Need {
            sessions: 3 * 19_744 + 1,
            ..of_several
        });
        assert!(
            text.contains("need 20001 open files in each of 3 client processes"),
            "{text}"
        );
        let need = Need {
            further_connections: 1000,
            ..Need::sessions(19_000)
        };
        assert!(refusal(need).contains("open files"));
    }

    #[test]
    fn too_few_ports_is_one_line_with_the_remedy() {
        let limits = Limits {
            fd_soft: u64::MAX,
            fd_hard: u64::MAX,
            ..LIMITS
        };
        assert!(preflight(Need::sessions(27_720), limits).is_ok());
        let text = preflight(Need::sessions(27_721), limits)
            .expect_err("too many")
            .to_string();
        assert!(
            text.contains("32768-60999 has only 28232") && text.contains("sysctl"),
            "{text}"
        );
        let two = Need {
            client_addresses: 2,
            ..Need::sessions(27_721)
        };
        assert!(preflight(two, limits).is_ok());
    }

    #[test]
    fn the_room_is_what_preflight_lets_pass() {
        for (addresses, processes) in [(1, 1), (2, 1), (2, 2), (3, 3)] {
            for limits in [
                LIMITS,
                Limits {
                    fd_soft: 1 << 20,
                    ..LIMITS
                },
            ] {
                let need = |sessions| Need {
                    client_addresses: addresses,
                    client_processes: processes,
                    ..Need::sessions(sessions)
                };
                let room = limits.room(need(0));
                assert!(preflight(need(room.sessions), limits).is_ok());
                assert!(preflight(need(room.sessions + 1), limits).is_err());
                let files = limits.fd_soft == LIMITS.fd_soft;
                assert_eq!(room.ends_by == "open files", files);
            }
        }
    }

    #[test]
    fn the_limit_is_raised_as_far_as_allowed() {
        let hard = Limits::of_this_process().fd_hard;
        assert_eq!(raise_fd_limit(), hard);
        assert_eq!(Limits::of_this_process().fd_soft, hard);
    }
}
