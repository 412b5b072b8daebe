//! Whose a control group, a network card or a folder is, by its name. What a killed run left behind is told from what
//! another Plimsoll uses.

use nix::unistd::Pid;

use crate::process::start_time_ticks;

const NAME_PREFIX: &str = "plimsoll-";

/// The process that made something, according to its name. A process ID alone may belong to another process by
/// now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Maker {
    /// The number of the process ID namespace.
    namespace: u64,
    pub(crate) pid: i32,
    /// When it started, in clock ticks since boot.
    started: u64,
}

impl Maker {
    /// This process.
    pub(crate) fn us() -> Self {
        let pid = Pid::this().as_raw();
        Self {
            namespace: pid_namespace(),
            pid,
            started: start_time_ticks(pid).unwrap_or(0),
        }
    }

    /// A maker that does not exist: process IDs stay below 2^22.
    #[cfg(test)]
    pub(crate) fn nobody() -> Self {
        Self {
            pid: 4_194_305,
            ..Self::us()
        }
    }

    /// The maker that a name states; `None` if the name is not one of ours.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(NAME_PREFIX)?.split('-');
        let maker = Self {
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next()?.parse::<u32>().ok()?;
        parts.next().is_none().then_some(maker)
    }

    /// Whether the maker is certainly dead. If that cannot be known (another container's processes, a start time that
    /// could not be read), it counts as alive.
    pub(crate) fn is_dead(self) -> bool {
        self.namespace == pid_namespace()
            && self.started > 0
            && self.pid > 0
            && start_time_ticks(self.pid) != Some(self.started)
    }

    /// The name of its thing with this number.
    pub(crate) fn name(self, number: u32) -> String {
        let Self {
            namespace,
            pid,
            started,
        } = self;
        format!("{NAME_PREFIX}{namespace}-{pid}-{started}-{number}")
    }
}

/// The number of our process ID namespace; 0 where the kernel has none.
fn pid_namespace() -> u64 {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let text = link.to_string_lossy().into_owned();
    let number = text
        .strip_prefix("pid:[")
        .and_then(|text| text.strip_suffix(']'));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn names_of_ours_tell_their_maker() {
        let maker = Maker {
            namespace: 4_026_531_836,
            pid: 17,
            started: 99,
        };
        assert_eq!(maker.name(3), "plimsoll-4026531836-17-99-3");
        assert_eq!(Maker::of(&maker.name(3)), Some(maker));
        for other in [
            "plimsoll-17-3",
            "plimsoll-self",
            "plimsoll-1-2-3-a",
            "plimsoll-1-2-3-4-5",
            "docker",
            "plimsoll-1-2-3-4.scope",
        ] {
            assert_eq!(Maker::of(other), None, "{other}");
        }
    }

    /// A maker that does not exist: process IDs stay below 2^22.
    pub(crate) fn nobody() -> Maker {
        Maker {
            pid: 4_194_305,
            ..Maker::us()
        }
    }

    /// A maker whose processes are not seen from here.
    pub(crate) fn elsewhere() -> Maker {
        Maker {
            namespace: 1,
            ..nobody()
        }
    }

    #[test]
    fn a_maker_is_dead_only_when_that_is_certain() {
        let us = Maker::us();
        assert!(us.started > 0 && us.namespace > 0);
        assert!(!us.is_dead());
        // At another time, our process ID belonged to another process.
        let earlier = Maker {
            started: us.started - 1,
            ..us
        };
        let nobody = nobody();
        assert!(earlier.is_dead() && nobody.is_dead());
        let unknown = Maker {
            started: 0,
            ..nobody
        };
        assert!(!elsewhere().is_dead() && !unknown.is_dead());
    }
}
