//! Measures what the ways to receive and send cost that the kernel offers, bare, without the
//! runtime.
//!
//! ```text
//! cargo bench -p benches --bench socket_paths -- [--rounds 7] [--turns 1500] [--mebibytes 1024] [--write-docs]
//! ```
//!
//! Each round runs every way once, on connections and a ring of its own, and begins with another
//! one than the round before. What a kernel lacks is found out before the first, said, and left
//! out. The report goes to the terminal and to `target/socket_paths/`; with `--write-docs` also to
//! `docs/sockets.md`, which says what the figures mean.

use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{fs, io};

use benches::command::command;
use benches::thread::allowed_cpus;
use clap::Parser;
use support::machine;
use support::output::{docs_directory, exit_code, target_directory, write_block};

mod bulk;
mod echo;
mod meter;
mod provided;
mod report;
mod ring;
mod stage;

use report::Findings;
use stage::{Run, Watchdog};

/// Measures the ways to the kernel that sockets have.
#[derive(Debug, Parser)]
struct Options {
    /// How often each way is measured.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Messages on each of the connections, for an echo.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u64).range(1..))]
    turns: u64,
    /// What goes through the one connection, in bulk.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    mebibytes: u64,
    /// Write to docs/ too.
    #[arg(long)]
    write_docs: bool,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench {
        return exit_code(try_out());
    }
    exit_code(run(&options))
}

fn run(options: &Options) -> io::Result<()> {
    let begin = Instant::now();
    let load = machine::load();
    let findings = measure(options.rounds, options.turns, options.mebibytes)?;
    let figures = format!(
        "- `{}`\n- {}\n- {} rounds; load average {load} before, {} after; {:.1} min\n\n{}",
        command("socket_paths", ""),
        machine::describe(),
        options.rounds,
        machine::load(),
        begin.elapsed().as_secs_f64() / 60.0,
        findings.figures()
    );
    println!("{figures}");
    let directory = target_directory().join("socket_paths");
    fs::create_dir_all(&directory)?;
    let file = directory.join("socket_paths.md");
    fs::write(&file, format!("# Ways to the kernel\n\n{figures}"))?;
    println!("written to {}", file.display());
    if options.write_docs {
        let page = docs_directory()?.join("sockets.md");
        write_block(&page, "ways", &figures)?;
        println!("written to {}", page.display());
    }
    Ok(())
}

/// Runs everything once and briefly, as `cargo test` wants of a bench.
fn try_out() -> io::Result<()> {
    let findings = measure(1, 3, 8)?;
    let figures = findings.figures();
    let ways = echo::WAYS.iter().map(|way| way.name);
    for name in ways.chain(bulk::WAYS.iter().map(|way| way.name)) {
        assert!(figures.contains(name), "nothing is said of {name}");
    }
    Ok(())
}

fn measure(rounds: u32, turns: u64, mebibytes: u64) -> io::Result<Findings> {
    let cpus = allowed_cpus()?;
    if cpus.is_empty() {
        return Err(io::Error::other("no CPU may be used"));
    }
    let mut findings = find_out(&cpus)?;
    for round in 0..rounds {
        let begin = Instant::now();
        for (way, samples) in in_turn(&mut findings.echo, round) {
            samples.push(present(echo(way, &cpus, turns)?)?);
        }
        for (place, ways) in places(&cpus).zip(&mut findings.bulk) {
            let Some(place) = place else { continue };
            for (way, samples) in in_turn(ways, round) {
                samples.push(present(bulk(way, place, mebibytes)?)?);
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        eprintln!("round {} of {rounds}: {seconds:.1} s", round + 1);
    }
    Ok(findings)
}

/// Tries every way, and keeps those that the kernel and the machine have.
fn find_out(cpus: &[usize]) -> io::Result<Findings> {
    let mut findings = Findings::default();
    let skipped = &mut findings.skipped;
    for way in echo::WAYS {
        match echo(way, cpus, 1)? {
            Run::Done(_) => findings.echo.push((way, Vec::new())),
            Run::Lacking(error) => skip(skipped, way.name, &lacking(way.needs, &error)),
        }
    }
    for (place, ways) in places(cpus).zip(&mut findings.bulk) {
        let Some(place) = place else {
            skip(
                skipped,
                "bulk, as much as goes through",
                "it needs two CPUs",
            );
            continue;
        };
        for way in bulk::WAYS {
            match bulk(way, place, 1)? {
                Run::Done(_) => ways.push((way, Vec::new())),
                Run::Lacking(error) => skip(skipped, way.name, &lacking(way.needs, &error)),
            }
        }
    }
    Ok(findings)
}

fn echo(way: &echo::Way, cpus: &[usize], turns: u64) -> io::Result<Run<echo::Echo>> {
    with_watchdog(way.name, || way.measure(cpus[0], turns))
}

fn bulk(way: &bulk::Way, place: [usize; 2], mebibytes: u64) -> io::Result<Run<bulk::Bulk>> {
    let is_in_step = place[0] == place[1];
    with_watchdog(way.name, || way.measure(place, is_in_step, mebibytes))
}

/// Where the ends of a bulk connection run: each on a CPU of its own, if there are two, and both on
/// one, in step.
fn places(cpus: &[usize]) -> impl Iterator<Item = Option<[usize; 2]>> {
    let apart = cpus.get(1).map(|&second| [cpus[0], second]);
    [apart, Some([cpus[0]; 2])].into_iter()
}

/// The first way finds the caches as another one left them.
fn in_turn<T>(ways: &mut [T], round: u32) -> impl Iterator<Item = &mut T> {
    let first = round as usize % ways.len().max(1);
    let (front, back) = ways.split_at_mut(first);
    back.iter_mut().chain(front)
}

fn with_watchdog<T>(name: &str, run: impl FnOnce() -> io::Result<Run<T>>) -> io::Result<Run<T>> {
    /// No run takes a tenth of it, if it is not asked for very much.
    const LIMIT: Duration = Duration::from_secs(60);
    let _watchdog = Watchdog::start(name.to_owned(), LIMIT);
    run().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
}

fn lacking(needs: &str, error: &io::Error) -> String {
    format!("the kernel gives {error}; it needs Linux {needs}")
}

fn skip(skipped: &mut Vec<String>, name: &str, reason: &str) {
    let line = format!("{name}: {reason}");
    // What bulk lacks, it lacks in both places.
    if !skipped.contains(&line) {
        println!("skipped: {line}");
        skipped.push(line);
    }
}

/// What it was tried out with is all there.
fn present<T>(run: Run<T>) -> io::Result<T> {
    match run {
        Run::Done(done) => Ok(done),
        Run::Lacking(error) => Err(error),
    }
}
