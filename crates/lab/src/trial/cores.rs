//! The cores that a target may run on.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_host::isolation::CpuList;

use super::conditions::Conditions;
use super::subject::Subject;

/// The cores that the target may use now. For a target that we started, these are the ones it was given. For a target
/// that already runs, they are the ones that the kernel allows to any of its threads. `None` if nobody said which
/// processes these are.
pub(super) fn of_target(conditions: &Conditions, subject: &Subject) -> Option<CpuList> {
    match subject {
        Subject::Started(_) => Some(conditions.placement.target_cpus.clone()),
        Subject::Running { resources, .. } => allowed_to(&resources.as_ref()?.processes()),
    }
}

/// The cores that any thread of these processes may run on.
pub(crate) fn allowed_to(processes: &BTreeSet<i32>) -> Option<CpuList> {
    let mut cpus = Vec::new();
    for pid in processes {
        // A process or a thread that has ended in the meantime runs nowhere.
        let Ok(threads) = Path::new("/proc")
            .join(pid.to_string())
            .join("task")
            .read_dir()
        else {
            continue;
        };
        for thread in threads.flatten() {
            let status = std::fs::read_to_string(thread.path().join("status"));
            let allowed = status.ok().as_deref().and_then(allowed_in);
            cpus.extend(allowed.iter().flat_map(CpuList::as_slice));
        }
    }
    CpuList::new(cpus)
}

/// Reads the line `Cpus_allowed_list` of a thread's status.
fn allowed_in(status: &str) -> Option<CpuList> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_cores_are_those_that_we_may_use() {
        let ours = CpuList::allowed_to_us().expect("allowed");
        let pid = i32::try_from(std::process::id()).expect("pid");
        let seen = allowed_to(&[pid].into()).expect("we run");
        for cpu in ours.as_slice() {
            assert!(seen.contains(*cpu));
        }
    }

    #[test]
    fn one_thread_elsewhere_counts() {
        let ours = CpuList::allowed_to_us().expect("allowed");
        let last = CpuList::new(ours.as_slice().last().copied().into_iter().collect());
        let last = last.expect("one");
        let (bound, ready) = std::sync::mpsc::channel();
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn({
            let last = last.clone();
            move || {
                last.bind_this_thread().expect("bound");
                bound.send(()).expect("waits");
                let _ = wait.recv();
            }
        });
        ready.recv().expect("bound");
        let pid = i32::try_from(std::process::id()).expect("pid");
        assert!(allowed_to(&[pid].into()).expect("we run").overlaps(&last));
        drop(done);
        thread.join().expect("ended");
    }

    #[test]
    fn a_status_is_read() {
        let status = "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1,3\nMems_allowed:\t1\n";
        let cpus = allowed_in(status).expect("a list");
        assert_eq!(cpus.as_slice(), [0, 1, 3]);
        assert_eq!(allowed_in("Name:\tx\n"), None);
        assert_eq!(allowed_to(&[i32::MAX].into()), None);
    }
}
