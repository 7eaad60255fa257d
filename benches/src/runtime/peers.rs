//! The crates under comparison, and how their binaries come to be.

use std::path::PathBuf;
use std::process::Command;

use crate::process;
use crate::server::Executable;

/// One crate, in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The word for it on the command line.
    pub name: &'static str,
    /// Its package in the workspace `peers`.
    package: &'static str,
    /// The features of that package to turn on.
    features: &'static str,
    /// Whether it is measured against the aims.
    pub is_ours: bool,
}

/// The published crate that ours takes the place of.
pub const PUBLISHED: &str = "glommio";

/// Ours, with the timing wheel.
pub const OURS: &str = "ours";

/// Ours with the timing wheel and the feature `metrics`.
pub const METRICS: &str = "metrics";

const ALL: [Peer; 11] = [
    peer(OURS, "peer-ours", "timing-wheel", true),
    peer(METRICS, "peer-ours", "timing-wheel,metrics", true),
    peer("classic", "peer-ours", "", true),
    peer(PUBLISHED, "peer-published", "", false),
    peer("ng", "peer-ng", "", false),
    peer("tokio", "peer-tokio", "", false),
    peer("monoio", "peer-monoio", "", false),
    peer("compio", "peer-compio", "", false),
    peer("bare", "peer-bare", "", false),
    peer("flume", "peer-flume", "", false),
    peer("async-channel", "peer-async-channel", "", false),
];

const fn peer(
    name: &'static str,
    package: &'static str,
    features: &'static str,
    is_ours: bool,
) -> Peer {
    Peer {
        name,
        package,
        features,
        is_ours,
    }
}

/// The runtimes, if the feature `peers` of this package is on, or our own alone.
pub const DEFAULT: &str = if cfg!(feature = "peers") {
    "ours,classic,glommio,ng,tokio,monoio"
} else {
    "ours,classic"
};

impl Peer {
    /// The word over its column.
    pub fn title(&self) -> &'static str {
        match self.name {
            PUBLISHED => "glommio 0.9.0",
            name => name,
        }
    }

    /// The peers of these names, in the order of the columns.
    ///
    /// # Errors
    /// The first name that no peer has.
    pub fn chosen(names: &[String]) -> Result<Vec<Peer>, &str> {
        match names
            .iter()
            .find(|name| ALL.iter().all(|peer| peer.name != *name))
        {
            Some(unknown) => Err(unknown),
            None => Ok(ALL
                .into_iter()
                .filter(|peer| names.iter().any(|name| name == peer.name))
                .collect()),
        }
    }
}

/// A peer that can run.
#[derive(Debug)]
pub struct Binary {
    /// Which one.
    pub peer: Peer,
    /// The executable.
    pub path: PathBuf,
    /// The cases it has.
    cases: Vec<String>,
}

impl Binary {
    /// Whether `case` is one of its cases.
    pub fn has(&self, case: &str) -> bool {
        self.cases.iter().any(|known| known == case)
    }
}

/// Builds `peer` and asks it for its cases. `None`, with the reason on standard error, when that
/// fails: the others can be compared all the same.
pub fn build(peer: Peer, builds: &Builds) -> Option<Binary> {
    match build_and_list(peer, builds) {
        Ok(binary) => Some(binary),
        Err(complaint) => {
            eprintln!("{complaint}\n{} is left out", peer.name);
            None
        }
    }
}

fn build_and_list(peer: Peer, builds: &Builds) -> Result<Binary, String> {
    let path = builds.package(peer.package, peer.features, peer.name)?;
    let list = process::run(Command::new(&path).arg("--list"), None)
        .map_err(|complaint| format!("does not start: {complaint}"))?;
    Ok(Binary {
        peer,
        path,
        cases: list.lines().map(str::to_owned).collect(),
    })
}

/// Where the workspace `peers` is built, and how.
#[derive(Debug)]
pub struct Builds {
    /// Binaries go here, what they are made from into a folder below.
    pub directory: PathBuf,
    /// One codegen unit and thin LTO, instead of what a release build does by default.
    pub is_thin_lto: bool,
}

impl Builds {
    /// Builds `package` and says where its executable is, which is called `name`.
    ///
    /// # Errors
    /// In words, if it does not build.
    pub fn package(
        &self,
        package: &'static str,
        features: &'static str,
        name: &str,
    ) -> Result<PathBuf, String> {
        let executable = Executable {
            manifest: "peers/Cargo.toml",
            package,
            binary: package,
            features,
        };
        executable.build(&self.directory, name, self.is_thin_lto)
    }
}
