//! The descendants of a process, from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All living descendants of `root`, without `root` itself. A process whose parent died is no longer a descendant;
/// control groups are for those.
#[must_use]
pub fn descendants(root: i32) -> BTreeSet<i32> {
    by_children_files(root).unwrap_or_else(|| below(root, &parents()))
}

/// Reads `/proc/<pid>/task/<tid>/children`. The cost depends only on the size of the tree. `None` if this kernel does
/// not have that file.
fn by_children_files(root: i32) -> Option<BTreeSet<i32>> {
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        // A process that has ended meanwhile has no threads, and so no children.
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            match std::fs::read_to_string(thread.path().join("children")) {
                Ok(list) => {
                    let children = list
                        .split_whitespace()
                        .filter_map(|child| child.parse::<i32>().ok());
                    open.extend(children.filter(|child| found.insert(*child)));
                }
                // Either the thread ended, which is fine, or the kernel has no such file.
                Err(_) if !thread.path().exists() => {}
                Err(_) => return None,
            }
        }
    }
    Some(found)
}

fn below(root: i32, parent_of: &BTreeMap<i32, i32>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        let children = parent_of.iter().filter(|(_, parent)| **parent == pid);
        open.extend(
            children
                .map(|(child, _)| *child)
                .filter(|child| found.insert(*child)),
        );
    }
    found
}

/// The IDs of all processes that we can see.
pub(crate) fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of each process, by process id.
fn parents() -> BTreeMap<i32, i32> {
    processes()
        .filter_map(|pid| Some((pid, parent_in(&read_stat(pid)?)?)))
        .collect()
}

/// The parent of a process; `None` if the process has ended.
pub(super) fn parent(pid: i32) -> Option<i32> {
    parent_in(&read_stat(pid)?)
}

/// When the process started, in clock ticks since boot. Ids are reused, so only the id and this time together identify
/// a process for good. `None` if it has ended, even if nobody has waited for it yet.
#[must_use]
pub fn start_time_ticks(pid: i32) -> Option<u64> {
    start_time_in(&read_stat(pid)?)
}

fn start_time_in(stat: &str) -> Option<u64> {
    let mut fields = after_name(stat);
    // Fields 3 (state) and 22 (start time). Zombies and dead processes no longer run.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn read_stat(pid: i32) -> Option<String> {
    std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()
}

fn parent_in(stat: &str) -> Option<i32> {
    after_name(stat).nth(1)?.parse().ok()
}

/// The fields from the third on. The second is the program's name in parentheses, which may itself contain spaces and
/// parentheses.
fn after_name(stat: &str) -> std::str::SplitWhitespace<'_> {
    stat.rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        assert_eq!(parent_in("17 (a) b (c) S 3 17 17 0"), Some(3));
        assert_eq!(parent_in("17 (a"), None);
    }

    #[test]
    fn a_tree_is_walked_down() {
        let parent_of = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 9)].into();
        assert_eq!(below(2, &parent_of), [3, 4].into());
        assert_eq!(below(1, &parent_of), [2, 3, 4, 5].into());
    }

    #[test]
    fn both_ways_find_a_grandchild() {
        let script = "sh -c 'sleep 60 & echo ready; wait' & wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut ready)
            .expect("ready");
        let pid = i32::try_from(child.id()).expect("pid");
        let by_scan = below(pid, &parents());
        // The inner shell and its sleep. A shell may have replaced itself, so at least the sleep.
        assert!(!by_scan.is_empty());
        if let Some(by_files) = by_children_files(pid) {
            assert_eq!(by_files, by_scan);
        } else {
            plimsoll_testing::skipped!("this kernel has no /proc/PID/task/TID/children");
        }
        assert!(start_time_ticks(pid).expect("alive") > 0);
        let of = |state| format!("7 (a) b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 0");
        assert_eq!(start_time_in(&of('S')), Some(4711));
        assert_eq!(start_time_in(&of('Z')), None);
        for pid in by_scan {
            nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid),
                nix::sys::signal::Signal::SIGKILL,
            )
            .expect("kill");
        }
        child.wait().expect("reaped");
    }
}
