//! CPU lists, and which CPUs go to whom.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A set of CPU numbers, written as the kernel writes it: `0-1,3`. Sorted, without duplicates, never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(Vec<u32>);

impl CpuList {
    /// A list of these CPUs, in any order; `None` when there are none.
    #[must_use]
    pub fn new(mut cpus: Vec<u32>) -> Option<Self> {
        cpus.sort_unstable();
        cpus.dedup();
        (!cpus.is_empty()).then_some(Self(cpus))
    }

    /// The CPUs that the calling thread may run on.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn allowed_to_us() -> Result<Self> {
        let failed = |error: nix::Error| Error::Io {
            what: "asking which CPUs we may run on (sched_getaffinity)".into(),
            source: error.into(),
        };
        Self::allowed_to(0).map_err(failed)
    }

    /// The CPUs that this thread may run on; 0 is the calling one.
    pub(crate) fn allowed_to(thread: i32) -> nix::Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(thread))?;
        let cpus = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
        Self::new(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
            .ok_or(nix::Error::EINVAL)
    }

    /// The CPU numbers, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The number of CPUs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many vCPU these CPUs are, with all the time of each.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // A count of CPUs.
    pub fn vcpu(&self) -> f64 {
        self.count() as f64
    }

    /// Whether the list contains `cpu`.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Whether the two have a CPU in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0.iter().any(|cpu| other.contains(*cpu))
    }

    /// Binds the calling thread (not its process) to these CPUs.
    ///
    /// # Errors
    /// When none of them may be used.
    pub fn bind_this_thread(&self) -> Result<()> {
        self.bind_thread(0)
    }

    /// The same for any thread, by its ID; 0 is the calling thread.
    pub(super) fn bind_thread(&self, thread: i32) -> Result<()> {
        self.to_kernel()
            .and_then(|set| sched_setaffinity(Pid::from_raw(thread), &set))
            .map_err(|error| Error::Io {
                what: format!("binding a thread to CPUs {self}"),
                source: error.into(),
            })
    }

    /// Like [`CpuList::bind_this_thread`], but only for as long as the result lives: later decisions by
    /// [`CpuList::allowed_to_us`] must not see only these CPUs.
    ///
    /// # Errors
    /// When none of them may be used.
    pub fn bind_this_thread_for_now(&self) -> Result<Bound> {
        let before = Self::allowed_to_us()?;
        self.bind_this_thread()?;
        Ok(Bound {
            before,
            of_one_thread: PhantomData,
        })
    }

    /// The form that the kernel takes. Fails on a CPU number that the C library's set cannot hold.
    pub(crate) fn to_kernel(&self) -> nix::Result<CpuSet> {
        let mut set = CpuSet::new();
        for cpu in &self.0 {
            set.set(*cpu as usize)?;
        }
        Ok(set)
    }
}

/// The calling thread is bound to some CPUs. When this is dropped, the thread may run where it could before.
#[derive(Debug)]
#[must_use = "dropped at once, nothing is bound"]
pub struct Bound {
    before: CpuList,
    /// Keeps this on its own thread: dropped on another one, it would change that thread's affinity.
    of_one_thread: PhantomData<*const ()>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // The thread could run there a moment ago. If the set was narrowed from outside since then, it stays as it is.
        let _ = self.before.bind_this_thread();
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut separator = "";
        while let Some(first) = rest.first() {
            let run = rest
                .iter()
                .zip(*first..)
                .take_while(|(cpu, expected)| **cpu == *expected)
                .count();
            let last = rest[run - 1];
            if run == 1 {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
            rest = &rest[run..];
        }
        Ok(())
    }
}

/// A CPU number above this is a typo: the kernel itself knows at most 8192 CPUs.
const CPU_NUMBER_MAX: u32 = 8191;

impl FromStr for CpuList {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = || Error::Usage(format!("CPU list {text:?} is not of the form 0-1,3"));
        let number = |digits: &str| -> Option<u32> {
            // `parse` alone would accept a sign.
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain
                .then(|| digits.parse().ok())
                .flatten()
                .filter(|cpu| *cpu <= CPU_NUMBER_MAX)
        };
        let mut cpus = Vec::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = number(first).zip(number(last)).ok_or_else(refuse)?;
            if first > last {
                return Err(refuse());
            }
            cpus.extend(first..=last);
        }
        Self::new(cpus).ok_or_else(refuse)
    }
}

impl TryFrom<String> for CpuList {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

/// The number of whole CPUs that `vcpu` vCPU touch: 0.5 → 1, 1 → 1, 2.5 → 3.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates, and the value is a small positive number.
pub fn whole_cpus(vcpu: f64) -> u32 {
    (vcpu.ceil() as u32).max(1)
}

/// Who runs where, and how much the target gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The CPUs of the load engine, of what we start beside the target, and of our own bookkeeping.
    pub client_cpus: CpuList,
    /// The target's CPUs.
    pub target_cpus: CpuList,
    /// How much CPU time the target gets, in vCPU; at most the number of its CPUs.
    pub vcpu: f64,
}

