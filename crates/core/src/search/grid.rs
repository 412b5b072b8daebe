//! Round loads: which numbers the search tries.

/// About twice `load`, to two significant digits, at most `max`; `None` if `load` is already there.
pub(super) fn grow(load: u32, max: u32) -> Option<u32> {
    times(load, 2.0, max)
}

/// About `factor` times `load`, to two significant digits, at most `max`; `None` if `load` is already there.
pub(super) fn times(load: u32, factor: f64, max: u32) -> Option<u32> {
    if load >= max {
        return None;
    }
    // Rounding down removes less than a tenth. From a factor of 1.2 on, only loads of one digit need the one more.
    let (_, most) = within(load, factor);
    Some(two_digits(most).max(load + 1).min(max))
}

/// The lowest and the highest load within this factor of `load`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive floats; one above u32 becomes its greatest value"
)]
pub(super) fn within(load: u32, factor: f64) -> (u32, u32) {
    // 1.4 times 45 is 63, but not in floats.
    const ROUNDING: f64 = 1e-6;
    let load = f64::from(load);
    let least = (load / factor - ROUNDING).ceil();
    let most = (load * factor + ROUNDING).floor();
    (least as u32, most as u32)
}

/// About half of `load`, to two significant digits, at least `min`; `None` if `load` is already there.
pub(super) fn shrink(load: u32, min: u32) -> Option<u32> {
    (load > min).then(|| two_digits(load / 2).max(min))
}

/// About this share of `load`, to two significant digits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive float below a u32"
)]
pub(super) fn share(load: u32, share: f64) -> u32 {
    two_digits((f64::from(load) * share) as u32)
}

/// A round load strictly between `low` and `high`, about `fraction` of the way on a logarithmic scale; `None` if no
/// load lies between.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float between two u32, clamped between them"
)]
pub(super) fn split(low: u32, high: u32, fraction: f64) -> Option<u32> {
    if high.saturating_sub(low) < 2 {
        return None;
    }
    let ratio = f64::from(high) / f64::from(low.max(1));
    let target = f64::from(low.max(1)) * ratio.powf(fraction);
    // A step of at most a quarter of the gap moves the target by at most an eighth of it.
    let step = f64::from(round_step((high - low) / 4));
    let rounded = (target / step).round() * step;
    Some((rounded as u32).clamp(low + 1, high - 1))
}

/// Whether the gap is wider than requested and contains a load.
pub(super) fn too_wide(low: u32, high: u32, relative_width: f64) -> bool {
    // 1,050 over 1,000 is 5 %, but not in floats.
    const ROUNDING: f64 = 1e-9;
    high.saturating_sub(low) > 1 && width(low, high) > relative_width + ROUNDING
}

/// `high / low - 1`.
pub(super) fn width(low: u32, high: u32) -> f64 {
    f64::from(high) / f64::from(low) - 1.0
}

/// How often a gap of this width, as a share of its lower end, must be halved until it is as narrow as requested.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the logarithm of a positive number, clamped"
)]
pub(super) fn halvings(width: f64, relative_width: f64) -> u32 {
    let halvings = (width.ln_1p() / relative_width.ln_1p()).log2().ceil();
    halvings.clamp(0.0, 32.0) as u32
}

/// Round loads from about `low` to about `high`, ascending, at least `step` apart and not many more than `at_most`:
/// multiples of one round step, and at least one load.
pub(super) fn round_between(low: f64, high: f64, step: u32, at_most: u32) -> Vec<u32> {
    let wide_enough = step_above((high - low) / f64::from(at_most.max(1)));
    let step = step.max(wide_enough).max(1);
    let (first, last) = (round_down(low, step).max(1), round_up(high, step));
    let first = if first % step == 0 { first } else { step };
    std::iter::successors(Some(first), |load| load.checked_add(step))
        .take_while(|load| *load <= last.max(first))
        .collect()
}

/// The greatest round step (1, 2, 5, 10, 20, …) that is at most `limit`; at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that is clamped to u32"
)]
pub(super) fn step_of(limit: f64) -> u32 {
    round_step(limit.clamp(1.0, f64::from(u32::MAX / 10)) as u32)
}

/// The least round step that is at least `limit`.
fn step_above(limit: f64) -> u32 {
    let mut power: u32 = 1;
    loop {
        for digit in [1, 2, 5] {
            if f64::from(digit * power) >= limit || power >= u32::MAX / 100 {
                return digit * power;
            }
        }
        power *= 10;
    }
}

