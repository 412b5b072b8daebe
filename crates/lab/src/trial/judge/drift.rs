//! How the target changed over the window, and the gates of a soak.

use plimsoll_core::caveat::Limits;
use plimsoll_core::drift::{Window, soak_gates};
use plimsoll_core::record::{Drift, GateResult};
use plimsoll_core::slo::Slo;

use crate::trial::Measured;
use crate::trial::conditions::Conditions;

/// Every slope that the window is long enough for.
pub(super) fn drift(measured: &Measured) -> Option<Drift> {
    Window::of(&measured.seconds).map(|window| window.drift())
}

/// The gates that a soak has in addition to those of its SLO; none if the profile is not a soak.
pub(super) fn gates(conditions: &Conditions, measured: &Measured, slo: &Slo) -> Vec<GateResult> {
    if !conditions.profile.soak {
        return Vec::new();
    }
    let window = Window::of(&measured.seconds);
    // What the companion may add to a latency unnoticed cannot be charged to the target.
    let resolution_ms = Limits::for_gate(slo.tightest_ms()).companion_p99_ms;
    soak_gates(window.as_ref(), resolution_ms).into()
}
