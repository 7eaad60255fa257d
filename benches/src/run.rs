//! A run of a bench: what its page says about it, and where the page goes.

use std::fmt::Display;
use std::path::Path;
use std::time::Instant;
use std::{env, fs, io};

use clap::Args;
use support::machine;
use support::output::{docs_directory, target_directory, write_block};

/// The features that this was built with, as on the command line.
pub const FEATURES: &str = if cfg!(feature = "peers") {
    " --features peers"
} else {
    ""
};

/// Options of every bench.
#[derive(Debug, Args)]
pub struct Common {
    /// Write to docs/ too.
    #[arg(long)]
    pub write_docs: bool,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    pub bench: bool,
}

/// A run that has begun.
#[derive(Debug)]
pub struct Run {
    begin: Instant,
    /// As it was before this thread was bound to one CPU and could see no other.
    machine: String,
    load: String,
}

impl Run {
    /// Begins now.
    #[expect(clippy::new_without_default, reason = "it reads the clock")]
    pub fn new() -> Self {
        Run {
            begin: Instant::now(),
            machine: machine::describe(),
            load: machine::load(),
        }
    }

    /// The lines above a table: the command of `bench`, to be repeated, with `features` as on the
    /// command line; the machine and `remark`; and how busy it was while `what` was measured.
    pub fn setting(&self, bench: &str, features: &str, remark: &str, what: impl Display) -> String {
        let arguments = env::args().skip(1);
        let arguments: Vec<_> = arguments.filter(|it| it != "--bench").collect();
        let separator = if arguments.is_empty() { "" } else { " -- " };
        format!(
            "- `cargo bench -p benches --bench {bench}{features}{separator}{}`\n- {}{remark}\n\
             - load average {} before, {} after; {what} in {:.1} min\n",
            arguments.join(" "),
            self.machine,
            self.load,
            machine::load(),
            self.begin.elapsed().as_secs_f64() / 60.0,
        )
    }
}

/// Where a bench writes to.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    /// The report is `<name>.md`.
    pub name: &'static str,
    /// In this folder of the target directory.
    pub folder: &'static str,
    /// The page of `docs/` that shows the figures, without `.md`.
    pub page: &'static str,
    /// The block of it that they replace.
    pub block: &'static str,
}

impl Destination {
    /// Writes `report`, with the pictures that `draw` makes in the folder that it is given; if they
    /// are wanted there, `figures` and pictures also to `docs/`.
    ///
    /// # Errors
    /// In words, if that cannot be done.
    pub fn write(
        &self,
        report: &str,
        figures: &str,
        options: &Common,
        draw: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(), String> {
        let directory = target_directory().join(self.folder);
        let file = directory.join(self.name).with_extension("md");
        fs::create_dir_all(&directory)
            .and_then(|()| fs::write(&file, report))
            .and_then(|()| draw(&directory))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        println!("\nwritten to {}", file.display());
        if options.write_docs {
            let written = docs_directory().and_then(|docs| {
                write_block(
                    &docs.join(self.page).with_extension("md"),
                    self.block,
                    figures,
                )?;
                draw(&docs)?;
                Ok(docs)
            });
            let docs = written.map_err(|error| format!("docs/{}.md: {error}", self.page))?;
            println!("written to {}", docs.display());
        }
        Ok(())
    }
}

/// The places of `count` contestants in the order in which they are measured in a round. What comes
/// first finds caches and clocks as the case before left them, and what comes after another one those of
/// that one, the host's cache of a disk among them: they take turns in both.
pub fn turns(count: usize, round: usize) -> impl Iterator<Item = usize> {
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
}
