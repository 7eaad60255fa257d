//! A live table of all executors of a process, in the terminal.
//!
//! ```console
//! $ cargo run --release -p examples --features metrics --bin metrics -- --socket /tmp/metrics.sock
//! $ cargo run --release -p examples --features top --bin glommio_top -- /tmp/metrics.sock
//! ```
//!
//! The process that is watched says what it counts in Prometheus' text format to each client of a
//! Unix socket, as the example `metrics` does; rates are made of two readings. `q` ends it.

#![forbid(unsafe_code)]

mod reading;
mod table;

use std::error::Error;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode};
use reading::Reading;

/// Shows what the executors of a process do.
#[derive(Debug, Parser)]
#[command(name = "glommio_top")]
struct Options {
    /// The socket that the process listens on.
    socket: PathBuf,

    /// Time between two readings.
    #[arg(long, default_value = "1s")]
    interval: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    // Before the screen is cleared: an error is for the terminal as it was.
    let first = read(&options.socket)?;
    let mut terminal = ratatui::init();
    let shown = show(&mut terminal, &options, first);
    ratatui::restore();
    shown
}

/// Shows one reading after the other until a key is pressed, or the process ends.
fn show(
    terminal: &mut DefaultTerminal,
    options: &Options,
    first: Reading,
) -> Result<(), Box<dyn Error>> {
    let mut before = first;
    loop {
        let until = Instant::now() + *options.interval;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if event::poll(left.min(PATIENCE))?
                && let Event::Key(key) = event::read()?
                && matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
            {
                return Ok(());
            }
        }
        let now = read(&options.socket)?;
        terminal.draw(|frame| frame.render_widget(table::of(&before, &now), frame.area()))?;
        before = now;
    }
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
