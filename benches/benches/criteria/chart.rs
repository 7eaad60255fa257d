//! What a bench shows, and the figures that it shows it with.

/// What one bench shows.
#[derive(Debug)]
pub struct Chart {
    /// Name of the bench and of the files it leaves.
    pub name: &'static str,
    /// Above tables and diagrams.
    pub title: &'static str,
    /// Where the figures are.
    pub panels: &'static [Panel],
    /// Timers, as they appear in the ids.
    pub populations: &'static [usize],
    /// What `populations` counts.
    pub population_label: &'static str,
    /// What is timed.
    pub operation_label: &'static str,
}

/// One table and one diagram: a group of benches named `group/queue/population`.
#[derive(Debug)]
pub struct Panel {
    /// The group's name in Criterion.
    pub group: &'static str,
    /// In words.
    pub title: &'static str,
    /// How many operations an iteration of the bench is, given the population.
    pub operations: fn(usize) -> usize,
}

/// A measured queue: nanoseconds to an operation at each population, if measured.
pub(super) struct Series {
    pub(super) queue: &'static str,
    pub(super) points: Vec<Option<Estimate>>,
}

/// Nanoseconds to an operation.
#[derive(Clone, Copy)]
pub(super) struct Estimate {
    pub(super) ns: f64,
    pub(super) low_ns: f64,
    pub(super) high_ns: f64,
}
