//! The machine that a run was made on.

use std::fs;
use std::process::Command;

#[derive(Clone)]
pub struct Machine {
    pub kernel: String,
    pub processor: String,
    pub processors: usize,
    pub compiler: String,
    pub commit: String,
    pub command: String,
    /// The load averages before and after: what else was at work.
    pub load: [String; 2],
}

impl Machine {
    pub fn describe() -> Self {
        let processors = read("/proc/cpuinfo");
        let model = processors
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let folder = env!("CARGO_MANIFEST_DIR");
        Self {
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease")),
            processor: model
                .map_or("unknown", |(_, model)| model.trim())
                .to_owned(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            compiler: first_line("rustc", &["--version"]),
            commit: first_line("git", &["-C", folder, "describe", "--always", "--dirty"]),
            command: format!("timelog {}", arguments.join(" ")),
            load: [load(), String::new()],
        }
    }

    /// Notes the load once more.
    pub fn after(mut self) -> Self {
        self.load[1] = load();
        self
    }

    pub fn text(&self) -> String {
        let Self {
            kernel,
            processor,
            processors,
            compiler,
            commit,
            command,
            load: [before, after],
        } = self;
        format!(
            "{processor}, {processors} processors, {kernel}; {compiler}; commit {commit}; `{command}`; load averages \
             before {before}, after {after}"
        )
    }
}

fn load() -> String {
    let load = read("/proc/loadavg");
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
