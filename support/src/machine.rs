//! The machine that a report was made on, and the source and the compiler that the program was
//! made from.
//!
//! What the system does not tell is "unknown"; a report is worth having all the same.

use std::process::Command;
use std::thread::available_parallelism;

use procfs::{CpuInfo, Current, LoadAverage, Meminfo};

/// What a report says about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// The processor's name for itself, or else its architecture.
    pub processor: String,
    /// The processors that this thread may use, at least 1.
    pub processors: usize,
    /// The memory of the machine; zero if the system does not tell.
    pub memory_bytes: u64,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        let cpus = CpuInfo::current().ok();
        let model = cpus.and_then(|cpus| cpus.model_name(0).map(str::to_owned));
        Machine {
            release: first_line("uname", &["-r"]),
            processor: model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: processors(),
            memory_bytes: Meminfo::current().map_or(0, |memory| memory.mem_total),
        }
    }
}

/// Kernel, processor, compiler and commit in one line, as the pages of `docs/` have it. The commit is that of the working
/// tree, with `-dirty` if it has changes outside of `docs/`, to which the benches write.
pub fn describe() -> String {
    let kernel = first_line("uname", &["-srvm"]);
    let Machine {
        processor,
        processors,
        ..
    } = Machine::this();
    let compiler = first_line("rustc", &["--version"]);
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut commit = first_line("git", &["-C", repository, "describe", "--always"]);
    let status = ["-C", repository, "status", "--porcelain"];
    let changes = ["--untracked-files=no", "--", ".", ":!docs"];
    if commit != UNKNOWN && first_line("git", &[&status[..], &changes].concat()) != UNKNOWN {
        commit.push_str("-dirty");
    }
    format!("{kernel}; {processor}, {processors} CPUs; {compiler}; commit {commit}")
}

/// The load averages over 1, 5 and 15 minutes: what else was at work.
pub fn load() -> String {
    LoadAverage::current().map_or_else(
        |_| UNKNOWN.to_owned(),
        |load| format!("{:.2} {:.2} {:.2}", load.one, load.five, load.fifteen),
    )
}

/// The processors that this thread may use, at least 1.
pub fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

const UNKNOWN: &str = "unknown";

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text
        .ok()
        .and_then(|text| Some(text.lines().next()?.to_owned()));
    line.unwrap_or_else(|| UNKNOWN.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_line_and_what_is_not_there_is_unknown() {
        let line = describe();
        assert!(
            line.starts_with("Linux ") && line.contains(" CPUs; "),
            "{line}"
        );
        assert!(!line.contains('\n') && line.contains("; commit "), "{line}");
        assert_eq!(first_line("no such program", &[]), UNKNOWN);
        assert_eq!(first_line("true", &[]), UNKNOWN);
    }
}