/// The greatest multiple of `step` that is at most `load`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that is clamped to u32"
)]
pub(super) fn round_down(load: f64, step: u32) -> u32 {
    let load = load.clamp(0.0, f64::from(u32::MAX)) as u32;
    load - load % step.max(1)
}

/// The least multiple of `step` that is at least `load`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that is clamped to u32"
)]
pub(super) fn round_up(load: f64, step: u32) -> u32 {
    let load = load.ceil().clamp(0.0, f64::from(u32::MAX)) as u32;
    load.next_multiple_of(step.max(1))
}

/// Rounds down to two significant digits.
fn two_digits(load: u32) -> u32 {
    let mut unit = 1;
    while load / unit >= 100 {
        unit *= 10;
    }
    load / unit * unit
}

/// The greatest of 1, 2, 5, 10, 20, 50, … that is at most `limit`; at least 1.
fn round_step(limit: u32) -> u32 {
    let mut power = 1;
    while limit / power >= 10 {
        power *= 10;
    }
    match limit / power {
        0 | 1 => power,
        2..5 => 2 * power,
        _ => 5 * power,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn probes_are_round() {
        assert_eq!(grow(100, 9_999), Some(200));
        assert_eq!(grow(560, 9_999), Some(1_100));
        assert_eq!(grow(1, 9_999), Some(2));
        assert_eq!(grow(700, 1_000), Some(1_000));
        assert_eq!(grow(1_000, 1_000), None);
        assert_eq!(shrink(500, 1), Some(250));
        assert_eq!(shrink(1_130, 1), Some(560));
        assert_eq!(shrink(3, 2), Some(2));
        assert_eq!(shrink(1, 1), None);
    }

    #[test]
    fn loads_within_a_factor_by_hand() {
        assert_eq!(within(100, 1.4), (72, 140));
        assert_eq!(within(140, 1.4), (100, 196));
        assert_eq!(within(45, 1.4), (33, 63));
        assert_eq!(within(1, 1.4), (1, 1));
        assert_eq!(times(140, 1.4, 9_999), Some(190));
        assert_eq!(times(1, 1.4, 9_999), Some(2));
        assert_eq!(times(u32::MAX - 1, 1.4, u32::MAX), Some(u32::MAX));
    }

    #[test]
    fn splits_are_round() {
        assert_eq!(split(400, 800, 0.5), Some(600));
        assert_eq!(split(400, 600, 0.5), Some(500));
        assert_eq!(split(400, 420, 0.5), Some(410));
        assert_eq!(split(7, 9, 0.5), Some(8));
        assert_eq!(split(7, 8, 0.5), None);
        assert_eq!(split(8, 7, 0.5), None);
    }

    #[test]
    fn halvings_by_hand() {
        // ln 2 / ln 1.05 = 14.2 widths: 4 halvings make 16.
        assert_eq!(halvings(1.0, 0.05), 4);
        assert_eq!(halvings(0.05, 0.05), 0);
        assert_eq!(halvings(0.0, 0.05), 0);
        assert_eq!(halvings(f64::INFINITY, 0.05), 32);
    }

    #[test]
    fn round_loads_between() {
        assert_eq!(
            round_between(703.0, 751.0, 10, 20),
            [700, 710, 720, 730, 740, 750, 760]
        );
        assert_eq!(
            round_between(100.0, 900.0, 10, 8),
            [100, 200, 300, 400, 500, 600, 700, 800, 900]
        );
        assert_eq!(round_between(3.2, 3.4, 1, 10), [3, 4]);
        assert_eq!(round_between(0.4, 0.6, 1, 10), [1]);
        assert_eq!(step_above(0.0), 1);
        assert_eq!(step_above(2.1), 5);
        assert_eq!(step_above(11.0), 20);
    }

    proptest! {
        #[test]
        fn loads_move_and_stay_in_range(load in 1_u32.., other in 1_u32.., fraction in 0.1_f64..0.9) {
            let (low, high) = (load.min(other), load.max(other));
            if let Some(next) = grow(low, high) {
                prop_assert!(low < next && next <= high);
            }
            if let Some(next) = shrink(high, low) {
                prop_assert!(low <= next && next < high);
            }
            match split(low, high, fraction) {
                Some(next) => prop_assert!(low < next && next < high),
                None => prop_assert!(high - low < 2),
            }
        }

        #[test]
        fn steps_are_round(limit in 1_u32..1_000_000) {
            let step = round_step(limit);
            prop_assert!(step <= limit && limit < step.saturating_mul(5) / 2 + 1, "{step} for {limit}");
        }
    }
}
