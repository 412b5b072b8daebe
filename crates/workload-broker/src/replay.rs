//! What a trial shows in which the broker crashed: test `replay`.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::profile::{NS_PER_MS, Window};
use plimsoll_workload::{Crash, CrashKind, Crashed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::marks::{Book, Crossed, Span};
use crate::reopen::Crossing;

/// If a message came in this last part of the grace, more may have been about to come.
const QUIET_SHARE: u64 = 5;

/// What the sessions of such a trial found out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replayed {
    pub(crate) crossed: Crossed,
    pub(crate) crossing: Crossing,
    /// Over the whole trial.
    duplicated: u64,
    reordered: u64,
}

impl Replayed {
    /// From the marks of all connections, and how each crossed the crash.
    pub(crate) fn of<'a>(book: &Book, crossings: impl Iterator<Item = &'a Crossing>) -> Self {
        let delivery = book.tally(Span::InAll).delivery.unwrap_or_default();
        Self {
            crossed: book.crossed(),
            crossing: Crossing::all(crossings),
            duplicated: delivery.duplicated,
            reordered: delivery.reordered,
        }
    }

    /// A doubt if messages that count as lost may only be late: the broker came back late, or still sent some. One that
    /// did not come back at all fails by that.
    pub(crate) fn doubt(&self, lost: u64, window: &Window, crashed: &Crashed) -> Option<Caveat> {
        let ready_ns = crashed.ready_ns.filter(|_| lost > 0)?;
        let quiet_ns = (window.grace_end_ns - window.end_ns) / QUIET_SHARE;
        let ms_before_end = |at_ns: u64| {
            let left_ns = window.grace_end_ns.saturating_sub(at_ns);
            (left_ns < quiet_ns).then_some(left_ns / NS_PER_MS)
        };
        let open_ns = self.crossing.open_ns.map(|open_ns| open_ns.max(ready_ns));
        let late = ms_before_end(open_ns.unwrap_or(window.grace_end_ns));
        let (id, when) = if let Some(ms) = late {
            let back = format!("the connections were back only {ms} ms before the trial ended");
            ("back-too-late", back)
        } else {
            let ms = ms_before_end(self.crossing.last_ns?)?;
            let came = format!("a message came {ms} ms before the trial ended");
            ("still-draining", came)
        };
        Some(Caveat {
            id: id.to_owned(),
            blocking: true,
            text: format!(
                "{when}, so some of the {lost} that count as lost may only be late; give the readers more time with --grace"
            ),
        })
    }
}

/// The crash of a trial, and what became of the messages. All counts are of the whole trial, warm-up and grace included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// What the broker lost.
    pub crash: CrashName,
    /// How long it stayed away before it was started again, in ms.
    pub pause_ms: u64,
    /// Messages that were confirmed before the crash.
    pub confirmed: u64,
    /// Of those, never delivered: neither before the crash nor after it.
    pub confirmed_lost: u64,
    /// Whether more could have been lost: a power cut by an image loses only what had not left the file system.
    pub is_lower_bound: bool,
    /// Messages that were written, and neither confirmed nor refused when the connections ended.
    pub open: u64,
    /// Of those, delivered all the same, before the crash or after it.
    pub recovered_without_confirm: u64,
    /// Arrivals of messages that had arrived before.
    pub duplicated: u64,
    /// First arrivals at a reader after a later message of the same writer.
    pub reordered: u64,
    /// How often a connection was lost.
    pub connections_lost: u64,
    /// From the crash until the broker was ready, in ms; `null` if it was not ready again.
    pub ready_ms: Option<f64>,
    /// From the crash until the first message came over a new connection, in ms; `null` if none came.
    pub first_message_ms: Option<f64>,
    /// Why the broker did not come back, with the end of its log; `null` if it did.
    pub not_back: Option<String>,
}

/// What a broker loses in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CrashName {
    /// Its processes: `kill -9`.
    Kill,
    /// And what its disk had not got yet.
    Power,
}

