use crate::isolation::{How, Means, Missing, Wanted};
use crate::machine::MachineFacts;

use super::*;

/// A machine with nothing wrong.
fn good_machine() -> Observed {
    Observed {
        environment: MachineFacts {
            os: "Linux".into(),
            kernel: "6.1".into(),
            arch: "x86_64".into(),
            cpu_model: "a fast one".into(),
            cores: 8,
            cpus_allowed: "0-7".into(),
            smt: Some(false),
            virtual_machine: false,
            memory_bytes: 1 << 34,
            clock_source: Some("tsc".into()),
            cgroup: "v2".into(),
            governor: Some("performance".into()),
            fd_limit: 65_536,
            port_range: Some((32_768, 60_999)),
            somaxconn: Some(4096),
            huge_pages: None,
            steal_share: 0.0,
            load_average: Some(0.2),
        },
        limits: Limits {
            fd_soft: 65_536,
            fd_hard: 65_536,
            ports: Some((32_768, 60_999)),
        },
        cpus: 8,
        shared_core: None,
        stops: Some(Stops {
            seconds: 2.0,
            count: 0,
            longest_ms: 0.0,
        }),
        awake: Some(Ok(())),
        means: Means {
            quota: How::CgroupV2,
            cpus: How::CgroupV2,
            cpu_usage: How::CgroupV2,
            memory: How::CgroupV2,
        },
        missing: Vec::new(),
        network: Ok(()),
        syn_backlog: Some(4096),
        time_wait_reuse: Some(2),
        conntrack_max: None,
    }
}

#[test]
fn a_good_machine_has_nothing_to_mend() {
    let all = findings(&good_machine());
    assert!(
        all.iter()
            .all(|finding| finding.ok && finding.remedy.is_none()),
        "{all:?}"
    );
    assert!(all.len() >= 12);
}

#[test]
fn every_fault_is_found_with_a_remedy_and_nothing_else_is() {
    type Spoil = fn(&mut Observed);
    let faults: [(&str, Spoil); 15] = [
        ("cores", |seen| seen.cpus = 1),
        ("shared-core", |seen| seen.shared_core = Some((1, 0))),
        ("clock", |seen| {
            seen.environment.clock_source = Some("hpet".into())
        }),
        ("load", |seen| seen.environment.load_average = Some(3.0)),
        ("steal", |seen| seen.environment.steal_share = 0.05),
        ("stops", |seen| {
            seen.stops = Some(Stops {
                seconds: 2.0,
                count: 3,
                longest_ms: 8.2,
            });
        }),
        ("awake", |seen| seen.awake = Some(Err("why"))),
        ("governor", |seen| {
            seen.environment.governor = Some("powersave".into())
        }),
        ("cgroup", |seen| {
            seen.missing = vec![Missing {
                what: Wanted::Quota,
                why: "read-only".into(),
            }];
        }),
        ("open-files", |seen| seen.limits.fd_soft = 1024),
        ("ports", |seen| seen.limits.ports = Some((60_000, 60_999))),
        ("somaxconn", |seen| seen.environment.somaxconn = Some(128)),
        ("syn-backlog", |seen| seen.syn_backlog = Some(64)),
        ("conntrack", |seen| seen.conntrack_max = Some(8192)),
        ("time-wait", |seen| seen.time_wait_reuse = Some(0)),
    ];
    for (id, spoil) in faults {
        let mut seen = good_machine();
        spoil(&mut seen);
        let bad: Vec<Finding> = findings(&seen)
            .into_iter()
            .filter(|finding| !finding.ok)
            .collect();
        assert_eq!(bad.len(), 1, "{id}: {bad:?}");
        assert_eq!(bad[0].id, id);
        assert!(
            bad[0]
                .remedy
                .as_ref()
                .is_some_and(|remedy| !remedy.is_empty()),
            "{id}"
        );
        assert!(!bad[0].text.contains('\n'), "{id}");
    }
}

#[test]
fn this_machine_can_be_looked_at() {
    let seen = Observed::of_this_machine();
    assert!(seen.cpus > 0);
    assert!(!findings(&seen).is_empty());
}
