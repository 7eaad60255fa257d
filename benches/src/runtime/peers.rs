//! The crates under comparison, and how their binaries come to be.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One crate, in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The word for it on the command line and over its column.
    pub name: &'static str,
    /// Its package in the workspace `peers`.
    package: &'static str,
    /// The features of that package to turn on.
    features: &'static str,
    /// Whether it is measured against the aims.
    pub is_ours: bool,
}

/// The crate whose figures are the unit of all ratios.
pub const YARDSTICK: &str = "glommio";

const ALL: [Peer; 6] = [
    Peer {
        name: "ours",
        package: "peer-ours",
        features: "timing-wheel",
        is_ours: true,
    },
    Peer {
        name: "classic",
        package: "peer-ours",
        features: "",
        is_ours: true,
    },
    Peer {
        name: YARDSTICK,
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
];

impl Peer {
    /// The peers of these names, in the order of the columns.
    ///
    /// # Errors
    /// The first name nobody bears.
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
    pub cases: Vec<String>,
}

/// Builds `peer` and asks it for its cases. `None`, with the reason on standard error, when that fails: the
/// others can be compared all the same.
pub fn build(peer: Peer, directory: &Path) -> Option<Binary> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/Cargo.toml");
    let build_directory = directory.join("build");
    eprintln!("building {} ({})", peer.name, peer.package);
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--package", peer.package])
        .args(["--features", peer.features])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(&build_directory)
        .output();
    match cargo {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let first: Vec<&str> = errors.lines().take(20).collect();
            eprintln!(
                "{}\n{} does not build and is left out",
                first.join("\n"),
                peer.name
            );
            return None;
        }
        Err(error) => {
            eprintln!("{} cannot be built ({error}) and is left out", peer.name);
            return None;
        }
    }
    // Two peers may come from one package: each keeps its own copy.
    let path = directory.join(peer.name);
    let copied = std::fs::copy(build_directory.join("release").join(peer.package), &path);
    let listed = copied.and_then(|_| Command::new(&path).arg("--list").output());
    match listed {
        Ok(output) if output.status.success() => {
            let list = String::from_utf8_lossy(&output.stdout);
            Some(Binary {
                peer,
                path,
                cases: list.lines().map(str::to_owned).collect(),
            })
        }
        Ok(output) => {
            eprintln!(
                "{} does not start ({}) and is left out",
                peer.name, output.status
            );
            None
        }
        Err(error) => {
            eprintln!("{} does not start ({error}) and is left out", peer.name);
            None
        }
    }
}
