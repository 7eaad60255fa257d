//! All queues in turn, case by case, round by round.

use std::collections::HashMap;
use std::time::Instant;

use benches::run::turns;
use support::quantiles::{self, Spread};

use crate::columns::Column;
use crate::figures::Figures;
use crate::rows::Group;

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Samples {
    samples: HashMap<(&'static str, String), Vec<f64>>,
    astray: Vec<(&'static str, String)>,
}

impl Samples {
    /// What is known of `row` in `column`.
    pub fn spread(&self, column: &'static str, row: &str) -> Option<Spread> {
        let samples = self.samples.get(&(column, row.to_owned()))?;
        let samples: quantiles::Samples = samples.iter().copied().collect();
        samples.spread()
    }

    /// Whether the queue `column` fired other timers in `row` than those that were due.
    pub fn is_astray(&self, column: &'static str, row: &str) -> bool {
        self.astray.contains(&(column, row.to_owned()))
    }

    fn add(&mut self, column: &Column, group: &Group, figures: Figures) {
        assert!(figures.len() <= group.rows.len(), "figures without a row");
        for (row, figure) in group.rows.iter().zip(figures) {
            let Some(figure) = figure else {
                continue;
            };
            let key = (column.name, row.name.clone());
            if figure.is_astray && !self.astray.contains(&key) {
                self.astray.push(key.clone());
            }
            self.samples.entry(key).or_default().push(figure.value);
        }
    }
}

/// Runs the case of each of `groups` on each of `columns`, in `rounds` rounds or in as many as the
/// case wants.
pub fn run(columns: &[Column], groups: &[Group], rounds: usize) -> Samples {
    let mut samples = Samples::default();
    for round in 0..rounds {
        let begin = Instant::now();
        for group in groups
            .iter()
            .filter(|group| round < group.case.rounds(rounds))
        {
            for place in turns(columns.len(), round) {
                let column = &columns[place];
                samples.add(column, group, (column.run)(group.case));
            }
        }
        eprintln!(
            "round {} of {rounds}: {:.0} s",
            round + 1,
            begin.elapsed().as_secs_f64()
        );
    }
    samples
}
