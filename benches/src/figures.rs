//! What was measured, in memory and as CSV.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs;
use std::path::Path;

use support::quantiles::{Samples, Spread};

use crate::row::Row;

/// What a case has measured for one row.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The name of the row.
    pub row: String,
    /// In the unit of the row.
    pub value: f64,
    /// Whether it is the figure of other work than the row is about, such as that of timers that were not due.
    pub is_astray: bool,
}

/// The figures of all rounds, and under which circumstances they came to be.
#[derive(Debug, Default)]
pub struct Figures {
    /// Command, machine, load, and what else is to be known: a list in markdown.
    pub setting: String,
    /// The columns that take part, in order.
    pub columns: Vec<String>,
    cells: HashMap<(String, String), BTreeMap<usize, f64>>,
    astray: Vec<(String, String)>,
}

impl Figures {
    /// None yet.
    pub fn of(columns: Vec<String>) -> Self {
        Figures {
            columns,
            ..Figures::default()
        }
    }

    /// Adds a figure of a round.
    pub fn add(&mut self, column: &str, round: usize, measured: Measured) {
        let key = (measured.row, column.to_owned());
        if measured.is_astray && !self.astray.contains(&key) {
            self.astray.push(key.clone());
        }
        self.cells
            .entry(key)
            .or_default()
            .insert(round, measured.value);
    }

    fn rounds(&self, row: &str, column: &str) -> Option<&BTreeMap<usize, f64>> {
        self.cells.get(&(row.to_owned(), column.to_owned()))
    }

    /// Whether there is a figure of `row`.
    pub fn has(&self, row: &Row) -> bool {
        let is_known = |column| self.rounds(&row.name, column).is_some();
        self.columns().any(is_known)
    }

    /// What is known of `row` in `column`.
    pub fn spread(&self, row: &str, column: &str) -> Option<Spread> {
        let rounds = self.rounds(row, column)?;
        rounds.values().copied().collect::<Samples>().spread()
    }

    /// The figure that stands for `row` in `column`.
    pub fn figure(&self, row: &Row, column: &str) -> Option<f64> {
        let spread = self.spread(&row.name, column)?;
        Some(if row.is_maximum {
            spread.min
        } else {
            spread.median
        })
    }

    /// Whether `column` did other work in `row` than was to be done.
    pub fn is_astray(&self, row: &Row, column: &str) -> bool {
        self.astray.contains(&(row.name.clone(), column.to_owned()))
    }

    /// The ratio of `row` in `column` to what it is to be compared with in the column `yardstick`: the middle of the
    /// ratios within the rounds. The machine may be faster in one round than in another, but hardly within one.
    pub fn ratio(&self, row: &Row, column: &str, yardstick: &str) -> Option<f64> {
        if row.is_maximum {
            let unit = self.spread(&row.against, yardstick)?.min;
            return Some(self.figure(row, column)? / unit).filter(|ratio| ratio.is_finite());
        }
        let ratios = self.ratios(row, column, yardstick);
        ratios.map(|(_, ratio)| ratio).collect::<Samples>().median()
    }

    /// How `row` in `column` compares with `other`: `Equal` where the ranges of the rounds meet, `None` where one has no
    /// figure.
    pub fn order(&self, row: &Row, column: &str, other: &str) -> Option<Ordering> {
        let column = self.spread(&row.name, column)?;
        let other = self.spread(&row.name, other)?;
        Some(if column.max < other.min {
            Ordering::Less
        } else if column.min > other.max {
            Ordering::Greater
        } else {
            Ordering::Equal
        })
    }

    /// The ratios of `row` in `column` to `other`, within the rounds.
    pub fn ratio_spread(&self, row: &Row, column: &str, other: &str) -> Option<Spread> {
        let ratios = self.ratios(row, column, other);
        ratios.map(|(_, ratio)| ratio).collect::<Samples>().spread()
    }

