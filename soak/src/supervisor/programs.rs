//! The programs of a comparison: this one, and one of the other timer queue, built here or brought
//! along; or this one, with each driver.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use glommio::Driver;

use crate::options::Compared;
use crate::print::print_line;
use crate::timer_queue::{TimerQueue, VERSION};

/// A program, its timer queue, and how it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    timer_queue: TimerQueue,
    /// The driver that it is to use, if it is compared with another.
    pub(crate) driver: Option<Driver>,
    pub(crate) path: PathBuf,
}

impl Program {
    pub(crate) fn ours() -> Result<Self, String> {
        let path = env::current_exe()
            .map_err(|error| format!("where this program lies is not known: {error}"))?;
        Ok(Program {
            timer_queue: TimerQueue::OURS,
            driver: None,
            path,
        })
    }

    /// What tells it from the one that it is compared with.
    pub(crate) fn name(&self) -> String {
        match self.driver {
            Some(driver) => driver.to_string(),
            None => self.timer_queue.label().to_owned(),
        }
    }

    fn other(path: PathBuf) -> Result<Self, String> {
        check(&path)?;
        Ok(Program {
            timer_queue: TimerQueue::OURS.other(),
            driver: None,
            path,
        })
    }
}

/// What is to be compared, in the order in which it is run: the wheel first, and io_uring.
pub(crate) fn both(with: &Compared) -> Result<[Program; 2], String> {
    let ours = Program::ours()?;
    let other = match with {
        Compared::Drivers => {
            return Ok([Driver::IoUring, Driver::Epoll].map(|driver| Program {
                driver: Some(driver),
                ..ours.clone()
            }));
        }
        Compared::Built => build()?,
        Compared::With(path) => path.clone(),
    };
    let mut both = [ours, Program::other(other)?];
    both.sort_by_key(|program| program.timer_queue != TimerQueue::Wheel);
    Ok(both)
}

/// Whether the program is this soak with the other timer queue.
fn check(path: &Path) -> Result<(), String> {
    let named = format!("--compare={}", path.display());
    let asked = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{named}: {error}"))?;
    let said = String::from_utf8_lossy(&asked.stdout);
    let expected = format!("soak {}", TimerQueue::OURS.other().version());
    if said.trim() == expected {
        return Ok(());
    }
    let what = if said.trim() == format!("soak {VERSION}") {
        format!("this is also the soak of the {}", TimerQueue::OURS.label())
    } else {
        let line = said.lines().next().unwrap_or_default();
        format!("instead of `{expected}` its --version says `{line}`")
    };
    Err(format!("{named}: {what}; {}", advice()))
}

/// Has cargo build the other program, beside this one's target directory, so that the two do not
/// rebuild each other: where it lies.
fn build() -> Result<PathBuf, String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = match package.parent() {
        Some(workspace) if package.join("Cargo.toml").is_file() => workspace,
        _ => {
            return Err(format!(
                "--compare: the source is not in {} any more; give the other program: {}",
                package.display(),
                advice()
            ));
        }
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    print_line!(
        "building the soak of the {}",
        TimerQueue::OURS.other().label()
    );
    let built = Command::new(&cargo)
        .current_dir(workspace)
        .args(build_arguments())
        .arg("--target-dir")
        .arg(workspace.join(TARGET))
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("--compare: {}: {error}; {}", cargo.display(), advice()))?;
    if !built.success() {
        return Err(format!(
            "--compare: the other soak was not built ({built}); {}",
            advice()
        ));
    }
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    Ok(workspace.join(TARGET).join(profile).join("soak"))
}

fn build_arguments() -> Vec<&'static str> {
    let mut arguments = vec!["build", "-p", "soak"];
    if !cfg!(debug_assertions) {
        arguments.push("--release");
    }
    if TimerQueue::OURS == TimerQueue::Wheel {
        arguments.push("--no-default-features");
    }
    if cfg!(feature = "quic") {
        arguments.extend(["--features", "quic"]);
    }
    arguments
}

/// What to do by hand.
fn advice() -> String {
    format!(
        "build the other one with `cargo {} --target-dir {TARGET}` and give its path, --compare=PATH",
        build_arguments().join(" ")
    )
}

/// Under the workspace.
const TARGET: &str = "target/soak-other";