impl Placement {
    /// Places the target on the last `ceil(vcpu)` of the `allowed` CPUs and the client on the rest, unless the user
    /// chooses. It takes the last CPUs, because interrupts and housekeeping gather on the first. If nothing is left for
    /// the client, the client shares CPUs with the target: see [`Placement::shared`].
    ///
    /// # Errors
    /// One line: an impossible vCPU count, CPUs that we may not use, too few CPUs.
    pub fn choose(
        vcpu: f64,
        allowed: &CpuList,
        target: Option<CpuList>,
        client: Option<CpuList>,
    ) -> Result<Self> {
        if !(vcpu.is_finite() && vcpu >= 0.01) {
            return Err(Error::Usage(format!("--vcpu {vcpu} must be at least 0.01")));
        }
        for (flag, list) in [("--target-cpus", &target), ("--client-cpus", &client)] {
            let outside = list
                .iter()
                .flat_map(CpuList::as_slice)
                .find(|cpu| !allowed.contains(**cpu));
            if let Some(cpu) = outside {
                return Err(Error::Usage(format!(
                    "{flag} names CPU {cpu}, but this process may use only {allowed}"
                )));
            }
        }
        let needed = whole_cpus(vcpu) as usize;
        let target_cpus = match target {
            Some(list) => list,
            None => Self::last_of(allowed, needed, client.as_ref()),
        };
        if target_cpus.count() < needed {
            return Err(Error::Usage(format!(
                "--vcpu {vcpu} needs {needed} CPUs for the target, but it can have only {target_cpus}"
            )));
        }
        let rest = allowed
            .as_slice()
            .iter()
            .copied()
            .filter(|cpu| !target_cpus.contains(*cpu));
        let client_cpus = client
            .or_else(|| CpuList::new(rest.collect()))
            .unwrap_or_else(|| allowed.clone());
        Ok(Self {
            client_cpus,
            target_cpus,
            vcpu,
        })
    }

    /// The last `needed` CPUs that the client was not given; if these are too few, the last of all.
    fn last_of(allowed: &CpuList, needed: usize, client: Option<&CpuList>) -> CpuList {
        let all = allowed.as_slice();
        let free = all
            .iter()
            .copied()
            .filter(|cpu| client.is_none_or(|list| !list.contains(*cpu)));
        let free: Vec<u32> = free.collect();
        let from = if free.len() >= needed {
            free.as_slice()
        } else {
            all
        };
        let chosen = from[from.len().saturating_sub(needed)..].to_vec();
        CpuList::new(chosen).unwrap_or_else(|| allowed.clone())
    }

    /// Whether the client and the target run on a common CPU. Each then takes time from the other, so no figure of this
    /// run can be believed without a caveat.
    #[must_use]
    pub fn shared(&self) -> bool {
        self.client_cpus.overlaps(&self.target_cpus)
    }

    /// Whether the target must be held below the CPUs it runs on, so that it needs a quota.
    #[must_use]
    pub fn needs_quota(&self) -> bool {
        self.vcpu < self.target_cpus.vcpu()
    }

    /// The pairs (target CPU, client CPU) that are hardware threads of one core, by `siblings_of` (the kernel's
    /// `thread_siblings_list`). The capacity of such a target depends on the client's load.
    #[must_use]
    pub fn shared_cores(&self, siblings_of: impl Fn(u32) -> Option<CpuList>) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for target in self.target_cpus.as_slice() {
            let Some(siblings) = siblings_of(*target) else {
                continue;
            };
            let clients = siblings
                .0
                .into_iter()
                .filter(|cpu| cpu != target && self.client_cpus.contains(*cpu));
            pairs.extend(clients.map(|client| (*target, client)));
        }
        pairs
    }

    /// The client's CPUs that may be kept awake without slowing the target: none if the target runs on one of them, and
    /// not those of [`Placement::shared_cores`]. `None` if there is none.
    #[must_use]
    pub fn apart_from_target(
        &self,
        siblings_of: impl Fn(u32) -> Option<CpuList>,
    ) -> Option<CpuList> {
        if self.shared() {
            return None;
        }
        let mut apart = self.client_cpus.0.clone();
        for (_, client) in self.shared_cores(siblings_of) {
            apart.retain(|cpu| *cpu != client);
        }
        CpuList::new(apart)
    }
}

