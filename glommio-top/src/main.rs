//! A live table of all executors of a process, in the terminal.
//!
//! ```console
//! $ cargo install --path glommio-top
//! $ cargo run --release -p examples --features metrics --bin metrics -- --socket /tmp/metrics.sock
//! $ glommio-top /tmp/metrics.sock               # in another terminal
//! /tmp/metrics.sock: 2 executors; every 1s; q ends
//! executor name             turns/s   polls/s runnable   timers  late p99 overruns
//!        1 shard              3253      6843        2       20     3.7ms       12
//!        2 shard              3247      6808        2       20     4.2ms        6
//! ```
//!
//! The process under observation sends its metrics in Prometheus' text format to each client of a
//! Unix socket, as the example `metrics` does; rates are computed from two readings. A row is red if
//! a task has just kept its thread for longer than its slice. A narrow terminal shows fewer columns.
//! `q` quits.

#![forbid(unsafe_code)]

mod reading;
mod table;

use std::error::Error;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::{DefaultTerminal, Frame};
use reading::Reading;

/// Shows what the executors of a process do.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// The socket that the process listens on.
    socket: PathBuf,

    /// Time between two readings.
    #[arg(long, default_value = "1s")]
    interval: humantime::Duration,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("glommio-top: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    // Before the screen is cleared: an error is for the terminal as it was.
    let first = read(&options.socket)?;
    let mut terminal =
        ratatui::try_init().map_err(|error| format!("this needs a terminal: {error}"))?;
    let shown = show(&mut terminal, options, first);
    ratatui::restore();
    shown
}

/// Shows one reading after the other until a key is pressed, or the process ends.
fn show(
    terminal: &mut DefaultTerminal,
    options: &Options,
    first: Reading,
) -> Result<(), Box<dyn Error>> {
    let mut before = None;
    let mut now = first;
    loop {
        terminal.draw(|frame| draw(frame, options, before.as_ref(), &now))?;
        let until = Instant::now() + *options.interval;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if !event::poll(left)? {
                break;
            }
            match event::read()? {
                Event::Key(key) if ends(key) => return Ok(()),
                Event::Resize(..) => {
                    terminal.draw(|frame| draw(frame, options, before.as_ref(), &now))?;
                }
                _ => {}
            }
        }
        before = Some(now);
        now = read(&options.socket)?;
    }
}

/// The terminal does not turn Ctrl-C into a signal while keys are read one by one.
fn ends(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

/// A line about what is shown, and the table. There are no rates before the second reading.
fn draw(frame: &mut Frame<'_>, options: &Options, before: Option<&Reading>, now: &Reading) {
    let rows = [Constraint::Length(1), Constraint::Min(0)];
    let [top, rest] = Layout::vertical(rows).areas(frame.area());
    let executors = now.executors.len();
    let hidden = executors.saturating_sub(usize::from(rest.height.saturating_sub(1)));
    let below = match hidden {
        0 => String::new(),
        _ => format!(", {hidden} of them below the edge"),
    };
    let line = format!(
        "{}: {executors} executors{below}; every {}; q ends",
        options.socket.display(),
        options.interval
    );
    frame.render_widget(line, top);
    frame.render_widget(table::of(before.unwrap_or(now), now, rest.width), rest);
}

/// What the process says now.
fn read(socket: &Path) -> Result<Reading, Box<dyn Error>> {
    let mut stream = UnixStream::connect(socket)
        .map_err(|error| format!("{} cannot be read: {error}", socket.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(Reading::new(&text, Instant::now()))
}

const PATIENCE: Duration = Duration::from_secs(5);
