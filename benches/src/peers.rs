//! The crates of `benches/peers`: built, asked for their cases, and run, each case in a fresh process.
//!
//! The workloads are compiled once per crate from one source, in a workspace of its own with its own lock file. What a
//! row measures exactly, and how it is warmed up, is said at its case in `peers/workloads/src/cases`.
//!
//! Servers are put under the load of one program that is the same for all:
//!
//! ```text
//!   CPU 0   peer-<crate> serve-..   ◀── loopback ──▶   load   CPU 1 (or 0)
//! ```
//!
//! On one CPU the load is a batch process, which does not interrupt others when it is woken: the server finishes its
//! turn, and falls asleep, before the load sees the answer. Otherwise the load may ask again while the server is still
//! at it; whether it does is the mood of the scheduler, and halves the figures of some.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::{Bench, Column, Options, case};
use crate::figures::Measured;
use crate::process::{self, Executable, Server, allowed_cpus};

/// The published crate that ours takes the place of.
pub const PUBLISHED: &str = "glommio 0.9.0";

/// What the comparisons of runtimes have in common.
pub const BENCH: Bench = Bench {
    yardstick: PUBLISHED,
    ours: &["ours", "classic"],
    preface: "\"ours\" keeps its timers in the timing wheel, \"classic\" is the same crate without that feature.",
    ..Bench::DEFAULT
};

/// The column of our crate without io_uring.
const EPOLL: &str = "epoll";
/// The column of our crate as it is in the checkout of `--before`.
const BEFORE: &str = "before";

/// The crates: column, package, features of the package.
const ALL: [(&str, &str, &str); 13] = [
    ("ours", "peer-ours", "timing-wheel"),
    (BEFORE, "peer-ours", "timing-wheel"),
    (EPOLL, "peer-ours", "timing-wheel"),
    ("metrics", "peer-ours", "timing-wheel,metrics"),
    ("classic", "peer-ours", ""),
    (PUBLISHED, "peer-published", ""),
    ("ng", "peer-ng", ""),
    ("tokio", "peer-tokio", ""),
    ("monoio", "peer-monoio", ""),
    ("compio", "peer-compio", ""),
    ("bare", "peer-bare", ""),
    ("flume", "peer-flume", ""),
    ("async-channel", "peer-async-channel", ""),
];

/// The runtimes, to be compared unless the command line says otherwise.
pub const RUNTIMES: &[&str] = &["ours", "classic", PUBLISHED, "ng", "tokio", "monoio"];

/// Those of `chosen` that the command line asks for, or whatever it asks for; without the feature `peers` only what
/// needs no C compiler. Each has the cases that it lists itself. What does not build is left out.
///
/// # Errors
/// If none could be built.
pub fn columns(options: &Options, chosen: &[&str]) -> Result<Vec<Column>, String> {
    let columns = build_all(options, chosen)?.into_iter().map(|peer| {
        let cases = peer.cases.iter().map(|name| {
            let (peer, argument) = (peer.clone(), name.clone());
            let measure = move || process::run(peer.command().arg(&argument), None);
            case(name, move || Ok(parse(&measure()?)))
        });
        Column {
            name: peer.name.to_owned(),
            cases: cases.collect(),
        }
    });
    Ok(columns.collect())
}

/// A server under load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The name of the case. Its rows begin with it.
    pub case: &'static str,
    /// The case of the peers that serves.
    pub server: &'static str,
    /// What the program `load` is to do.
    pub arguments: &'static [&'static str],
    /// Where.
    pub cpus: Cpus,
}

/// Where server and load run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// Both on one CPU, in turns. No CPU goes to sleep and none is interrupted from afar: what remains is the path
    /// through runtime and kernel.
    One,
    /// Each on a CPU of its own, as it would be in earnest. In a virtual machine waking an idle CPU costs tens of
    /// microseconds, and that may be most of the figure.
    Two,
}

