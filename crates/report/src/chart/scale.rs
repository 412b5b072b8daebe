//! Converts values to pixels, and places the ticks.

/// A linear or a logarithmic axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from_px: f64,
    to_px: f64,
    logarithmic: bool,
}

/// Above this ratio of the greatest to the least value, a linear axis squeezes small values flat.
const LINEAR_RATIO_MAX: f64 = 20.0;

/// Room beyond the least and the greatest value on a logarithmic axis, as a factor.
const LOG_ROOM: f64 = 1.2;

impl Scale {
    /// A linear axis that shows exactly `low..=high`.
    pub(super) fn linear(low: f64, high: f64, from_px: f64, to_px: f64) -> Self {
        debug_assert!(low < high, "an axis has a length");
        Self {
            low,
            high,
            from_px,
            to_px,
            logarithmic: false,
        }
    }

    /// A logarithmic axis that shows exactly `low..=high`. Both must be above zero.
    pub(super) fn logarithmic(low: f64, high: f64, from_px: f64, to_px: f64) -> Self {
        debug_assert!(0.0 < low && low < high, "an axis has a length");
        Self {
            logarithmic: true,
            ..Self::linear(low, high, from_px, to_px)
        }
    }

    /// A linear axis from zero, with a little room above the greatest of these values.
    pub(super) fn from_zero(
        values: impl IntoIterator<Item = f64>,
        from_px: f64,
        to_px: f64,
    ) -> Self {
        let values = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        Self::up_to(values.reduce(f64::max).unwrap_or(1.0), from_px, to_px)
    }

    /// A linear axis from zero to a round value above `greatest`.
    fn up_to(greatest: f64, from_px: f64, to_px: f64) -> Self {
        let step = nice_step(greatest * 1.05, 6);
        Self::linear(0.0, (greatest * 1.05 / step).ceil() * step, from_px, to_px)
    }

    /// An axis for latencies: linear from zero where that works, logarithmic where the values span too wide a range. It
    /// leaves a little room.
    pub(super) fn for_values(values: &[f64], from_px: f64, to_px: f64) -> Self {
        let positive = || values.iter().copied().filter(|v| v.is_finite() && *v > 0.0);
        let least = positive().reduce(f64::min).unwrap_or(1.0);
        let greatest = positive().reduce(f64::max).unwrap_or(1.0);
        if greatest / least > LINEAR_RATIO_MAX {
            Self::logarithmic(least / LOG_ROOM, greatest * LOG_ROOM, from_px, to_px)
        } else {
            Self::up_to(greatest, from_px, to_px)
        }
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// The position of a value. A value beyond an end is placed at that end.
    pub(super) fn px(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from_px + share * (self.to_px - self.from_px)
    }

    /// Round values within the axis, about `about` of them, lowest first.
    pub(super) fn ticks(&self, about: u32) -> Vec<f64> {
        if self.logarithmic {
            return self.logarithmic_ticks(about);
        }
        let step = nice_step(self.high - self.low, about);
        let mut ticks = Vec::new();
        let mut index = (self.low / step).ceil();
        // Multiply instead of keeping a running sum, so rounding errors do not add up.
        while index * step <= self.high * (1.0 + 1e-9) {
            ticks.push(index * step);
            index += 1.0;
        }
        ticks
    }

    /// 1, 2 and 5 times the powers of ten; only the powers when that is too many.
    fn logarithmic_ticks(&self, about: u32) -> Vec<f64> {
        let mut exponent = self.low.log10().floor();
        let mut ticks = Vec::new();
        while 10f64.powf(exponent) <= self.high * (1.0 + 1e-9) {
            let power = 10f64.powf(exponent);
            ticks.extend([power, 2.0 * power, 5.0 * power]);
            exponent += 1.0;
        }
        ticks.retain(|t| (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(t));
        let too_many = ticks.len() > 2 * about as usize;
        if too_many {
            ticks.retain(|tick| (tick.log10() - tick.log10().round()).abs() < 1e-9);
        }
        ticks
    }
}

/// 1, 2 or 5 times a power of ten, chosen so that the span has at most about `about` steps.
fn nice_step(span: f64, about: u32) -> f64 {
    let rough = span / f64::from(about.max(1));
    let power = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|nice| nice * power >= rough * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wide_span_is_logarithmic() {
        let narrow = Scale::for_values(&[110.0, 1650.0], 400.0, 100.0);
        assert!(!narrow.is_logarithmic());
        assert_eq!(narrow.ticks(6), [0.0, 500.0, 1000.0, 1500.0, 2000.0]);
        assert!((narrow.px(0.0) - 400.0).abs() < 1e-9);
        let wide = Scale::for_values(&[80.0, 5_000.0], 400.0, 100.0);
        assert!(wide.is_logarithmic());
        assert_eq!(wide.ticks(6), [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]);
    }

    #[test]
    fn nothing_to_show_is_still_an_axis() {
        for values in [&[][..], &[0.0], &[f64::NAN], &[7.0]] {
            let scale = Scale::for_values(values, 100.0, 0.0);
            assert!(
                scale.px(0.0).is_finite() && scale.ticks(6).len() >= 2,
                "{values:?}"
            );
        }
    }

    #[test]
    fn an_axis_from_zero_has_room_above_the_greatest_value() {
        let scale = Scale::from_zero([0.2, f64::NAN, 0.98], 100.0, 0.0);
        assert!(!scale.is_logarithmic());
        assert!((scale.px(0.0) - 100.0).abs() < 1e-9);
        assert!(scale.px(0.98) > 0.0);
        assert!(Scale::from_zero([], 100.0, 0.0).ticks(4).len() >= 2);
    }

    #[test]
    fn each_power_of_ten_takes_the_same_room_on_a_logarithmic_axis() {
        let scale = Scale::logarithmic(1.0, 10_000.0, 0.0, 400.0);
        for (value, px) in [(1.0, 0.0), (10.0, 100.0), (1_000.0, 300.0), (1e9, 400.0)] {
            assert!((scale.px(value) - px).abs() < 1e-9, "{value}");
        }
    }

    proptest! {
        #[test]
        fn values_are_within_the_axis_and_in_order(mut values in prop::collection::vec(0.01f64..1e7, 2..20)) {
            let scale = Scale::for_values(&values, 436.0, 128.0);
            values.sort_by(f64::total_cmp);
            let pixels: Vec<f64> = values.iter().map(|value| scale.px(*value)).collect();
            prop_assert!(pixels.iter().all(|px| (128.0..=436.0).contains(px)));
            prop_assert!(pixels.windows(2).all(|pair| pair[0] >= pair[1]));
        }

        #[test]
        fn ticks_are_few_and_within(low in 0.0f64..1e5, span in 1.0f64..1e6) {
            let scale = Scale::linear(low, low + span, 0.0, 500.0);
            let ticks = scale.ticks(7);
            prop_assert!((2..=9).contains(&ticks.len()), "{:?}", ticks);
            prop_assert!(ticks.iter().all(|tick| *tick >= low - 1e-6 && *tick <= (low + span) * (1.0 + 1e-6)));
        }
    }
}
