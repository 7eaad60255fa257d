//! Axes: how values are written, where they lie, and which of them are labelled.

use std::ops::Range;
use std::time::Duration;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use support::numbers::{BYTES, COUNTS, DURATIONS, Unit, scaled, unit_of, without_dust};

/// What is measured, and so how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Nanoseconds,
    Bytes,
    Count,
    Cores,
    Percent,
    /// Of the run.
    Seconds,
}

impl Quantity {
    /// Three digits and the unit.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Quantity::Nanoseconds => scaled(value.trunc(), &DURATIONS),
            Quantity::Seconds => run_time(value),
            Quantity::Bytes => scaled(value, &BYTES),
            Quantity::Count => scaled(value, &COUNTS),
            Quantity::Cores => format!("{value:.2} cores"),
            Quantity::Percent => format!("{value:.1} %"),
        }
    }

    /// The unit of a whole axis that goes up to `high`, and its suffix.
    fn unit(self, high: f64) -> Unit {
        match self {
            Quantity::Nanoseconds => unit_of(high, &DURATIONS),
            Quantity::Bytes => unit_of(high, &BYTES),
            Quantity::Count => unit_of(high, &COUNTS),
            Quantity::Percent => (1.0, " %"),
            Quantity::Seconds => (run_unit(high).0, ""),
            Quantity::Cores => (1.0, ""),
        }
    }
}

/// One axis, which plotters draws as a linear one: of a logarithmic axis a place is the exponent,
/// else it is the value in the axis's unit.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) title: String,
    pub(super) quantity: Quantity,
    /// Of places.
    pub(super) range: Range<f64>,
    unit: Unit,
    is_log: bool,
}

impl Axis {
    /// From zero to somewhat more than the largest of `values`.
    pub(super) fn linear(title: &str, quantity: Quantity, values: &[f64]) -> Self {
        let (low, high) = extent(values.iter().copied()).unwrap_or((0.0, 1.0));
        let (low, high) = (low.min(0.0), if high > 1e-9 { high } else { 1.0 });
        let unit = quantity.unit(high.max(-low));
        Axis {
            title: title.to_owned(),
            quantity,
            range: 1.05 * low / unit.0..1.05 * high / unit.0,
            unit,
            is_log: false,
        }
    }

    /// From the start of a run to its end.
    pub(super) fn of_run(seconds: f64) -> Self {
        let is_some = (1e-3..RUN_MAX_S).contains(&seconds);
        let high = if is_some { seconds } else { 1.0 };
        let (size, name) = run_unit(high);
        Axis {
            title: format!("{name} into the run"),
            quantity: Quantity::Seconds,
            range: 0.0..high / size,
            unit: (size, ""),
            is_log: false,
        }
    }

    /// Over the positive ones of `values`, in whole decades. What is a million times smaller than
    /// the largest lies on its lower end.
    pub(super) fn log(title: &str, quantity: Quantity, values: &[f64]) -> Self {
        let positive = values.iter().copied().filter(|&value| value > 0.0);
        let (low, high) = extent(positive).unwrap_or((1.0, 10.0));
        let low = low.max(high / 1e6).log10().floor();
        Axis {
            title: title.to_owned(),
            quantity,
            range: low..high.log10().ceil().max(low + 1.0),
            unit: (1.0, ""),
            is_log: true,
        }
    }

    /// Where `value` lies, within the range. `None`: nowhere, as zero on a logarithmic axis.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = if self.is_log {
            value.log10()
        } else {
            value / self.unit.0
        };
        let is_somewhere = place.is_finite();
        is_somewhere.then(|| place.clamp(self.range.start, self.range.end))
    }

    /// The places with a label: on a logarithmic axis whole decades.
    fn ticks(&self) -> Vec<f64> {
        let mut ticks = RangedCoordf64::from(self.range.clone()).key_points(TICKS_MAX);
        ticks.retain(|tick| !self.is_log || tick.fract() == 0.0);
        ticks
    }

    /// What is written at a tick.
    fn label(&self, place: f64) -> String {
        let (value, (size, suffix)) = if self.is_log {
            let value = 10_f64.powf(place);
            (value, self.quantity.unit(value))
        } else {
            (place * self.unit.0, self.unit)
        };
        let suffix = if place == 0.0 && !self.is_log {
            ""
        } else {
            suffix
        };
        format!("{}{suffix}", without_dust(value / size))
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }

    fn map(&self, place: &f64, pixels: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range()).map(place, pixels)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            Vec::new()
        } else {
            self.ticks()
        }
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, place: &f64) -> String {
        self.label(*place)
    }
}

/// The least and the greatest of those that mean something.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|value| value.abs() < MEANINGLESS)
        .fold(None, |extent, value| {
            let (low, high) = extent.unwrap_or((value, value));
            Some((f64::min(low, value), f64::max(high, value)))
        })
}

