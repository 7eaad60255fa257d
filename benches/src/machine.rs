//! The machine a report was made on.

use std::fs;
use std::process::Command;

/// Kernel, CPU, commit, in one line.
pub fn describe() -> String {
    let kernel: Vec<String> = ["ostype", "osrelease", "version"]
        .iter()
        .map(|name| read(&format!("/proc/sys/kernel/{name}")))
        .collect();
    let cpu_info = read("/proc/cpuinfo");
    let model = cpu_info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown CPU", |(_, model)| model.trim());
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{} {}; {model}, {cpus} CPUs; {}; commit {}",
        kernel.join(" "),
        std::env::consts::ARCH,
        first_line("rustc", &["--version"]),
        first_line(
            "git",
            &[
                "-C",
                env!("CARGO_MANIFEST_DIR"),
                "describe",
                "--always",
                "--dirty"
            ]
        ),
    )
}

/// The load averages over 1, 5 and 15 minutes: other load on the machine.
pub fn load() -> String {
    let load = read("/proc/loadavg");
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
