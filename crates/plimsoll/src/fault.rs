//! Faults of Plimsoll itself: a panic in any thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_lab::error::FAULT;

use crate::output::note;

/// Runs the command. If anything panicked, the exit code is [`FAULT`], whatever the command returned. A panic in a
/// thread that is only joined, or not even that, must not leave a result that looks complete. The usual hook has
/// already reported where and why it panicked.
pub(crate) fn guarded(command: impl FnOnce() -> ExitCode) -> ExitCode {
    static PANICKED: AtomicBool = AtomicBool::new(false);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::Relaxed);
        usual(panic);
    }));
    code_of(
        catch_unwind(AssertUnwindSafe(command)),
        PANICKED.load(Ordering::Relaxed),
    )
}

fn code_of(ended: Result<ExitCode, Box<dyn Any + Send>>, panicked: bool) -> ExitCode {
    match ended {
        Ok(code) if !panicked => code,
        // The error that an engine thread's panic became has already been reported.
        Ok(code) if code == ExitCode::from(FAULT) => code,
        Ok(_) | Err(_) => {
            note!(
                "plimsoll: internal error (panic): this is a bug in Plimsoll; please report it with the command and the lines above"
            );
            ExitCode::from(FAULT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_anywhere_is_exit_code_70() {
        let fault = ExitCode::from(70);
        assert_eq!(guarded(|| ExitCode::from(3)), ExitCode::from(3));
        assert_eq!(guarded(|| panic!("of this test")), fault);
        let in_a_thread = || {
            let _panicked = std::thread::spawn(|| panic!("of this test")).join();
            ExitCode::SUCCESS
        };
        assert_eq!(guarded(in_a_thread), fault);
    }
}