/// As [`columns`], with the servers of each of `loads`.
///
/// # Errors
/// If none could be built, or not the load.
pub fn columns_under_load(
    options: &Options,
    chosen: &[&str],
    loads: &'static [Load],
) -> Result<Vec<Column>, String> {
    if !options.bench {
        return Ok(Vec::new());
    }
    let generator = build("load", "load", "", options)?;
    let cpus = allowed_cpus().map_err(|error| error.to_string())?;
    let server_cpu = *cpus.first().ok_or("no CPU may be used")?;
    let load_cpu = cpus.get(1).copied();
    let columns = build_all(options, chosen)?.into_iter().map(|peer| {
        let loads = loads
            .iter()
            .filter(|load| peer.cases.iter().any(|it| it == load.server));
        let cases = loads.map(|load| {
            let (peer, generator) = (peer.clone(), generator.clone());
            // If there is but one, the load shares it with the server in all rows.
            let load_cpu = load_cpu.filter(|_| load.cpus == Cpus::Two);
            case(load.case, move || {
                let printed = measure(load, &peer, &generator, server_cpu, load_cpu)?;
                Ok(parse(&printed))
            })
        });
        Column {
            name: peer.name.to_owned(),
            cases: cases.collect(),
        }
    });
    Ok(columns.collect())
}

fn measure(
    load: &Load,
    peer: &Peer,
    generator: &Path,
    server_cpu: usize,
    load_cpu: Option<usize>,
) -> Result<String, String> {
    let mut server = Server::start(peer.command().arg(load.server), server_cpu)?;
    let mut command = match load_cpu {
        Some(_) => Command::new(generator),
        None => {
            // Of util-linux.
            let mut command = Command::new("chrt");
            command.args(["--batch", "0"]).arg(generator);
            command
        }
    };
    command
        .args([load.case, &server.address, &server.id().to_string()])
        .args(load.arguments);
    process::run(&mut command, load_cpu.or(Some(server_cpu)))
        .map_err(|complaint| complaint + "; " + &server.complaint().unwrap_or_default())
}

/// A crate that can run.
#[derive(Clone)]
struct Peer {
    name: &'static str,
    path: PathBuf,
    cases: Vec<String>,
}

impl Peer {
    /// It, still without arguments.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        if self.name == EPOLL {
            command.env("GLOMMIO_DRIVER", "epoll");
        }
        command
    }
}

fn build_all(options: &Options, chosen: &[&str]) -> Result<Vec<Peer>, String> {
    if !options.bench {
        return Ok(Vec::new());
    }
    let is_wanted = |name: &str| match &options.columns[..] {
        [] if cfg!(feature = "peers") => chosen.contains(&name),
        [] => chosen.contains(&name) && ["ours", "classic", "metrics", "bare"].contains(&name),
        _ => options.wants(name),
    };
    let peers = ALL.iter().filter(|(name, ..)| match *name {
        BEFORE => !options.before.is_empty(),
        name => is_wanted(name),
    });
    let built = peers.filter_map(|&(name, package, features)| {
        let built = build(name, package, features, options).and_then(|path| {
            let mut peer = Peer {
                name,
                path,
                cases: Vec::new(),
            };
            let list = process::run(peer.command().arg("--list"), None)?;
            peer.cases = list.lines().map(str::to_owned).collect();
            Ok(peer)
        });
        // The others can be compared all the same.
        built
            .inspect_err(|complaint| eprintln!("{complaint}\n{name} is left out"))
            .ok()
    });
    let built: Vec<Peer> = built.collect();
    if built.is_empty() {
        return Err("none of the crates could be built".to_owned());
    }
    Ok(built)
}

fn build(
    name: &str,
    package: &'static str,
    features: &'static str,
    options: &Options,
) -> Result<PathBuf, String> {
    let of_before = format!("{}/benches/peers/Cargo.toml", options.before);
    let executable = Executable {
        manifest: match name {
            BEFORE => &of_before,
            _ => "peers/Cargo.toml",
        },
        package,
        binary: package,
        features,
    };
    let name = name.split(' ').next().unwrap_or(name);
    executable.build(name)
}

/// Reads lines such as `{"row": "tcp-rtt", "value": 33.1}`, the only form there is.
fn parse(printed: &str) -> Vec<Measured> {
    let figure = |line: &str| {
        let (row, value) = line
            .strip_prefix("{\"row\": \"")?
            .split_once("\", \"value\": ")?;
        Some(Measured {
            row: row.to_owned(),
            value: value.strip_suffix('}')?.parse().ok()?,
            is_astray: false,
        })
    };
    printed.lines().filter_map(figure).collect()
}
