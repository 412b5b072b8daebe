//! Enters what became of a caller's turns: into the ledger and the latencies. A slow caller's turns only become claims.

use plimsoll_core::recorder::{Ages, Recorder};

use crate::caller::Claim;
use crate::turns::{self, Ended, Wrong};

/// A turn is over.
pub(crate) fn enter(ended: Option<Ended>, is_slow: bool, recorder: &mut Recorder<Claim>) {
    let Some(ended) = ended else { return };
    if is_slow {
        recorder.claims.extend(ended.claim.map(Claim::SlowTurn));
        return;
    }
    let latency = ended.latency_ns.zip(ended.latency_from_write_ns);
    recorder.ledger.frames_answered_in_all += u64::from(latency.is_some());
    recorder.ledger.partials_in_all += u64::from(latency.is_some());
    let Some(claim) = ended.claim else { return };
    if let Some((from_schedule_ns, from_write_ns)) = latency {
        recorder.ledger.frames_answered += 1;
        recorder.ledger.partials += 1;
        let ages = Ages {
            from_schedule_ns,
            from_write_ns,
        };
        recorder.answered(Some(ages), Some(ages));
        recorder.resided(1, u128::from(ended.written_for_ns));
    } else {
        // It was waited for until now: a lower bound.
        let (due_ns, written_ns) = (ended.due_for_ns, ended.written_for_ns);
        recorder.interval.record_unanswered(due_ns, written_ns);
        if claim.error.is_some() {
            recorder.ledger.frames_errored += 1;
            recorder.ledger.errors += 1;
            recorder.resided(1, u128::from(written_ns));
        } else {
            recorder.ledger.frames_lost += 1;
        }
    }
    recorder.claims.push(Claim::Turn(claim));
}

/// A measured turn was due, and the trial ended before it was written.
pub(crate) fn never_written(claim: turns::Claim, is_slow: bool, recorder: &mut Recorder<Claim>) {
    if is_slow {
        return recorder.claims.push(Claim::SlowTurn(claim));
    }
    recorder.ledger.frames_lost += 1;
    recorder.interval.record_unanswered(claim.waited_ns, 0);
    recorder.claims.push(Claim::Turn(claim));
}

/// Whether something came that had not come before, even if a part before it is missing.
pub(crate) fn is_new<T>(result: &Result<T, Wrong>) -> bool {
    matches!(result, Ok(_) | Err(Wrong::Lost))
}

/// Something came that should not have come like that.
pub(crate) fn count(wrong: Wrong, what: &str, recorder: &mut Recorder<Claim>) {
    let ledger = &mut recorder.ledger;
    let reason = match wrong {
        Wrong::Crossed => {
            ledger.content_wrong += 1;
            "of another caller or turn"
        }
        Wrong::Lost => {
            ledger.content_wrong += 1;
            "with a part missing before it"
        }
        Wrong::Doubled => {
            ledger.frames_duplicated += 1;
            "that came before"
        }
        Wrong::OutOfOrder => {
            ledger.frames_out_of_order += 1;
            "after a later part"
        }
    };
    ledger.because(&format!("{what} {reason}"));
}