impl Replay {
    /// What such a trial reports.
    pub(crate) fn of(crash: &Crash, replayed: &Replayed, crashed: &Crashed) -> Self {
        let Replayed {
            crossed,
            crossing,
            duplicated,
            reordered,
        } = replayed;
        Self {
            crash: match crash.kind {
                CrashKind::Kill => CrashName::Kill,
                CrashKind::Power => CrashName::Power,
            },
            pause_ms: u64::try_from(crash.pause.as_millis()).unwrap_or(u64::MAX),
            confirmed: crossed.confirmed,
            confirmed_lost: crossed.lost,
            is_lower_bound: crash.kind == CrashKind::Power,
            open: crossed.open,
            recovered_without_confirm: crossed.recovered,
            duplicated: *duplicated,
            reordered: *reordered,
            connections_lost: crossing.lost,
            ready_ms: crashed.ready_ns.map(|at_ns| since_ms(crashed, at_ns)),
            first_message_ms: crossing.first_ns.map(|at_ns| since_ms(crashed, at_ns)),
            not_back: crashed.not_back.clone(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a trial")]
fn since_ms(crashed: &Crashed, at_ns: u64) -> f64 {
    at_ns.saturating_sub(crashed.at_ns) as f64 / NS_PER_MS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::{NS_PER_S, Profile};

    #[test]
    fn a_loss_is_in_doubt_while_messages_come_or_if_the_broker_came_late() {
        let profile = Profile {
            grace_s: 5.0,
            ..Profile::quick()
        };
        let window = profile.window();
        let end_ns = window.grace_end_ns;
        let doubt = |lost, ready_ns, open_ns, last_ns| {
            let replayed = Replayed {
                crossing: Crossing {
                    open_ns,
                    last_ns,
                    ..Crossing::default()
                },
                ..Replayed::default()
            };
            let crashed = Crashed {
                at_ns: 0,
                ready_ns,
                not_back: None,
            };
            let doubt = replayed.doubt(lost, &window, &crashed);
            doubt.map(|caveat| (caveat.id, caveat.text))
        };
        let early = Some(end_ns - 4 * NS_PER_S);
        let late = Some(end_ns - NS_PER_S / 2);
        let (id, text) = doubt(3, early, early, late).unwrap();
        assert_eq!(id, "still-draining");
        assert!(text.starts_with("a message came 500 ms before the trial ended"));
        assert!(text.ends_with("with --grace"));
        for (ready_ns, open_ns) in [
            (late, early),
            (early, late),
            (early, None),
            (Some(end_ns + NS_PER_S), None),
        ] {
            let (id, _) = doubt(3, ready_ns, open_ns, early).unwrap();
            assert_eq!(id, "back-too-late", "{ready_ns:?} {open_ns:?}");
        }
        assert_eq!(doubt(0, early, early, late), None, "nothing is lost");
        assert_eq!(doubt(3, early, early, early), None, "it was quiet");
        assert_eq!(doubt(3, early, early, None), None, "nothing came");
        assert_eq!(doubt(3, None, None, late), None, "it did not come back");
    }

    #[test]
    fn times_count_from_the_crash() {
        let crash = Crash {
            kind: CrashKind::Power,
            pause: std::time::Duration::from_millis(7),
            asked_by: "--test replay",
        };
        let replayed = Replayed {
            crossing: Crossing {
                first_ns: Some(5_250 * NS_PER_MS),
                ..Crossing::default()
            },
            ..Replayed::default()
        };
        let crashed = Crashed {
            at_ns: 5_000 * NS_PER_MS,
            ready_ns: Some(5_100 * NS_PER_MS),
            not_back: None,
        };
        let replay = Replay::of(&crash, &replayed, &crashed);
        assert_eq!((replay.crash, replay.pause_ms), (CrashName::Power, 7));
        assert!(replay.is_lower_bound);
        assert_eq!(
            (replay.ready_ms, replay.first_message_ms),
            (Some(100.0), Some(250.0))
        );
    }
}
