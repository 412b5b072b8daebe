//! The process that listens on a port.

use std::collections::BTreeSet;
use std::path::Path;

use super::tree::parent;
use crate::resources::{LISTEN, procfs};

/// The process that listens on this TCP port in our network namespace. If it shares the socket with its descendants, as a server
/// with workers does, it is the first of them.
///
/// # Errors
/// A clause: nobody listens there, we may not look at whose socket it is, or several processes that did not start each other
/// listen.
pub fn listener_on(port: u16) -> Result<i32, String> {
    let mut sockets = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // Without IPv6 there is no such file.
        let text = std::fs::read_to_string(table).unwrap_or_default();
        sockets.extend(text.lines().filter_map(|line| listening(line, port)));
    }
    if sockets.is_empty() {
        return Err(format!("nobody listens on port {port} here"));
    }
    let holders = holders(Path::new("/proc"), &sockets);
    let mut first = roots(&holders, parent);
    match (first.pop_first(), first.is_empty()) {
        (Some(pid), true) => Ok(pid),
        (None, _) => Err(format!(
            "this user may not see which process listens on port {port}"
        )),
        (Some(one), false) => {
            let others: Vec<String> = first.iter().map(i32::to_string).collect();
            Err(format!(
                "several processes listen on port {port}: {one}, {}",
                others.join(", ")
            ))
        }
    }
}

/// The inode of the socket on this line of `/proc/net/tcp`, if it listens on this port.
fn listening(line: &str, port: u16) -> Option<u64> {
    let socket = procfs::socket(line)?;
    let ours = socket.local.port() == port && socket.state == LISTEN;
    procfs::inode(line).filter(|_| ours)
}

/// The processes that have one of these sockets open, as far as we may look.
fn holders(proc: &Path, sockets: &BTreeSet<u64>) -> BTreeSet<i32> {
    let links: BTreeSet<String> = sockets
        .iter()
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let holds = |pid: &i32| {
        let files = std::fs::read_dir(proc.join(pid.to_string()).join("fd"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| {
            let link = std::fs::read_link(file.path());
            link.is_ok_and(|link| link.to_str().is_some_and(|link| links.contains(link)))
        })
    };
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(holds).collect()
}

/// Those of the processes whose parent is none of them.
fn roots(pids: &BTreeSet<i32>, parent: impl Fn(i32) -> Option<i32>) -> BTreeSet<i32> {
    let is_root = |pid: &i32| parent(*pid).is_none_or(|parent| !pids.contains(&parent));
    pids.iter().copied().filter(is_root).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_found_by_our_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("bound").port();
        let ours = i32::try_from(std::process::id()).expect("pid");
        assert_eq!(listener_on(port), Ok(ours));
        let (_socket, nobody) = plimsoll_testing::nobody_listens();
        let why = listener_on(nobody.port()).expect_err("bound only");
        assert!(why.contains("nobody listens"), "{why}");
    }

    #[test]
    fn the_first_of_a_family_is_the_server() {
        let parent = |pid| match pid {
            2 | 3 => Some(1),
            4 => Some(3),
            _ => Some(0),
        };
        assert_eq!(roots(&[1, 2, 3, 4].into(), parent), [1].into());
        assert_eq!(roots(&[2, 4].into(), parent), [2, 4].into());
    }

    #[test]
    fn only_a_listener_of_this_port_counts() {
        let line = |port: &str, state: &str| {
            format!(
                "   0: 00000000:{port} 00000000:0000 {state} 00000000:00000002 00:00000000 00000000     0        0 1610 1 000000007c5851ff 100 0 0 10 0"
            )
        };
        assert_eq!(listening(&line("07E8", "0A"), 2024), Some(1610));
        assert_eq!(listening(&line("07E8", "01"), 2024), None);
        assert_eq!(listening(&line("07E9", "0A"), 2024), None);
        assert_eq!(
            listening("  sl  local_address rem_address   st", 2024),
            None
        );
    }
}
