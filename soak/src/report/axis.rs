//! Axes: how values are written, where they lie, and which of them are labelled.

use std::time::Duration;

use support::numbers::{BYTES, COUNTS, DURATIONS, Unit, percentile, scaled, unit_of, without_dust};

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
    /// One in so many: 1,000 is written as the percentile 99.9 %.
    Rarity,
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
            Quantity::Rarity => format!("{} %", percentile(value)),
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
            Quantity::Cores | Quantity::Rarity => (1.0, ""),
        }
    }

    /// At a tick, where values are round.
    fn tick_text(self, value: f64) -> String {
        match self {
            // Bare numbers, as they grow long.
            Quantity::Rarity => percentile(value),
            _ => {
                let (size, suffix) = self.unit(value);
                format!("{}{suffix}", without_dust(value / size))
            }
        }
    }
}

/// One axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) title: String,
    pub(super) quantity: Quantity,
    pub(super) ticks: Vec<Tick>,
    is_log: bool,
    low: f64,
    high: f64,
}

/// A labelled place on an axis.
#[derive(Clone, Debug)]
pub(super) struct Tick {
    /// From 0 to 1.
    pub(super) place: f64,
    pub(super) label: String,
}

impl Axis {
    /// From zero to a round number above the largest of `values`.
    pub(super) fn linear(title: &str, quantity: Quantity, values: &[f64]) -> Self {
        let (low, high) = extent(values.iter().copied()).unwrap_or((0.0, 1.0));
        let (low, high) = (low.min(0.0), if high > 1e-9 { high } else { 1.0 });
        let unit = quantity.unit(high.max(-low));
        let step = round_step((high - low) / unit.0 / VERTICAL_STEPS) * unit.0;
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Axis::new(title, quantity, false, low, high).with_steps(step, unit)
    }

    /// From the start of a run to its end.
    pub(super) fn of_run(seconds: f64) -> Self {
        let is_some = (1e-3..RUN_MAX_S).contains(&seconds);
        let high = if is_some { seconds } else { 1.0 };
        let (size, name) = run_unit(high);
        let step = round_step(high / size / HORIZONTAL_STEPS) * size;
        let title = format!("{name} into the run");
        Axis::new(&title, Quantity::Seconds, false, 0.0, high).with_steps(step, (size, ""))
    }

    /// Over the positive ones of `values`, from one round number to another, with at most `ticks`
    /// labels. What is a million times smaller than the largest lies on its lower end.
    pub(super) fn log(title: &str, quantity: Quantity, values: &[f64], ticks: usize) -> Self {
        let positive = values.iter().copied().filter(|&value| value > 0.0);
        let (low, high) = extent(positive).unwrap_or((1.0, 10.0));
        let low = low.max(high / 1e6);
        let rounds: Vec<f64> = (-3..=18).flat_map(steps_of_decade).collect();
        let last = rounds.len() - 1;
        let below = rounds.partition_point(|&round| round <= low).clamp(1, last) - 1;
        let above = rounds.partition_point(|&round| round < high);
        let above = above.clamp(below + 1, last);
        let within = &rounds[below..=above];
        let mut axis = Axis::new(title, quantity, true, rounds[below], rounds[above]);
        let thinned = |every: i32| -> Vec<f64> {
            let decades = (-3..=18).filter(|decade| decade % every == 0);
            let decades = decades.map(|decade| 10_f64.powi(decade));
            decades.filter(|round| within.contains(round)).collect()
        };
        axis.label(
            std::iter::once(within.to_vec())
                .chain((1..=4).map(thinned))
                .find(|labelled| labelled.len() <= ticks)
                .unwrap_or_default(),
        );
        axis
    }

    /// From the median to one in `count`, each further nine as wide as the last.
    pub(super) fn percentiles(count: f64) -> Self {
        let high = if (10.0..MEANINGLESS).contains(&count) {
            count
        } else {
            10.0
        };
        let mut axis = Axis::new("percentile", Quantity::Rarity, true, 1.0, high);
        let nines = (0..).map(|nines| 10_f64.powi(nines));
        let labelled: Vec<f64> = nines.take_while(|&rarity| rarity <= high).collect();
        // Their labels grow with each nine, so that only so many fit side by side.
        let every = labelled.len().div_ceil(PERCENTILES_MAX);
        axis.label(labelled.into_iter().step_by(every).collect());
        axis
    }

    fn new(title: &str, quantity: Quantity, is_log: bool, low: f64, high: f64) -> Self {
        Axis {
            title: title.to_owned(),
            quantity,
            ticks: Vec::new(),
            is_log,
            low,
            high,
        }
    }

