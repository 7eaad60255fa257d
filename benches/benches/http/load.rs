//! As many requests as a client can place from the second CPU.

use std::io;
use std::process::Command;

use benches::bench::figures;
use benches::figures::Measured;
use benches::process::{self, Server};

/// Looks whether `program` is here.
///
/// # Errors
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

/// Keeps 64 connections busy for some seconds, from one thread.
///
/// # Errors
/// If wrk failed, or the server refused, failed or answered with an error even once.
pub fn wrk(server: &Server, seconds: u32) -> Result<Vec<Measured>, String> {
    let mut command = Command::new("wrk");
    command.args(["-t1", "-c64", &format!("-d{seconds}s")]);
    place("http1", server, command, |text| {
        if text.contains("Socket errors:") || text.contains("Non-2xx") {
            return None;
        }
        let mut lines = text.lines();
        let (count, _) = lines.find_map(|line| line.split_once(" requests in "))?;
        let rate = lines.find_map(|line| line.strip_prefix("Requests/sec:"))?;
        Some((number(count)?, number(rate)?))
    })
}

/// The same with HTTP/2, from its first byte on, eight requests at a time on each connection.
///
/// # Errors
/// As [`wrk`].
pub fn h2load(server: &Server, seconds: u32) -> Result<Vec<Measured>, String> {
    let mut command = Command::new("h2load");
    command.args(["-t1", "-c64", "-m8", &format!("-D{seconds}")]);
    place("http2", server, command, |text| {
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

/// Runs `command` against `server`, and has `read` find requests and requests per second in what it prints.
fn place(
    case: &str,
    server: &Server,
    mut command: Command,
    read: impl FnOnce(&str) -> Option<(f64, f64)>,
) -> Result<Vec<Measured>, String> {
    let cpu = || server.cpu().map_err(|error| error.to_string());
    let before = cpu()?;
    let root = format!("{}/", server.address.trim_end_matches('/'));
    let text = process::run(command.arg(root), Some(1))?;
    let cpu_us = (cpu()? - before).as_secs_f64() * 1e6;
    match read(&text) {
        Some((requests, rate)) if requests > 0.0 => {
            Ok(figures(case, [("rate", rate), ("cpu", cpu_us / requests)]))
        }
        _ => Err(format!("{command:?}: {text}")),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}
