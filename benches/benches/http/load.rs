//! As many requests as a client can place from the second CPU.

use std::io;
use std::process::Command;

use benches::server::{Server, bind_to};

use crate::Options;

/// What a load yields.
pub const FIGURES: &[&str] = &["requests/s", "CPU per request, µs"];

/// Looks whether `program` is here.
///
/// # Errors
///
/// What to do if it is not.
pub fn find(program: &str, package: &str) -> Result<(), String> {
    match Command::new(program).arg("--version").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!(
            "the load comes from `{program}`, which is not on the PATH; Debian has it in the package {package}"
        )),
        Err(error) => Err(format!("{program}: {error}")),
        Ok(_) => Ok(()),
    }
}

/// Keeps connections busy for some seconds, from one thread.
///
/// # Errors
///
/// If wrk failed, or the server refused, failed or answered with an error even once.
pub fn wrk(server: &Server, options: &Options) -> Result<Vec<f64>, String> {
    let mut command = Command::new("wrk");
    command
        .arg("-t1")
        .arg(format!("-c{}", options.connections))
        .arg(format!("-d{}s", options.seconds));
    place(server, options, command, |text| {
        if text.contains("Socket errors:") || text.contains("Non-2xx") {
            return None;
        }
        let mut lines = text.lines();
        let (count, _) = lines.find_map(|line| line.split_once(" requests in "))?;
        let rate = lines.find_map(|line| line.strip_prefix("Requests/sec:"))?;
        Some((number(count)?, number(rate)?))
    })
}

/// The same with HTTP/2, from its first byte on.
///
/// # Errors
///
/// As [`wrk`].
pub fn h2load(server: &Server, options: &Options) -> Result<Vec<f64>, String> {
    let mut command = Command::new("h2load");
    command
        .arg("-t1")
        .arg(format!("-c{}", options.connections))
        .arg(format!("-m{}", options.streams))
        .arg(format!("-D{}", options.seconds));
    place(server, options, command, |text| {
        let mut lines = text.lines();
        let finished = lines.find(|line| line.starts_with("finished in "))?;
        let rate = finished.split(", ").nth(1)?.strip_suffix(" req/s")?;
        let requests = lines.find_map(|line| line.strip_prefix("requests: "))?;
        let part = |name| {
            let mut parts = requests.split(", ");
            number(parts.find_map(|part| part.strip_suffix(name))?)
        };
        let is_flawless = part(" failed")? == 0.0 && part(" errored")? == 0.0;
        let statuses = lines.find_map(|line| line.strip_prefix("status codes: "))?;
        let (fine, others) = statuses.split_once(" 2xx, ")?;
        let has_others = others.split(", ").any(|part| !part.starts_with("0 "));
        (is_flawless && !has_others).then_some(())?;
        Some((number(fine)?, number(rate)?))
    })
}

/// Runs `command` against `server`, and has `read` find requests and requests per second in what it
/// prints.
fn place(
    server: &Server,
    options: &Options,
    mut command: Command,
    read: impl FnOnce(&str) -> Option<(f64, f64)>,
) -> Result<Vec<f64>, String> {
    let address = format!("{}{}", server.address, options.path.trim_start_matches('/'));
    command.arg(&address);
    bind_to(1)?;
    let before = server.cpu_ns()?;
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let cpu_us = (server.cpu_ns()? - before) / 1e3;
    let text = String::from_utf8_lossy(&output.stdout);
    let read = read(&text).filter(|_| output.status.success());
    match read {
        Some((requests, rate)) if requests > 0.0 => Ok(vec![rate, cpu_us / requests]),
        _ => Err(format!(
            "{command:?}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}