/// The hardware threads of `cpu`'s core, as the kernel reports them; `None` if it does not.
#[must_use]
pub fn siblings_of(cpu: u32) -> Option<CpuList> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    std::fs::read_to_string(path).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> CpuList {
        text.parse().expect(text)
    }

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(list("0-1,3").as_slice(), [0, 1, 3]);
        assert_eq!(list("3,0-1,1\n").to_string(), "0-1,3");
        assert_eq!(list("7").count(), 1);
    }

    #[test]
    fn nonsense_is_refused_with_its_text() {
        for text in [
            "",
            "a",
            "1-",
            "-1",
            "3-1",
            "1,,2",
            "1-2-3",
            "+1",
            "0-9999999",
        ] {
            let error = text.parse::<CpuList>().expect_err(text).to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn writing_and_reading_agree(cpus in proptest::collection::vec(0u32..300, 1..40)) {
            let list = CpuList::new(cpus).expect("not empty");
            prop_assert_eq!(list.to_string().parse::<CpuList>().expect("own text"), list);
        }
    }

    #[test]
    fn the_target_gets_the_last_cpus_and_the_client_the_rest() {
        let choose =
            |vcpu, allowed| Placement::choose(vcpu, &list(allowed), None, None).expect("possible");
        let two = choose(1.0, "0-1");
        assert_eq!(
            (two.client_cpus.to_string(), two.target_cpus.to_string()),
            ("0".into(), "1".into())
        );
        assert!(!two.shared() && !two.needs_quota());
        let half = choose(0.5, "0-1");
        assert_eq!(half.target_cpus, list("1"));
        assert!(half.needs_quota());
        let eight = choose(2.5, "0-3,8-11");
        assert_eq!(
            (eight.client_cpus, eight.target_cpus),
            (list("0-3,8"), list("9-11"))
        );
    }

    #[test]
    fn when_nothing_is_left_the_client_shares() {
        let one = Placement::choose(1.0, &list("0"), None, None).expect("possible");
        assert!(one.shared());
        let all = Placement::choose(2.0, &list("0-1"), None, None).expect("possible");
        assert!(all.shared());
        assert_eq!(all.client_cpus, list("0-1"));
    }

    #[test]
    fn the_users_choice_is_kept_or_refused() {
        let allowed = list("0-3");
        let placement = Placement::choose(1.0, &allowed, None, Some(list("3"))).expect("possible");
        assert_eq!(placement.target_cpus, list("2"));
        let placement =
            Placement::choose(1.0, &allowed, Some(list("0-1")), None).expect("possible");
        assert_eq!(placement.client_cpus, list("2-3"));
        assert!(placement.needs_quota());
        let refused = [
            Placement::choose(1.0, &allowed, Some(list("4")), None),
            Placement::choose(2.0, &allowed, Some(list("1")), None),
            Placement::choose(5.0, &allowed, None, None),
            Placement::choose(0.0, &allowed, None, None),
            Placement::choose(f64::NAN, &allowed, None, None),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Usage(_))), "{refused:?}");
        }
    }

    #[test]
    fn hardware_threads_of_one_core_are_reported() {
        let placement = Placement::choose(1.0, &list("0-3"), Some(list("3")), Some(list("0-1")))
            .expect("possible");
        let pairs = |cpu: u32| CpuList::new(vec![cpu, (cpu + 2) % 4]);
        assert_eq!(placement.shared_cores(pairs), [(3, 1)]);
        assert!(placement.shared_cores(|_| None).is_empty());
        assert_eq!(placement.apart_from_target(pairs), Some(list("0")));
        assert_eq!(placement.apart_from_target(|_| None), Some(list("0-1")));
    }

    #[test]
    fn a_client_that_shares_cpus_with_the_target_has_none_apart() {
        let only = list("0");
        let placement = Placement::choose(1.0, &only, Some(only.clone()), Some(only.clone()))
            .expect("possible");
        assert_eq!(placement.apart_from_target(|_| None), None);
    }

    #[test]
    fn a_binding_for_now_ends() {
        // A separate thread, so that the affinity of the other tests does not change.
        let thread = std::thread::spawn(|| {
            let before = CpuList::allowed_to_us().expect("allowed");
            let first = CpuList::new(vec![before.as_slice()[0]]).expect("one");
            let bound = first.bind_this_thread_for_now().expect("bound");
            assert_eq!(CpuList::allowed_to_us().expect("allowed"), first);
            drop(bound);
            assert_eq!(CpuList::allowed_to_us().expect("allowed"), before);
        });
        thread.join().expect("no panic");
    }

    #[test]
    fn a_thread_can_be_bound() {
        let cpu = CpuList::allowed_to_us().expect("allowed").as_slice()[0];
        let only = CpuList::new(vec![cpu]).expect("one");
        std::thread::spawn(move || {
            only.bind_this_thread().expect("bind");
            assert_eq!(CpuList::allowed_to_us().expect("allowed"), only);
        })
        .join()
        .expect("thread");
    }
}