/// Time within a run: `2m 5s`, and short ones to the tenth of a second.
pub(super) fn run_time(seconds: f64) -> String {
    let steps_per_s = if seconds < 10.0 { 10.0 } else { 1.0 };
    let steps = (seconds * steps_per_s).round().max(0.0);
    let time = Duration::from_secs_f64((steps / steps_per_s).min(RUN_MAX_S));
    humantime::format_duration(time).to_string()
}

fn run_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        ..=120.0 => (1.0, "seconds"),
        ..=7_200.0 => (60.0, "minutes"),
        ..=172_800.0 => (3_600.0, "hours"),
        _ => (86_400.0, "days"),
    }
}

/// As many labels as a panel has place for.
const TICKS_MAX: usize = 7;

/// Longer than any run; also a bound for what comes from files.
const RUN_MAX_S: f64 = 1e9;

/// Larger than anything that is counted in 64 bits.
const MEANINGLESS: f64 = 1e20;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks()
            .into_iter()
            .map(|tick| axis.label(tick))
            .collect()
    }

    #[test]
    fn linear_axes_have_round_labels() {
        let mib = f64::from(1 << 20);
        let axis = Axis::linear("memory", Quantity::Bytes, &[3.0 * mib, 73.0 * mib]);
        let labels_of_bytes = labels(&axis);
        assert_eq!(labels_of_bytes[0], "0");
        assert!(
            labels_of_bytes.iter().any(|label| label == "60 MiB"),
            "{labels_of_bytes:?}"
        );
        assert_eq!(axis.place(40.0 * mib), Some(40.0));
        assert_eq!(axis.place(f64::NAN), None);
        let axis = Axis::linear("timers", Quantity::Count, &[1_250_000.0]);
        assert!(labels(&axis).iter().any(|label| label == "1M"), "{axis:?}");
        let axis = Axis::linear("timers", Quantity::Count, &[-30.0, 60.0]);
        assert!(labels(&axis).iter().any(|label| label == "-20"), "{axis:?}");
    }

    #[test]
    fn axes_of_nothing_are_axes() {
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY, f64::MAX]] {
            let axis = Axis::linear("nothing", Quantity::Count, values);
            assert_eq!(axis.place(0.0), Some(0.0));
            assert!(axis.ticks().len() > 1, "{axis:?}");
            let axis = Axis::log("nothing", Quantity::Nanoseconds, values);
            assert_eq!(axis.place(0.0), None);
            assert!(axis.ticks().len() > 1, "{axis:?}");
        }
        for seconds in [0.0, f64::NAN, 1e300] {
            assert!(Axis::of_run(seconds).ticks().len() > 1);
        }
    }

    #[test]
    fn the_largest_and_the_smallest_have_a_place() {
        for value in [u64::MAX as f64, 1.0, 1e-9] {
            let axis = Axis::log("late", Quantity::Nanoseconds, &[value]);
            assert!(axis.place(value).is_some(), "{axis:?}");
            let axis = Axis::linear("late", Quantity::Count, &[value]);
            assert!(axis.place(value).is_some(), "{axis:?}");
        }
    }

    #[test]
    fn log_axes_have_whole_decades_and_as_many_labels_as_fit() {
        let short = Axis::log("late", Quantity::Nanoseconds, &[0.0, 1_500.0, 9_000.0]);
        assert_eq!(labels(&short), ["1 µs", "10 µs"]);
        let long = Axis::log("late", Quantity::Nanoseconds, &[9_000.0, 4e8]);
        assert_eq!(long.place(500.0), long.place(1e3));
        let labels = labels(&long);
        assert!(
            labels.len() <= TICKS_MAX && labels.iter().any(|label| label == "1 ms"),
            "{labels:?}"
        );
    }

    #[test]
    fn the_time_of_a_run_comes_in_its_own_unit() {
        for (seconds, title) in [
            (0.5, "seconds into the run"),
            (60.0, "seconds into the run"),
            (300.0, "minutes into the run"),
            (14_400.0, "hours into the run"),
            (864_000.0, "days into the run"),
        ] {
            let axis = Axis::of_run(seconds);
            assert_eq!(axis.title, title);
            assert!(labels(&axis).len() > 2, "{seconds}");
        }
    }

    #[test]
    fn values_with_three_digits() {
        assert_eq!(Quantity::Count.text(0.0), "0");
        assert_eq!(Quantity::Count.text(999.0), "999");
        assert_eq!(Quantity::Count.text(12.34), "12.3");
        assert_eq!(Quantity::Count.text(123_456.0), "123k");
        assert_eq!(Quantity::Bytes.text(1_572_864.0), "1.50 MiB");
        assert_eq!(Quantity::Nanoseconds.text(12_300.0), "12.3 µs");
        assert_eq!(Quantity::Seconds.text(125.04), "2m 5s");
        assert_eq!(Quantity::Seconds.text(0.51), "500ms");
    }
}
