//! The load: one run of wrk, on the second CPU.

use std::io;
use std::process::Command;

use crate::server::bind_to;

/// What wrk counted.
#[derive(Debug)]
pub struct Load {
    /// All requests that were answered.
    pub requests: f64,
    /// The same, in a second.
    pub requests_per_second: f64,
}

/// Looks whether wrk is here.
///
/// # Errors
///
/// What to do if it is not.
pub fn find() -> Result<(), String> {
    match Command::new("wrk").arg("--version").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(
            "the load comes from `wrk`, which is not on the PATH; Debian has it as a package"
                .into(),
        ),
        Err(error) => Err(format!("wrk: {error}")),
        Ok(_) => Ok(()),
    }
}

/// Keeps `connections` busy for some seconds, from one thread.
///
/// # Errors
///
/// If wrk failed, or the server refused, failed or answered with an error even once.
pub fn run(address: &str, connections: u32, seconds: u32) -> Result<Load, String> {
    bind_to(1)?;
    let output = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s")])
        .arg(address)
        .output()
        .map_err(|error| format!("wrk: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_flawless =
        output.status.success() && !text.contains("Socket errors:") && !text.contains("Non-2xx");
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let mut requests = None;
    let mut requests_per_second = None;
    for line in text.lines() {
        if let Some((count, _)) = line.split_once(" requests in ") {
            requests = number(count);
        }
        if let Some(rate) = line.strip_prefix("Requests/sec:") {
            requests_per_second = number(rate);
        }
    }
    match (requests, requests_per_second) {
        (Some(requests), Some(requests_per_second)) if is_flawless && requests > 0.0 => Ok(Load {
            requests,
            requests_per_second,
        }),
        _ => Err(format!(
            "wrk {address}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}
