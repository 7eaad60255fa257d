//! What a run has measured.

use super::case::{Case, Form};
use super::sample::Summary;
use super::{bars, durable, latency, matrix, scaling, setting};

/// All that was measured.
pub struct Results {
    pub setting: setting::Setting,
    pub cases: Vec<Measured>,
    pub floors: Vec<bars::Outcome>,
    /// Bytes held for a flushed row over the bytes of the row.
    pub memory: Option<f64>,
    pub latencies: Vec<latency::Outcome>,
    pub growth: Option<scaling::Growth>,
    pub matrix: Vec<matrix::Outcome>,
    pub durable: Vec<durable::Row>,
}

/// A case in one form.
pub struct Measured {
    pub case: &'static Case,
    pub form: Form,
    pub summary: Summary,
}
