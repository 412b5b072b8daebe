//! Tests isolation for real, with whatever this machine offers. If something is missing, the test prints it and tests
//! the fallback instead.

use std::path::Path;
use std::time::Instant;

use plimsoll_host::isolation::{
    Cgroup, CpuList, DEFAULT_PERIOD_US, GroupView, How, Layout, Placement, Wanted,
};
use plimsoll_host::process::{Child, Launch, last_lines};
use plimsoll_host::resources::{Sampler, Source};
use plimsoll_testing::{eventually, skipped};

fn placement(vcpu: f64) -> Placement {
    let allowed = CpuList::allowed_to_us().expect("allowed");
    let last = CpuList::new(vec![*allowed.as_slice().last().expect("one")]);
    Placement::choose(vcpu, &allowed, last, None).expect("possible")
}

fn group(vcpu: f64) -> Cgroup {
    Cgroup::create(
        &placement(vcpu),
        DEFAULT_PERIOD_US,
        &Layout::of_this_machine(),
    )
}

/// Why only part of a test could run here.
fn lacking(group: &Cgroup) -> String {
    let lacking = group.missing().iter().map(ToString::to_string);
    lacking.collect::<Vec<_>>().join("; ")
}

fn start(folder: &Path, script: &str, group: &Cgroup) -> Child {
    let command = ["sh", "-c", script].map(str::to_owned);
    let mut launch = Launch::new("the child", &command, folder, &folder.join("child.log"));
    launch.cpus = Some(group.placement().target_cpus.clone());
    launch.start(Some(group)).expect("starts")
}

fn lacks(group: &Cgroup, what: Wanted) -> bool {
    group.missing().iter().any(|missing| missing.what == what)
}

#[test]
fn a_child_is_in_its_group_on_its_cpus_from_its_first_instruction() {
    let folder = tempfile::tempdir().expect("temp");
    let group = group(1.0);
    assert_eq!(group.means().quota, How::NotNeeded);
    let script =
        "grep Cpus_allowed_list /proc/self/status; cat /proc/self/cgroup; echo end; exec sleep 600";
    let child = start(folder.path(), script, &group);
    eventually("it writes", || last_lines(child.log(), 1) == ["end"]);
    let lines = last_lines(child.log(), 100);
    let cpus = &group.placement().target_cpus;
    assert_eq!(lines[0], format!("Cpus_allowed_list:\t{cpus}"));
    if group.view().is_empty() {
        skipped!("only the affinity was tested: {}", lacking(&group));
        return;
    }
    assert!(group.view().processes().contains(&child.pid()));
    let places = lines
        .iter()
        .filter(|line| line.ends_with(group.name()))
        .count();
    assert!(places > 0, "{lines:?}");
    let counted = group.view().cpu().is_some();
    assert_ne!(
        counted,
        lacks(&group, Wanted::CpuUsage),
        "{:?}",
        group.means()
    );
}

#[test]
fn a_quota_throttles_and_the_group_counts_the_time() {
    let folder = tempfile::tempdir().expect("temp");
    let group = group(0.2);
    let child = start(folder.path(), "while :; do :; done", &group);
    let source = if group.view().is_empty() {
        Source::Tree(child.pid())
    } else {
        Source::Group(group.view().clone())
    };
    let mut sampler = Sampler::new(source, Instant::now());
    eventually("CPU time is counted", || {
        sampler
            .sample()
            .is_some_and(|sample| sample.cpu_us > 30_000)
    });
    if lacks(&group, Wanted::Quota) {
        assert_eq!(group.means().quota, How::Nothing);
        skipped!("no quota to test: {}", lacking(&group));
        return;
    }
    eventually("the quota stops it", || {
        let throttling = sampler.sample().and_then(|sample| sample.throttling);
        throttling.is_some_and(|seen| seen.throttled_periods >= 2 && seen.throttled_us > 0)
    });
    // At least two periods have passed, each with a fifth to run, however busy this machine is.
    let usage = group.view().cpu().expect("counted");
    assert!(
        usage.total_us > 0 && usage.user_us + usage.system_us > 0,
        "{usage:?}"
    );
    assert!(
        sampler.source_name().starts_with("cgroup"),
        "{}",
        sampler.source_name()
    );
}

#[test]
fn a_dropped_group_kills_what_is_left_and_is_gone() {
    let folder = tempfile::tempdir().expect("temp");
    let group = group(0.5);
    if group.view().is_empty() {
        skipped!("no control group: {}", lacking(&group));
        return;
    }
    // The daemon leaves the process group and loses its parent, so that only the control group still knows it.
    let script = "setsid sh -c 'echo $$; exec sleep 600' & exit 0";
    let mut child = start(folder.path(), script, &group);
    eventually("the daemon writes", || {
        last_lines(child.log(), 1).len() == 1
    });
    eventually("its parent ends", || {
        child.try_ended().expect("waited for").is_some()
    });
    let daemon: i32 = last_lines(child.log(), 1)[0].parse().expect("a pid");
    assert_eq!(group.view().processes(), [daemon].into());
    let view: GroupView = group.view().clone();
    let name = group.name().to_owned();
    drop(group);
    assert!(view.processes().is_empty());
    assert!(view.cpu().is_none(), "the group is gone");
    let layout = Layout::of_this_machine();
    for hierarchy in layout.v1.values().chain(&layout.v2) {
        let left = hierarchy.own_folder().join(&name);
        assert!(!left.exists(), "{}", left.display());
    }
}

#[test]
fn a_group_that_exists_can_be_read_by_name() {
    let folder = tempfile::tempdir().expect("temp");
    let group = group(0.5);
    let layout = Layout::of_this_machine();
    let Some((_, hierarchy)) = layout.v1.iter().next().filter(|_| !group.view().is_empty()) else {
        skipped!("there is no control group of version 1 to read");
        return;
    };
    let child = start(folder.path(), "exec sleep 600", &group);
    let by_folder = hierarchy.own_folder().join(group.name());
    let view = GroupView::open(&by_folder, &layout).expect("there");
    assert_eq!(view.processes(), [child.pid()].into());
}

/// On a hybrid machine, version 2 has no controllers. Its groups still count CPU time, kill, and go away as anywhere
/// else.
#[test]
fn version_2_alone_counts_and_kills() {
    let layout = Layout {
        v1: std::collections::BTreeMap::new(),
        ..Layout::of_this_machine()
    };
    let group = Cgroup::create(&placement(0.5), DEFAULT_PERIOD_US, &layout);
    if group.view().is_empty() {
        skipped!("no control group of version 2: {}", lacking(&group));
        return;
    }
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "while :; do :; done", &group);
    eventually("CPU time is counted", || {
        group.view().cpu().is_some_and(|cpu| cpu.total_us > 10_000)
    });
    assert_eq!(group.means().cpu_usage, How::CgroupV2);
    assert_eq!(group.view().cpu_version(), Some("cgroup v2"));
    assert_eq!(
        lacks(&group, Wanted::Quota),
        group.means().quota == How::Nothing
    );
    group.kill_all().expect("emptied");
    eventually("it is dead", || {
        child.try_ended().expect("waited for").is_some()
    });
    let view = group.view().clone();
    drop(group);
    assert!(view.cpu().is_none(), "the group is gone");
}
