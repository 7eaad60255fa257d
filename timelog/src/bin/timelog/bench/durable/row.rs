//! A row of the report.

use support::quantiles::{Samples, Spread};

use super::super::bars::Wanted;

/// The rounds of a figure.
pub struct Row {
    pub what: String,
    pub unit: &'static str,
    pub figure: Spread,
    /// At least a rate, or at most a time.
    pub wanted: Wanted,
}

impl Row {
    pub(super) fn new(what: &str, unit: &'static str, figures: Vec<f64>) -> Self {
        let figures: Samples = figures.into_iter().collect();
        Self {
            what: what.to_owned(),
            unit,
            figure: figures.spread().expect("there is a round at least"),
            wanted: Wanted::Nothing,
        }
    }

    /// A ratio of the figures of each round.
    pub(super) fn ratio(what: &str, ours: &[f64], others: &[f64], wanted: Wanted) -> Self {
        let ratios = ours.iter().zip(others).map(|(ours, other)| ours / other);
        let row = Self::new(what, "", ratios.collect());
        Self { wanted, ..row }
    }
}