    /// The ratios within the rounds, each with its round.
    fn ratios<'a>(
        &'a self,
        row: &Row,
        column: &str,
        yardstick: &str,
    ) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        let units = self.rounds(&row.against, yardstick);
        let figures = self.rounds(&row.name, column).into_iter().flatten();
        figures.filter_map(move |(&round, figure)| {
            let unit = *units?.get(&round)?;
            (unit > 0.0).then(|| (round, figure / unit))
        })
    }

    /// All `rows` together: the geometric mean of their [ratios](Self::ratio), and those of the single rounds.
    pub fn together(&self, rows: &[Row], column: &str, yardstick: &str) -> Option<(f64, Spread)> {
        let ratios = rows
            .iter()
            .filter_map(|row| self.ratio(row, column, yardstick));
        let mut rounds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for row in rows {
            for (round, ratio) in self.ratios(row, column, yardstick) {
                rounds.entry(round).or_default().push(ratio);
            }
        }
        let rounds: Samples = rounds.into_values().filter_map(geometric_mean).collect();
        Some((geometric_mean(ratios)?, rounds.spread()?))
    }

    /// Writes a line for each of `rows` and each round, with a cell for each column, below the setting.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, rows: &[Row], path: &Path) -> Result<(), Box<dyn Error>> {
        let comment: String = self.setting.lines().map(|it| format!("# {it}\n")).collect();
        let mut csv = csv::Writer::from_writer(comment.into_bytes());
        csv.write_record(["row", "round"].into_iter().chain(self.columns()))?;
        for row in rows {
            let of = |column: &String| self.rounds(&row.name, column);
            let rounds = self.columns.iter().filter_map(of).flat_map(BTreeMap::keys);
            let last = rounds.max().map_or(0, |round| round + 1);
            for round in 0..last {
                let mut record = vec![row.name.clone(), (round + 1).to_string()];
                record.extend(self.columns.iter().map(|column| {
                    let figure = of(column).and_then(|rounds| rounds.get(&round));
                    let mark = if self.is_astray(row, column) {
                        "†"
                    } else {
                        ""
                    };
                    figure.map_or_else(String::new, |figure| {
                        format!("{}{mark}", five_digits(*figure))
                    })
                }));
                csv.write_record(record)?;
            }
        }
        fs::create_dir_all(path.parent().ok_or("a file is in a folder")?)?;
        Ok(fs::write(path, csv.into_inner()?)?)
    }

    /// What [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If the file cannot be read, or is not of that form.
    pub fn load(path: &Path) -> Result<Self, Box<dyn Error>> {
        let text = fs::read_to_string(path)?;
        let comments = text.lines().filter_map(|line| line.strip_prefix("# "));
        let setting = comments.map(|line| line.to_owned() + "\n").collect();
        let mut csv = csv::ReaderBuilder::new();
        let mut csv = csv.comment(Some(b'#')).from_reader(text.as_bytes());
        let columns = csv.headers()?.iter().skip(2).map(str::to_owned).collect();
        let mut figures = Figures {
            setting,
            ..Figures::of(columns)
        };
        for record in csv.into_records() {
            let record = record?;
            let round: usize = record[1].parse()?;
            for (column, cell) in record.iter().skip(2).enumerate() {
                if cell.is_empty() {
                    continue;
                }
                let measured = Measured {
                    row: record[0].to_owned(),
                    value: cell.trim_end_matches('†').parse()?,
                    is_astray: cell.ends_with('†'),
                };
                let column = figures.columns[column].clone();
                figures.add(&column, round - 1, measured);
            }
        }
        Ok(figures)
    }

    fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }
}

fn five_digits(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    let factor = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * factor).round() / factor
}

/// `None` of none; zeros are left out.
fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms = values.into_iter().filter(|&it| it > 0.0).map(f64::ln);
    let (sum, count) = logarithms.fold((0.0, 0.0), |(sum, count), it| (sum + it, count + 1.0));
    (count > 0.0).then(|| f64::exp(sum / count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Aim, row};

    #[test]
    fn ratios_are_within_the_rounds_and_survive_the_csv() {
        let row = row("spawn", "spawn", "spawn a task", "ns", Aim::Open);
        let mut figures = Figures::of(vec!["ours".to_owned(), "a, b".to_owned()]);
        "- a command\n- a machine\n".clone_into(&mut figures.setting);
        // The machine is twice as fast in the second round.
        let rounds = [(10.0, 20.0), (5.0, 10.0), (8.0, 32.0)];
        for (round, (ours, other)) in rounds.into_iter().enumerate() {
            for (column, value, is_astray) in [("ours", ours, false), ("a, b", other, true)] {
                let row = row.name.clone();
                let measured = Measured {
                    row,
                    value,
                    is_astray,
                };
                figures.add(column, round, measured);
            }
        }
        let path = std::env::temp_dir().join(format!("figures-{}.csv", std::process::id()));
        let rows = [row];
        figures
            .save(&rows, &path)
            .expect("the folder can be written");
        let loaded = Figures::load(&path).expect("it was just written");
        fs::remove_file(&path).expect("it is there");
        for figures in [figures, loaded] {
            assert_eq!(figures.setting, "- a command\n- a machine\n");
            assert_eq!(figures.ratio(&rows[0], "ours", "a, b"), Some(0.5));
            assert_eq!(figures.figure(&rows[0], "ours"), Some(8.0));
            assert!(figures.is_astray(&rows[0], "a, b") && !figures.is_astray(&rows[0], "ours"));
            let (mean, rounds) = figures.together(&rows, "ours", "a, b").expect("a row");
            assert!((mean - 0.5).abs() < 1e-9 && (rounds.min - 0.25).abs() < 1e-9);
        }
    }
}
