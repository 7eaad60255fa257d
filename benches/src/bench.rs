//! A bench: its command line, its rounds, and what becomes of the figures.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use clap::Parser;
use support::machine;
use support::output::{docs_directory, exit_code, target_directory, write_block};
use support::plots::save;

pub use crate::about::{Bench, Lines};
use crate::figures::{Figures, Measured};
use crate::report;
use crate::row::Row;

/// Measures, prints a report, and leaves it in target/benches.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// How often each case runs in each column; less often where it takes long.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Only rows whose name or title contains this, and what comes with them.
    #[arg(long, visible_alias = "only", default_value = "")]
    pub rows: String,
    /// Only columns whose name begins so.
    #[arg(long, visible_aliases = ["crates", "queues"], value_delimiter = ',')]
    pub columns: Vec<String>,
    /// The absolute path of a checkout of another commit: its library, with its peer-ours, is one more column,
    /// "before", where runtimes are compared.
    #[arg(
        long,
        value_name = "CHECKOUT",
        default_value = "",
        hide_default_value = true
    )]
    pub before: String,
    /// One round with less work, to see that all of it runs.
    #[arg(long)]
    pub quick: bool,
    /// Write the figures to docs/figures, and the page and its diagrams from them.
    #[arg(long)]
    pub write_docs: bool,
    /// Measure nothing: write the page and its diagrams from the figures in docs/figures.
    #[arg(long)]
    pub redraw: bool,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    pub bench: bool,
}

impl Options {
    /// Whether a column of this name takes part.
    pub fn wants(&self, column: &str) -> bool {
        self.columns.is_empty()
            || self
                .columns
                .iter()
                .any(|it| column.starts_with(it.as_str()))
    }
}

/// Something that is compared.
pub struct Column {
    /// Above it.
    pub name: String,
    /// What can be measured with it.
    pub cases: Vec<Case>,
}

/// Measures once.
pub type Run = Box<dyn FnMut() -> Result<Vec<Measured>, String>>;

/// Something that yields the figures of one or more rows.
pub struct Case {
    /// As rows have it.
    pub name: String,
    /// It runs in one of so many rounds, as it takes long or says the same each time.
    pub one_in: usize,
    /// Measures once.
    pub run: Run,
}

/// The case `name`, in every round.
pub fn case(
    name: impl Into<String>,
    run: impl FnMut() -> Result<Vec<Measured>, String> + 'static,
) -> Case {
    Case {
        name: name.into(),
        one_in: 1,
        run: Box::new(run),
    }
}

/// The figures of the rows `<case>-<end>`.
pub fn figures<const ROWS: usize>(case: &str, of_rows: [(&str, f64); ROWS]) -> Vec<Measured> {
    let measured = |(end, value)| Measured {
        row: format!("{case}-{end}"),
        value,
        is_astray: false,
    };
    of_rows.map(measured).into()
}

impl Bench {
    /// The `main` of a bench: does what the command line asks for. `columns` makes what is compared; without
    /// [`Options::bench`] `cargo test` is to see that it works, and there may be none.
    pub fn main(
        &self,
        rows: Vec<Row>,
        columns: impl FnOnce(&Options) -> Result<Vec<Column>, String>,
    ) -> ExitCode {
        let mut options = Options::parse();
        for (index, row) in rows.iter().enumerate() {
            let name = &row.name;
            let is_new = rows[..index].iter().all(|other| other.name != *name);
            assert!(is_new, "two rows `{name}`");
            let is_known = rows.iter().any(|other| other.name == row.against);
            assert!(is_known, "`{name}` is in proportion to no row");
        }
        options.quick |= !options.bench;
        exit_code(self.run(rows, &options, columns))
    }

