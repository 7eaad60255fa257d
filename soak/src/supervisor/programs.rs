//! The programs of a comparison: this one, and one of the other timer queue, built here or brought
//! along; or this one, with each driver.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use glommio::Driver;

use crate::options::Options;
use crate::print::print_line;
use crate::timer_queue::{IS_WHEEL, OTHERS, OURS, VERSION};

/// A program, and how it is run.
#[derive(Debug)]
pub(crate) struct Program {
    /// What tells it from the one that it is compared with.
    pub(crate) name: String,
    /// The driver that it is to use, if it is compared with another.
    pub(crate) driver: Option<Driver>,
    pub(crate) path: PathBuf,
}

/// What is to be run, in order: the wheel first, and io_uring.
pub(crate) fn all(options: &Options) -> Result<Vec<Program>, String> {
    let path = env::current_exe()
        .map_err(|error| format!("where this program lies is not known: {error}"))?;
    let other = match &options.compare {
        None => None,
        Some(Some(word)) if word.as_os_str() == "epoll" => {
            let with = |driver: Driver| Program {
                name: driver.to_string(),
                driver: Some(driver),
                path: path.clone(),
            };
            return Ok([Driver::IoUring, Driver::Epoll].map(with).into());
        }
        Some(Some(path)) => Some(path.clone()),
        Some(None) => Some(build()?),
    };
    let of_queue = |name: &str, path: PathBuf| Program {
        name: name.to_owned(),
        driver: None,
        path,
    };
    let mut programs = vec![of_queue(OURS, path)];
    if let Some(other) = other {
        check(&other)?;
        programs.push(of_queue(OTHERS, other));
        if !IS_WHEEL {
            programs.reverse();
        }
    }
    Ok(programs)
}

/// Whether the program is this soak with the other timer queue.
fn check(path: &Path) -> Result<(), String> {
    let named = format!("--compare={}", path.display());
    let mut program = Command::new(path);
    let asked = program.arg("--version").stdin(Stdio::null()).output();
    let asked = asked.map_err(|error| format!("{named}: {error}"))?;
    let said = String::from_utf8_lossy(&asked.stdout);
    let said = said.lines().next().unwrap_or_default();
    let expected = format!("soak {}", VERSION.replace(OURS, OTHERS));
    let what = match said {
        _ if said == expected => return Ok(()),
        _ if said == format!("soak {VERSION}") => format!("this is also the soak of the {OURS}"),
        _ => format!("instead of `{expected}` its --version says `{said}`"),
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
            let package = package.display();
            let what = format!("--compare: the source is not in {package} any more");
            return Err(format!("{what}; {}", advice()));
        }
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    print_line!("building the soak of the {OTHERS}");
    let built = Command::new(&cargo)
        .current_dir(workspace)
        .args(build_arguments())
        .args(["--target-dir", TARGET])
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("--compare: {}: {error}; {}", cargo.display(), advice()))?;
    if !built.success() {
        let what = format!("--compare: the other soak was not built ({built})");
        return Err(format!("{what}; {}", advice()));
    }
    let profile = ["release", "debug"][usize::from(cfg!(debug_assertions))];
    Ok(workspace.join(TARGET).join(profile).join("soak"))
}

fn build_arguments() -> Vec<&'static str> {
    let mut arguments = vec!["build", "-p", "soak"];
    if !cfg!(debug_assertions) {
        arguments.push("--release");
    }
    if IS_WHEEL {
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
