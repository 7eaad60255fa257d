//! The crates under comparison, and how their binaries come to be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process;

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
    Peer {
        name: OURS,
        package: "peer-ours",
        features: "timing-wheel",
        is_ours: true,
    },
    Peer {
        name: METRICS,
        package: "peer-ours",
        features: "timing-wheel,metrics",
        is_ours: true,
    },
    Peer {
        name: "classic",
        package: "peer-ours",
        features: "",
        is_ours: true,
    },
    Peer {
        name: PUBLISHED,
        package: "peer-published",
        features: "",
        is_ours: false,
    },
    Peer {
        name: "ng",
        package: "peer-ng",
        features: "",
        is_ours: false,
    },
    Peer {
        name: "tokio",
        package: "peer-tokio",
        features: "",
        is_ours: false,
    },
    Peer {
        name: "monoio",
        package: "peer-monoio",
        features: "",
        is_ours: false,
    },
    Peer {
        name: "compio",
        package: "peer-compio",
        features: "",
        is_ours: false,
    },
    Peer {
        name: "bare",
        package: "peer-bare",
        features: "",
        is_ours: false,
    },
    Peer {
        name: "flume",
        package: "peer-flume",
        features: "",
        is_ours: false,
    },
    Peer {
        name: "async-channel",
        package: "peer-async-channel",
        features: "",
        is_ours: false,
    },
];

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
    eprintln!("building {} ({})", peer.name, peer.package);
    match build_and_list(peer, builds) {
        Ok(binary) => Some(binary),
        Err(complaint) => {
            eprintln!("{complaint}\n{} is left out", peer.name);
            None
        }
    }
}

fn build_and_list(peer: Peer, builds: &Builds) -> Result<Binary, String> {
    let built = builds.package(peer.package, peer.features)?;
    // Two peers may come from one package: each keeps its own copy.
    let path = builds.directory.join(peer.name);
    fs::copy(built, &path).map_err(|error| format!("cannot be copied: {error}"))?;
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
    /// Those below `directory`.
    pub fn new(directory: &Path, is_thin_lto: bool) -> Self {
        let directory = match is_thin_lto {
            true => directory.join("thin-lto"),
            false => directory.to_owned(),
        };
        Builds {
            directory,
            is_thin_lto,
        }
    }

    /// Builds `package` and says where its executable is.
    ///
    /// # Errors
    /// With the first errors of the compiler.
    pub fn package(&self, package: &str, features: &str) -> Result<PathBuf, String> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/Cargo.toml");
        let build_directory = self.directory.join("build");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--release", "--package", package])
            .args(["--features", features])
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--target-dir")
            .arg(&build_directory);
        if self.is_thin_lto {
            cargo
                .env("CARGO_PROFILE_RELEASE_LTO", "thin")
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
        }
        let output = cargo
            .output()
            .map_err(|error| format!("{package} cannot be built: {error}"))?;
        if output.status.success() {
            return Ok(build_directory.join("release").join(package));
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let first: Vec<&str> = errors.lines().take(20).collect();
        Err(format!("{}\n{package} does not build", first.join("\n")))
    }
}