    /// Where `value` lies, from 0 to 1. `None`: nowhere, as zero on a logarithmic axis.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
    }

    fn with_steps(mut self, step: f64, (size, suffix): (f64, &str)) -> Self {
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step * (1.0 + f64::EPSILON)).floor() as i64;
        self.ticks = (first..=last)
            .filter_map(|index| {
                let value = index as f64 * step;
                let suffix = if index == 0 { "" } else { suffix };
                let label = format!("{}{suffix}", without_dust(value / size));
                self.place(value).map(|place| Tick { place, label })
            })
            .collect();
        self
    }

    fn label(&mut self, values: Vec<f64>) {
        let tick = |value| {
            let label = self.quantity.tick_text(value);
            self.place(value).map(|place| Tick { place, label })
        };
        self.ticks = values.into_iter().filter_map(tick).collect();
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

fn steps_of_decade(exponent: i32) -> [f64; 3] {
    let decade = 10_f64.powi(exponent);
    [decade, 2.0 * decade, 5.0 * decade]
}

/// The next of 1, 2, 5, 10, 20, ... at or above `step`.
fn round_step(step: f64) -> f64 {
    let exponent = step.log10().floor() as i32;
    let steps = steps_of_decade(exponent).into_iter();
    let mut steps = steps.chain([10_f64.powi(exponent + 1)]);
    steps.find(|&round| round >= step).unwrap_or(step)
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

/// About as many as are easily read off.
const VERTICAL_STEPS: f64 = 4.0;

/// As many labels as a phone has room for.
const HORIZONTAL_STEPS: f64 = 6.0;
const PERCENTILES_MAX: usize = 4;

/// Longer than any run; also a bound for what comes from files.
const RUN_MAX_S: f64 = 1e9;

/// Larger than anything that is counted in 64 bits.
const MEANINGLESS: f64 = 1e20;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn linear_axes_begin_at_zero_and_end_on_a_round_number() {
        let mib = f64::from(1 << 20);
        let axis = Axis::linear("memory", Quantity::Bytes, &[3.0 * mib, 73.0 * mib]);
        assert_eq!(labels(&axis), ["0", "20 MiB", "40 MiB", "60 MiB", "80 MiB"]);
        assert_eq!(axis.place(40.0 * mib), Some(0.5));
        assert_eq!(axis.place(f64::NAN), None);
        let axis = Axis::linear("timers", Quantity::Count, &[1_250_000.0]);
        assert_eq!(labels(&axis), ["0", "0.5M", "1M", "1.5M"]);
        let axis = Axis::linear("timers", Quantity::Count, &[-30.0, 60.0]);
        assert_eq!(labels(&axis), ["-50", "0", "50", "100"]);
    }

    #[test]
    fn axes_of_nothing_are_axes() {
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY, f64::MAX]] {
            let axis = Axis::linear("nothing", Quantity::Count, values);
            assert_eq!(axis.place(0.0), Some(0.0));
            assert!(axis.ticks.len() > 1, "{axis:?}");
            let axis = Axis::log("nothing", Quantity::Nanoseconds, values, 6);
            assert_eq!(axis.place(0.0), None);
            assert!(axis.ticks.len() > 1, "{axis:?}");
        }
        for seconds in [0.0, f64::NAN, 1e300] {
            assert!(Axis::of_run(seconds).ticks.len() > 1);
            assert!(Axis::percentiles(seconds).ticks.len() > 1);
        }
    }

    #[test]
    fn the_largest_and_the_smallest_have_a_place() {
        for value in [u64::MAX as f64, 1.0, 1e-9] {
            let axis = Axis::log("late", Quantity::Nanoseconds, &[value], 6);
            assert!(axis.place(value).is_some(), "{axis:?}");
            let axis = Axis::linear("late", Quantity::Count, &[value]);
            assert!(axis.place(value).is_some(), "{axis:?}");
        }
    }

    #[test]
    fn log_axes_have_as_many_labels_as_fit() {
        let short = Axis::log("late", Quantity::Nanoseconds, &[0.0, 1_500.0, 9_000.0], 6);
        assert_eq!(labels(&short), ["1 µs", "2 µs", "5 µs", "10 µs"]);
        let long = Axis::log("late", Quantity::Nanoseconds, &[900.0, 4e9], 6);
        assert_eq!(
            labels(&long),
            ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]
        );
        assert_eq!(long.place(500.0), Some(0.0));
        let longest = Axis::log("late", Quantity::Nanoseconds, &[1.0, 1e9], 6);
        assert_eq!(labels(&longest), ["10 µs", "1 ms", "100 ms"]);
        assert_eq!(longest.place(1e3), Some(0.0));
        let single = Axis::log("late", Quantity::Nanoseconds, &[1e6], 6);
        assert_eq!(labels(&single), ["1 ms", "2 ms"]);
    }

    #[test]
    fn the_time_of_a_run_comes_in_its_own_unit() {
        for (seconds, title, last) in [
            (0.5, "seconds into the run", "0.5"),
            (60.0, "seconds into the run", "60"),
            (300.0, "minutes into the run", "5"),
            (14_400.0, "hours into the run", "4"),
            (864_000.0, "days into the run", "10"),
        ] {
            let axis = Axis::of_run(seconds);
            assert_eq!(axis.title, title);
            assert_eq!(labels(&axis).last(), Some(&last), "{seconds}");
        }
    }

    #[test]
    fn percentiles_by_their_nines() {
        let axis = Axis::percentiles(250_000.0);
        assert_eq!(labels(&axis), ["0", "99", "99.99"]);
        let axis = Axis::percentiles(2_000.0);
        assert_eq!(labels(&axis), ["0", "90", "99", "99.9"]);
    }

    #[test]
    fn values_with_three_digits() {
        assert_eq!(Quantity::Count.text(0.0), "0");
        assert_eq!(Quantity::Count.text(999.0), "999");
        assert_eq!(Quantity::Count.text(12.34), "12.3");
        assert_eq!(Quantity::Count.text(123_456.0), "123k");
        assert_eq!(Quantity::Bytes.text(1_572_864.0), "1.50 MiB");
        assert_eq!(Quantity::Nanoseconds.text(12_300.0), "12.3 µs");
        assert_eq!(Quantity::Rarity.text(1_000.0), "99.9 %");
        assert_eq!(Quantity::Seconds.text(125.04), "2m 5s");
        assert_eq!(Quantity::Seconds.text(0.51), "500ms");
    }
}
