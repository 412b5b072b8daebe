//! Plain bisection with two confirmations, for comparison.

/// The result of a bisection.
pub(crate) struct Bisected {
    /// The geometric mean of the highest pass and the lowest fail.
    pub(crate) edge: f64,
    /// Number of full trials it took.
    pub(crate) trials: u32,
}

/// Doubles from `start` until a load fails (or halves until one passes), then halves the gap until it is `width` wide
/// or contains no load. Each load gets full trials until two of them agree. `passes` receives the load and the number
/// of the trial.
pub(crate) fn bisect(
    start: u32,
    max: u32,
    width: f64,
    mut passes: impl FnMut(u32, u32) -> bool,
) -> Bisected {
    let mut trials = 0;
    let mut two_agree = |load: u32| {
        let mut votes = [0, 0];
        loop {
            let passed = passes(load, trials);
            trials += 1;
            votes[usize::from(passed)] += 1;
            if votes[usize::from(passed)] == 2 {
                return passed;
            }
        }
    };
    let (mut low, mut high) = (start, start);
    if two_agree(start) {
        loop {
            high = (low * 2).min(max);
            if high == low || !two_agree(high) {
                break;
            }
            low = high;
        }
    } else {
        loop {
            low = high / 2;
            if low == 0 || two_agree(low) {
                break;
            }
            high = low;
        }
    }
    while high - low > 1 && f64::from(high) / f64::from(low.max(1)) - 1.0 > width {
        let middle = (f64::from(low.max(1)) * f64::from(high)).sqrt().round() as u32;
        let middle = middle.clamp(low + 1, high - 1);
        if two_agree(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Bisected {
        edge: (f64::from(low.max(1)) * f64::from(high)).sqrt(),
        trials,
    }
}