    fn run(
        &self,
        mut rows: Vec<Row>,
        options: &Options,
        columns: impl FnOnce(&Options) -> Result<Vec<Column>, String>,
    ) -> Result<(), Box<dyn Error>> {
        let file = |folder: &Path| folder.join(self.file()).with_extension("csv");
        let docs = docs_directory()?;
        if options.redraw {
            let figures = Figures::load(&file(&docs.join("figures")))?;
            rows.retain(|row| figures.has(row));
            return self.write_docs(&rows, &figures, &docs);
        }
        rows.retain(|row| row.matches(&options.rows));
        let mut columns = columns(options)?;
        columns.retain(|column| options.wants(&column.name));
        if columns.is_empty() && !options.bench {
            return Ok(());
        }
        if rows.is_empty() || columns.is_empty() {
            return Err("there are no such rows or columns; see --help".into());
        }
        let rounds = options.rounds.map_or(self.rounds, usize::from);
        let rounds = if options.quick { 1 } else { rounds };
        let machine = machine::describe() + &(self.remark)();
        if options.write_docs && machine.contains("-dirty") {
            return Err("the tree has changes: a page names the commit that was measured".into());
        }
        let (begin, load) = (Instant::now(), machine::load());
        let (mut figures, failures) = measure(&rows, &mut columns, rounds);
        figures.setting = format!(
            "- `{}`\n- {machine}; load average {load} before, {} after; {rounds} rounds in {:.1} min\n",
            self.command(),
            machine::load(),
            begin.elapsed().as_secs_f64() / 60.0,
        );
        for failure in &failures {
            figures.setting += &format!("- failed: {failure}\n");
        }

        let directory = target_directory().join("benches");
        let csv = file(&directory);
        figures.save(&rows, &csv)?;
        // What is shown is what the file says.
        let figures = Figures::load(&csv)?;
        let report = report::page(self, &rows, &figures);
        let aims = report::aims(self, &rows, &figures).unwrap_or_default();
        println!("{report}\n{aims}");
        fs::write(csv.with_extension("md"), report)?;
        self.draw(&rows, &figures, &directory)?;
        println!("written to {}", directory.display());
        if options.write_docs {
            figures.save(&rows, &file(&docs.join("figures")))?;
            self.write_docs(&rows, &figures, &docs)?;
        }
        match failures.len() {
            0 => Ok(()),
            count => Err(format!("{count} cases failed").into()),
        }
    }

