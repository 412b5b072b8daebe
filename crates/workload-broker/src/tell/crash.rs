//! What a trial of test `replay` says of its crash.

use plimsoll_document::words::{UNKNOWN, count, number, percent, plain};

use crate::record::BrokerRecord;
use crate::replay::{CrashName, Replay};

use super::facts::known;

/// The caption of [`facts`].
pub(super) const CAPTION: &str = "After the crash";

/// The note under it.
pub(super) const NOTE: &str = "All counts are of the whole trial. Confirmed and lost: confirmed before the crash, and delivered neither before nor after it. What a reader had got before the crash is not lost, whatever the broker forgot; --hold-readers lets readers begin only after it.";

/// The note for a power cut.
pub(super) const LOWER_BOUND: &str = "The loss is a lower bound: this power cut takes only what had not left the file system. A real disk also loses what was in its cache.";

/// The crash and what it did.
pub(super) fn facts(replay: &Replay) -> Vec<(String, String)> {
    let row = |name: &str, value: String| (name.to_owned(), value);
    let ms = |value: Option<f64>| known(value, |ms| format!("{} ms", number(ms)));
    let mut rows = vec![
        row("crash", crash(replay)),
        row("confirmed before it", count(replay.confirmed)),
        row("of these, lost", lost(replay)),
        row("open then, not confirmed", count(replay.open)),
        row(
            "of these, recovered without a confirm",
            count(replay.recovered_without_confirm),
        ),
        row("duplicated", count(replay.duplicated)),
        row("reordered", count(replay.reordered)),
        row("connections lost", count(replay.connections_lost)),
        row(
            "from the crash until the broker was ready",
            ms(replay.ready_ms),
        ),
        row(
            "from the crash until the first message came",
            ms(replay.first_message_ms),
        ),
    ];
    rows.extend(
        replay
            .not_back
            .as_ref()
            .map(|why| row("did not come back", plain(why))),
    );
    rows
}

/// The same in a line.
pub(super) fn in_a_line(broker: &BrokerRecord) -> Option<String> {
    let replay = broker.replay.as_ref()?;
    let ready = replay.ready_ms.map_or_else(
        || "not ready again".to_owned(),
        |ms| format!("ready after {} ms", number(ms)),
    );
    Some(format!(
        "{}; {} confirmed before it, {} of them lost; {} open, {} of them recovered; {ready}",
        crash(replay),
        count(replay.confirmed),
        lost(replay),
        count(replay.open),
        count(replay.recovered_without_confirm),
    ))
}

fn crash(replay: &Replay) -> String {
    let kind = match replay.crash {
        CrashName::Kill => "kill -9",
        CrashName::Power => "power cut",
    };
    match replay.pause_ms {
        0 => kind.to_owned(),
        ms => format!("{kind}, away for {} ms", count(ms)),
    }
}

/// `7 (0.1 %)`; of a power cut `at least 7 (0.1 %)`.
#[expect(clippy::cast_precision_loss, reason = "messages of a trial")]
fn lost(replay: &Replay) -> String {
    let share = (replay.confirmed > 0)
        .then(|| replay.confirmed_lost as f64 / replay.confirmed as f64)
        .map_or_else(|| UNKNOWN.to_owned(), percent);
    let at_least = if replay.is_lower_bound {
        "at least "
    } else {
        ""
    };
    format!("{at_least}{} ({share})", count(replay.confirmed_lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay() -> Replay {
        Replay {
            crash: CrashName::Power,
            pause_ms: 500,
            confirmed: 10_000,
            confirmed_lost: 20,
            is_lower_bound: true,
            open: 12,
            recovered_without_confirm: 3,
            duplicated: 40,
            reordered: 2,
            connections_lost: 4,
            ready_ms: Some(812.5),
            first_message_ms: None,
            not_back: None,
        }
    }

    fn value(replay: &Replay, name: &str) -> Option<String> {
        let mut rows = facts(replay).into_iter();
        rows.find(|(row, _)| row == name).map(|(_, value)| value)
    }

    #[test]
    fn a_loss_in_a_power_cut_is_a_lower_bound() {
        let cut = replay();
        assert_eq!(value(&cut, "crash").unwrap(), "power cut, away for 500 ms");
        assert_eq!(
            value(&cut, "of these, lost").unwrap(),
            "at least 20 (0.2 %)"
        );
        let killed = Replay {
            crash: CrashName::Kill,
            is_lower_bound: false,
            confirmed: 0,
            confirmed_lost: 0,
            pause_ms: 0,
            ..replay()
        };
        assert_eq!(value(&killed, "crash").unwrap(), "kill -9");
        let lost = value(&killed, "of these, lost").unwrap();
        assert_eq!(lost, format!("0 ({UNKNOWN})"));
    }

    #[test]
    fn why_a_broker_stayed_away_is_told_as_text() {
        assert_eq!(value(&replay(), "did not come back"), None);
        let away = Replay {
            ready_ms: None,
            not_back: Some("nats ended\nline of the log".to_owned()),
            ..replay()
        };
        let told = value(&away, "did not come back").unwrap();
        assert!(told.contains("line of the log"), "{told}");
    }
}
