//! How many client processes a load takes, and what each does. Pure.

use plimsoll_engine::{Options, Part};

/// The most client processes that are used. Their pipes are open files of the command itself. With the usual limits,
/// this many processes hold more connections than one machine is asked for.
pub const PROCESSES_MAX: u32 = 64;

/// The fewest processes such that each has enough files for its part of the sessions, and every core has the same
/// number of engine threads: either each process has several cores to itself, or each core has several processes.
pub(crate) fn processes_for(sessions: u64, each_max: u64, cores: usize) -> u32 {
    let needed = sessions.div_ceil(each_max.max(1)).max(1);
    let needed = u32::try_from(needed).unwrap_or(u32::MAX);
    let cores = u32::try_from(cores).unwrap_or(1).max(1);
    let fits =
        |processes: &u32| cores.is_multiple_of(*processes) || processes.is_multiple_of(cores);
    // A multiple of the number of cores is never far away.
    (needed..).find(fits).unwrap_or(needed)
}

/// The options of each process. Sessions stay where one process would have them: on the same core and in as many
/// threads, unless there are more processes than cores.
pub(crate) fn shares(whole: &Options, processes: u32) -> Vec<Options> {
    let share = |index: u32| Options {
        part: Part {
            index,
            of: processes,
        },
        cpus: cpus_of(index as usize, processes as usize, &whole.cpus),
        ..whole.clone()
    };
    (0..processes).map(share).collect()
}

fn cpus_of(index: usize, processes: usize, cpus: &[usize]) -> Vec<usize> {
    if processes >= cpus.len() {
        // Without cores, there are none to choose from.
        cpus.iter().cycle().skip(index).take(1).copied().collect()
    } else {
        cpus.iter()
            .skip(index)
            .step_by(processes)
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn options(sessions: u32, cores: usize) -> Options {
        let address = "127.0.0.1:1".parse().expect("an address");
        Options {
            cpus: (10..10 + cores).collect(),
            ..Options::new(address, sessions, Profile::quick())
        }
    }

    /// The core of each session, by how the engine distributes sessions among its threads.
    fn cores_of(options: &Options) -> BTreeMap<u32, Option<usize>> {
        let threads = options.cpus.len().max(1);
        let ids = options.part.ids(options.sessions).enumerate();
        ids.map(|(place, id)| (id, options.cpus.get(place % threads).copied()))
            .collect()
    }

    #[test]
    fn as_few_as_there_are_files_for() {
        assert_eq!(processes_for(0, 100, 1), 1);
        assert_eq!(processes_for(100, 100, 1), 1);
        assert_eq!(processes_for(101, 100, 1), 2);
        assert_eq!(processes_for(600, 44, 1), 14);
        // Cores have equal numbers of threads: of two processes on three cores, one would have one core and the other
        // two.
        assert_eq!(processes_for(101, 100, 3), 3);
        assert_eq!(processes_for(201, 100, 4), 4);
        assert_eq!(processes_for(301, 100, 3), 6);
        assert_eq!(processes_for(1, 0, 0), 1);
    }

    proptest! {
        /// Whatever the number of processes: each session is driven once, on the core that it has with one process, and
        /// no process has too many.
        #[test]
        fn sessions_stay_on_their_cores(sessions in 0_u32..2_000, each_max in 1_u64..500, cores in 0_usize..9) {
            let whole = options(sessions, cores);
            let processes = processes_for(sessions.into(), each_max, cores);
            let shares = shares(&whole, processes);
            prop_assert_eq!(shares.len(), processes as usize);
            let mut all = BTreeMap::new();
            for share in &shares {
                let of_this = cores_of(share);
                prop_assert!(of_this.len() as u64 <= each_max);
                for (id, core) in of_this {
                    prop_assert_eq!(all.insert(id, core), None);
                }
            }
            prop_assert_eq!(all, cores_of(&whole));
            let threads: usize = shares.iter().map(|share| share.cpus.len().max(1)).sum();
            prop_assert_eq!(threads, cores.max(processes as usize));
        }
    }
}
