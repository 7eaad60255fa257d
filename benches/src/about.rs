//! What a bench is about, and where its figures are shown.

/// What a bench is about, and where its figures are shown.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// As Cargo calls it.
    pub name: &'static str,
    /// Of its CSV and report, without what follows the dot.
    pub file: &'static str,
    /// The page of `docs/` that shows the figures, without `.md`.
    pub page: &'static str,
    /// The block of it that they replace.
    pub block: &'static str,
    /// Between the setting and the tables.
    pub preface: &'static str,
    /// The column whose figures are the unit of the ratios.
    pub yardstick: &'static str,
    /// The columns that the bench is about: bold in diagrams, and measured against the aims.
    pub ours: &'static [&'static str],
    /// What a line of the tables is.
    pub lines: Lines,
    /// Whether the smallest and the largest figure of the rounds follow each median.
    pub has_ranges: bool,
    /// Diagrams of the figures, beside the page.
    pub pictures: &'static [Picture],
    /// A diagram of our first column's ratios to another one: its file, and that column.
    pub ratios: Option<(&'static str, &'static str)>,
    /// Whether the page says what all rows amount to together, and leaves the rows to the file.
    pub has_sum: bool,
    /// Unless the command line says otherwise.
    pub rounds: usize,
    /// What the setting says besides.
    pub remark: fn() -> String,
}

/// What a line of the tables is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// A row.
    Rows,
    /// A column, which is called so: for few figures of many.
    Columns(&'static str),
}

impl Bench {
    /// What most have in common.
    pub const DEFAULT: Bench = Bench {
        name: "",
        file: "",
        page: "benchmarks",
        block: "figures",
        preface: "",
        yardstick: "",
        ours: &[],
        lines: Lines::Rows,
        has_ranges: true,
        pictures: &[],
        ratios: None,
        has_sum: false,
        rounds: 5,
        remark: String::new,
    };
}

/// A diagram of medians, both axes logarithmic.
#[derive(Debug)]
pub struct Picture {
    /// Beside the page.
    pub file: &'static str,
    /// Above the panels.
    pub title: &'static str,
    /// What the places on the axis to the right count.
    pub x: &'static str,
    /// The axis upwards.
    pub y: &'static str,
    /// Left to right.
    pub panels: &'static [Panel],
}

/// One coordinate system.
#[derive(Debug)]
pub struct Panel {
    /// Above it.
    pub title: &'static str,
    /// It has a line for each column whose name ends so, without that end.
    pub of: &'static str,
    /// The points of a line: places on the axis, each with the row of the figure.
    pub points: &'static [(f64, &'static str)],
}
