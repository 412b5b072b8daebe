//! A session machine that panics: the run ends with an error that says whose fault it is, and without any part of a
//! result.

use std::net::TcpListener;
use std::ops::ControlFlow::Continue;
use std::sync::atomic::AtomicBool;

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit};
use plimsoll_engine::{EngineError, Options, run};

struct Panics;

impl SessionMachines for Panics {
    type Session = Self;
    type Arrivals = NoArrivals;

    fn session(&self, _plan: &SessionPlan) -> Self {
        Self
    }
}

impl Session for Panics {
    type Claim = ();

    fn phase(&self) -> Phase {
        Phase::Opening
    }

    fn next_due_ns(&self) -> Option<u64> {
        None
    }

    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn transmit(&mut self, _now_ns: u64) -> Option<Transmit<'_>> {
        panic!("of this test");
    }

    fn sent(&mut self, _write_ns: u64, _recorder: &mut Recorder<()>) {}

    fn received(&mut self, _now_ns: u64, _bytes: &[u8], _recorder: &mut Recorder<()>) {}

    fn disconnected(&mut self, _now_ns: u64, _how: Disconnect, _recorder: &mut Recorder<()>) {}

    fn settled(&self) -> bool {
        true
    }

    fn finish(&mut self, _now_ns: u64, _recorder: &mut Recorder<()>) {}
}

#[test]
fn a_panic_in_an_engine_thread_is_told_as_one() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let mut profile = Profile::quick();
    (profile.ramp_s, profile.warm_up_s) = (0.1, 0.1);
    (profile.measured_s, profile.grace_s) = (0.2, 0.1);
    let ended = run(
        &Panics,
        &Options::new(address, 3, profile),
        &AtomicBool::new(false),
        |_| Continue(()),
    );
    assert!(matches!(ended, Err(EngineError::Panicked)), "{ended:?}");
}
