//! One run of the load generator, on the second CPU.

use std::process::Command;

use crate::broker::{Broker, Programs};

/// What it reported.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Messages that were published, delivered and acknowledged.
    pub messages_per_second: f64,
    /// Processor time of the broker.
    pub cpu_s_per_million: f64,
    /// The most that the broker had resident.
    pub memory_mib: f64,
    /// Half of the acks were answered so soon.
    pub ack_p50_us: f64,
    /// 99 in 100 were.
    pub ack_p99_us: f64,
}

/// Starts `broker` and puts it under load.
///
/// # Errors
/// If one of them fails, or a message is lost or delivered twice.
pub fn run(
    programs: &Programs,
    broker: Broker,
    in_flight: u64,
    messages: u64,
    rate: Option<u64>,
) -> Result<Sample, String> {
    let server = programs.start(broker)?;
    let mut command = Command::new(&programs.load);
    command
        .arg(&server.address)
        .args(["--in-flight", &in_flight.to_string()])
        .args(["--messages", &messages.to_string()])
        .args(["--process", &server.id().to_string(), "--cpu", "1"]);
    if let Some(rate) = rate {
        command.args(["--rate", &rate.to_string()]);
    }
    command.args(match broker {
        Broker::Wheel | Broker::Classic => None,
        Broker::Redis => Some("--redis"),
        Broker::Nats => Some("--nats"),
    });
    let output = command
        .output()
        .map_err(|error| format!("the load generator does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match sample(&text) {
        Some(sample) if output.status.success() => Ok(sample),
        _ => Err(format!(
            "{} with {in_flight} in flight: {text}{}",
            broker.name(),
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn sample(text: &str) -> Option<Sample> {
    let acks = text.lines().find_map(|line| line.strip_prefix("ack "))?;
    let mut acks = acks.split_whitespace().map(str::parse);
    Some(Sample {
        messages_per_second: before(text, " messages/s")?,
        cpu_s_per_million: before(text, " s of CPU per million")?,
        memory_mib: before(text, " MiB at most")?,
        ack_p50_us: acks.next()?.ok()?,
        ack_p99_us: acks.next()?.ok()?,
    })
}

/// The number in front of `unit`.
fn before(text: &str, unit: &str) -> Option<f64> {
    let (front, _) = text.split_once(unit)?;
    front.rsplit(' ').next()?.parse().ok()
}
