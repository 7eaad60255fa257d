//! Tables of texts, for pages and for the terminal.

use tabled::builder::Builder;
use tabled::grid::config::Offset;
use tabled::settings::object::Columns;
use tabled::settings::style::LineChar;
use tabled::settings::{Alignment, Padding, Style};

/// A table: a title for each column, and rows of as many cells.
///
/// The cells of the first column are names and begin at the left; those of the others are figures
/// and end at the right, unless [`Table::left`] says otherwise.
///
/// # Examples
/// ```
/// use support::tables::Table;
///
/// let mut table = Table::new(["row", "unit", "ours"]).left(1);
/// table.push(["`a | b`", "µs", "1.50"]);
/// table.push(["yield", "ns"]);
/// assert_eq!(
///     table.markdown(),
///     "| row      | unit | ours |\n\
///      |----------|------|-----:|\n\
///      | `a \\| b` | µs   | 1.50 |\n\
///      | yield    | ns   |      |\n"
/// );
/// assert_eq!(
///     table.terminal(),
///     "row      unit  ours\n\
///      `a | b`  µs    1.50\n\
///      yield    ns\n"
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The columns whose cells begin at the left.
    left: Vec<usize>,
}

impl Table {
    /// A table without rows.
    pub fn new<T: Into<String>>(titles: impl IntoIterator<Item = T>) -> Self {
        Table {
            titles: titles.into_iter().map(T::into).collect(),
            rows: Vec::new(),
            left: vec![0],
        }
    }

    /// The same with text in the column `index`, too, which begins at the left.
    #[must_use]
    pub fn left(mut self, index: usize) -> Self {
        self.left.push(index);
        self
    }

    /// Appends a row. Cells that it lacks are empty.
    ///
    /// # Panics
    /// If it has more cells than the table has columns.
    pub fn push<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(T::into).collect();
        let columns = self.titles.len();
        assert!(cells.len() <= columns, "{cells:?} in {columns} columns");
        self.rows.push(cells);
    }

    /// As Markdown, with aligned columns.
    pub fn markdown(&self) -> String {
        // A bar would end the cell, even within a code span.
        let mut table = self.build(|cell| cell.replace('|', "\\|"));
        table.with(Style::markdown());
        for column in self.figures() {
            let under_title = (1, column);
            table.modify(under_title, LineChar::horizontal(':', Offset::End(0)));
        }
        table.to_string() + "\n"
    }

    /// With aligned columns, two spaces between them.
    pub fn terminal(&self) -> String {
        let mut table = self.build(str::to_owned);
        table.with(Style::empty());
        table.with(Padding::new(0, 2, 0, 0));
        let text = table.to_string();
        let lines = text.lines().map(|line| line.trim_end().to_owned() + "\n");
        lines.collect()
    }

    fn figures(&self) -> impl Iterator<Item = usize> {
        (0..self.titles.len()).filter(|column| !self.left.contains(column))
    }

    fn build(&self, cell: fn(&str) -> String) -> tabled::Table {
        let rows = std::iter::once(&self.titles).chain(&self.rows);
        let mut builder = Builder::default();
        for row in rows {
            builder.push_record(row.iter().map(|text| cell(text)));
        }
        let mut table = builder.build();
        for column in self.figures() {
            table.modify(Columns::one(column), Alignment::right());
        }
        table
    }
}
