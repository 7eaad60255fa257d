//! What cases yield, and what tells one from another.

/// Where an insert finds the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Just made.
    Cold,
    /// Having held as many before.
    Warm,
}

/// In which order timers that are due together were armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// That of their deadlines.
    Sorted,
    /// None.
    Random,
}

/// What a case has measured for one row.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// In the unit of the row.
    pub value: f64,
    /// Whether the queue fired other timers than those that were due.
    pub is_astray: bool,
}

impl From<f64> for Figure {
    fn from(value: f64) -> Self {
        Figure {
            value,
            is_astray: false,
        }
    }
}

/// Figures in the order of the case's rows. `None` where the queue has no such operation.
pub type Figures = Vec<Option<Figure>>;

/// Figures that every queue has.
pub fn figures<const ROWS: usize>(values: [f64; ROWS]) -> Figures {
    values.map(|value| Some(value.into())).to_vec()
}
