//! The machine that a report was made on, and the source and the compiler that the program was
//! made from.
//!
//! What the system does not tell is "unknown"; a report is worth having all the same.

use std::fmt;
use std::process::Command;
use std::thread::available_parallelism;

use nix::sys::utsname::uname;
use procfs::{CpuInfo, Current, LoadAverage, Meminfo};

/// What a report says about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's name: `Linux`.
    pub system: String,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// The kernel's build, as `uname -v` prints it.
    pub version: String,
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
        let kernel = uname().ok();
        let text = |of: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
            let text = kernel.as_ref().map(|kernel| of(kernel).to_string_lossy());
            text.map_or_else(unknown, |text| text.into_owned())
        };
        let cpus = CpuInfo::current().ok();
        let model = cpus.and_then(|cpus| cpus.model_name(0).map(str::to_owned));
        Machine {
            system: text(|kernel| kernel.sysname()),
            release: text(|kernel| kernel.release()),
            version: text(|kernel| kernel.version()),
            processor: model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: processors(),
            memory_bytes: Meminfo::current().map_or(0, |memory| memory.mem_total),
        }
    }
}

/// Kernel and processor, in one line.
impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine {
            system,
            release,
            version,
            processor,
            processors,
            ..
        } = self;
        let architecture = std::env::consts::ARCH;
        write!(
            formatter,
            "{system} {release} {version} {architecture}; {processor}, {processors} CPUs"
        )
    }
}

/// What a program was made from, as far as it can be told from where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// What `rustc --version` prints.
    pub compiler: String,
    /// The commit of the working tree, with `-dirty` if it has changes outside of `docs/`.
    pub commit: String,
}

impl Build {
    /// The compiler on the path, and the state of this repository now. Runs both programs.
    pub fn here() -> Self {
        let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut commit = first_line("git", &["-C", repository, "describe", "--always"]);
        // The pages of `docs/` are left out: the benches write to them, and nothing is built from
        // them.
        let changes = [
            "-C",
            repository,
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            ".",
            ":!docs",
        ];
        let is_known = commit != unknown();
        if is_known && first_line("git", &changes) != unknown() {
            commit.push_str("-dirty");
        }
        Build {
            compiler: first_line("rustc", &["--version"]),
            commit,
        }
    }
}

/// Compiler and commit, in one line.
impl fmt::Display for Build {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Build { compiler, commit } = self;
        write!(formatter, "{compiler}; commit {commit}")
    }
}

/// Machine and build in one line, as the pages of `docs/` have it.
pub fn describe() -> String {
    format!("{}; {}", Machine::this(), Build::here())
}

/// The load averages over 1, 5 and 15 minutes: what else was at work.
pub fn load() -> String {
    LoadAverage::current().map_or_else(
        |_| unknown(),
        |load| format!("{:.2} {:.2} {:.2}", load.one, load.five, load.fifteen),
    )
}

/// The processors that this thread may use, at least 1.
pub fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text
        .ok()
        .and_then(|text| Some(text.lines().next()?.to_owned()));
    line.unwrap_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::this();
        assert_eq!(machine.system, "Linux");
        assert!(
            machine
                .release
                .starts_with(|digit: char| digit.is_ascii_digit())
        );
        assert!(!machine.processor.is_empty() && machine.processors > 0);
        assert!(machine.memory_bytes > 1 << 20);
        let line = machine.to_string();
        assert!(
            line.starts_with("Linux ") && line.ends_with(" CPUs"),
            "{line}"
        );
    }

    #[test]
    fn a_description_is_one_line() {
        let line = describe();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains("; commit "), "{line}");
    }

    #[test]
    fn the_load_is_three_averages() {
        let load = load();
        let averages: Result<Vec<f32>, _> = load.split(' ').map(str::parse).collect();
        assert!(averages.is_ok_and(|averages| averages.len() == 3), "{load}");
    }

    #[test]
    fn a_program_that_is_not_there_leaves_its_line_unknown() {
        assert_eq!(first_line("no such program", &[]), "unknown");
        assert_eq!(first_line("true", &[]), "unknown");
    }
}
