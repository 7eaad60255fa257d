//! What a row of a table is.

use std::fmt;

/// One figure that every column is asked for.
#[derive(Clone, Debug)]
pub struct Row {
    /// The word for it on the command line and in the CSV.
    pub name: String,
    /// The case that yields it, perhaps among others.
    pub case: String,
    /// Above the table that it is in.
    pub section: String,
    /// What it is.
    pub title: String,
    /// In what unit.
    pub unit: &'static str,
    /// What the figure of our crate should be.
    pub aim: Aim,
    /// The row whose figure is the unit of the ratios: this one, unless the yardstick lacks what it measures.
    pub against: String,
    /// The column of that figure, unless it is that of the bench.
    pub yardstick: Option<&'static str>,
    /// Whether each figure is a maximum. The rounds do the same work, and what disturbs one of them can only make its
    /// maximum larger: the smallest stands for the row then, else the median.
    pub is_maximum: bool,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// At most this often the figure of the yardstick.
    RatioAtMost(f64),
    /// At least this often.
    RatioAtLeast(f64),
    /// As [`Aim::RatioAtMost`]; figures up to `floor` are as good as nothing, and met whatever the ratio.
    RatioAtMostOrFloor {
        /// How often the figure of the yardstick.
        ratio: f64,
        /// What is always good enough.
        floor: f64,
    },
    /// At most this, whatever the others do.
    AtMost(f64),
    /// Nothing in particular: the row is there to be read.
    Open,
}

/// The row `name` of `case`.
pub fn row(
    name: impl Into<String>,
    case: impl Into<String>,
    title: impl Into<String>,
    unit: &'static str,
    aim: Aim,
) -> Row {
    let name = name.into();
    Row {
        against: name.clone(),
        name,
        case: case.into(),
        section: String::new(),
        title: title.into(),
        unit,
        aim,
        yardstick: None,
        is_maximum: false,
    }
}

impl Row {
    /// The same row, in proportion to the row `name`.
    #[must_use]
    pub fn against(mut self, name: &str) -> Row {
        name.clone_into(&mut self.against);
        self
    }

    /// The same row in another section.
    #[must_use]
    pub fn within(mut self, section: impl Into<String>) -> Row {
        self.section = section.into();
        self
    }

    /// Whether it is a rate: of all other figures the smaller is the better.
    pub fn is_better_if_larger(&self) -> bool {
        self.unit.ends_with("/s") || self.title.ends_with("/s")
    }

    /// Whether the row is asked for by `pattern`.
    pub fn matches(&self, pattern: &str) -> bool {
        self.name.contains(pattern) || self.title.contains(pattern)
    }
}

impl Aim {
    /// Whether `figure` meets it, given its ratio to the yardstick; `None` where there is nothing to judge or to judge by.
    pub fn is_met(self, figure: Option<f64>, ratio: Option<f64>) -> Option<bool> {
        let figure = figure?;
        Some(match self {
            Aim::RatioAtMost(most) => ratio? <= most,
            Aim::RatioAtLeast(least) => ratio? >= least,
            Aim::RatioAtMostOrFloor { ratio: most, floor } => figure <= floor || ratio? <= most,
            Aim::AtMost(limit) => figure <= limit,
            Aim::Open => return None,
        })
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aim::RatioAtMost(ratio) => write!(formatter, "≤ {ratio}×"),
            Aim::RatioAtLeast(ratio) => write!(formatter, "≥ {ratio}×"),
            Aim::RatioAtMostOrFloor { ratio, floor } => write!(formatter, "≤ {ratio}× or {floor}"),
            Aim::AtMost(limit) if *limit == 0.0 => formatter.write_str("0"),
            Aim::AtMost(limit) => write!(formatter, "≤ {limit}"),
            Aim::Open => formatter.write_str("—"),
        }
    }
}