    fn file(&self) -> &'static str {
        if self.file.is_empty() {
            self.name
        } else {
            self.file
        }
    }

    fn write_docs(
        &self,
        rows: &[Row],
        figures: &Figures,
        docs: &Path,
    ) -> Result<(), Box<dyn Error>> {
        let page = docs.join(self.page).with_extension("md");
        let text = match self.has_sum {
            true => report::sum_alone(self, rows, figures),
            false => report::page(self, rows, figures),
        };
        write_block(&page, self.block, &text)?;
        self.draw(rows, figures, page.parent().ok_or("a page is in a folder")?)?;
        println!("written to {}", page.display());
        Ok(())
    }

    fn draw(
        &self,
        rows: &[Row],
        figures: &Figures,
        directory: &Path,
    ) -> Result<(), Box<dyn Error>> {
        for picture in self.pictures {
            // Without what was left out this time there is nothing to see.
            if let Some(diagram) = picture.diagram(self, figures) {
                save(&directory.join(picture.file), diagram.svg())?;
            }
        }
        if let Some((file, other)) = self.ratios
            && let Some(ratios) = report::ratios(self, rows, figures, other)
        {
            save(&directory.join(file), ratios.svg())?;
        }
        Ok(())
    }

    /// The command to repeat it with.
    fn command(&self) -> String {
        let features: Vec<_> = [
            cfg!(feature = "peers").then_some("peers"),
            (glommio::BUILD.contains("timing-wheel")).then_some("glommio/timing-wheel"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut command = format!("cargo bench -p benches --bench {}", self.name);
        if !features.is_empty() {
            command += &format!(" --features {}", features.join(","));
        }
        let arguments = env::args().skip(1).filter(|it| it != "--bench");
        let arguments: Vec<_> = arguments.collect();
        if !arguments.is_empty() {
            command += &format!(" -- {}", arguments.join(" "));
        }
        command
    }
}

/// Runs the cases behind `rows` in every column that has them, and gives the figures and what failed.
fn measure(rows: &[Row], columns: &mut [Column], rounds: usize) -> (Figures, Vec<String>) {
    let mut cases: Vec<&str> = Vec::new();
    for row in rows {
        if !cases.contains(&row.case.as_str()) {
            cases.push(&row.case);
        }
    }
    let names = columns.iter().map(|column| column.name.clone());
    let mut figures = Figures::of(names.collect());
    let mut failures = Vec::new();
    for round in 0..rounds {
        let begin = Instant::now();
        for name in &cases {
            for place in turns(columns.len(), round) {
                let Column {
                    name: column,
                    cases,
                } = &mut columns[place];
                let case = cases.iter_mut().find(|case| case.name == *name);
                let Some(case) = case.filter(|case| round < rounds.div_ceil(case.one_in)) else {
                    continue;
                };
                match (case.run)() {
                    Ok(measured) => {
                        let is_wanted = |it: &Measured| rows.iter().any(|row| row.name == it.row);
                        for measured in measured.into_iter().filter(is_wanted) {
                            figures.add(column, round, measured);
                        }
                    }
                    Err(complaint) => {
                        let complaint = complaint.trim().replace('\n', " ");
                        let failure = format!("{name} in {column}: {complaint}");
                        eprintln!("{failure}");
                        failures.push(failure);
                    }
                }
            }
        }
        let took = begin.elapsed().as_secs_f64();
        eprintln!("round {} of {rounds}: {took:.0} s", round + 1);
    }
    (figures, failures)
}

/// The places of `count` columns in the order in which they are measured in a round. What comes first finds caches and
/// clocks as the case before left them, and what comes after another one those of that one, the host's cache of a disk
/// among them: they take turns in both.
fn turns(count: usize, round: usize) -> impl Iterator<Item = usize> {
    // A step without a common divisor visits each place once.
    let steps = (1..count).filter(|&step| gcd(step, count) == 1);
    let steps: Vec<usize> = steps.collect();
    let step = steps.get(round % steps.len().max(1)).copied().unwrap_or(1);
    (0..count).map(move |turn| (round + turn * step) % count)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Aim, row};

    #[test]
    fn all_take_turns_in_the_first_place_and_after_another_one() {
        for count in 1..10 {
            let mut firsts = vec![false; count];
            let mut before = vec![Vec::new(); count];
            for round in 0..3 * count {
                let order: Vec<usize> = turns(count, round).collect();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..count));
                firsts[order[0]] = true;
                for pair in order.windows(2) {
                    before[pair[1]].push(pair[0]);
                }
            }
            assert!(firsts.iter().all(|&it| it));
            for (place, mut before) in before.into_iter().enumerate() {
                before.sort_unstable();
                before.dedup();
                // Six have two steps only.
                let least = if count > 2 { 2 } else { count - 1 };
                assert!(
                    before.len() >= least,
                    "{place} of {count} comes after {before:?}"
                );
            }
        }
    }

    #[test]
    fn a_case_that_fails_is_named_and_the_others_go_on() {
        let works = |value: f64| move || Ok(figures("a", [("x", value), ("unknown", 0.0)]));
        let column = |name: &str, case| Column {
            name: name.to_owned(),
            cases: vec![case],
        };
        let seldom = Case {
            one_in: 4,
            ..case("a", works(2.0))
        };
        let mut columns = [
            column("sound", case("a", works(1.0))),
            column("seldom", seldom),
            column("broken", case("a", || Err("it is\nbroken".to_owned()))),
        ];
        let rows = [row("a-x", "a", "x", "ns", Aim::Open)];
        let (figures, failures) = measure(&rows, &mut columns, 2);
        assert_eq!(failures, ["a in broken: it is broken"; 2]);
        assert_eq!(figures.figure(&rows[0], "sound"), Some(1.0));
        assert_eq!(figures.ratio(&rows[0], "seldom", "sound"), Some(2.0));
        assert_eq!(figures.figure(&rows[0], "broken"), None);
    }
}
