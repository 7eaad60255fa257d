//! The servers: what they are built from, and how they are started.

use std::path::{Path, PathBuf};
use std::process::Command;

use benches::server::{Executable, Server};

/// One server, in one configuration.
#[derive(Debug)]
pub struct Contestant {
    /// Its name in the table.
    pub name: &'static str,
    executable: Executable,
    arguments: &'static [&'static str],
}

/// All, in the order of the table: the yardstick last.
pub const fn all() -> &'static [Contestant] {
    const OURS: Executable = Executable {
        manifest: "../Cargo.toml",
        package: "examples",
        binary: "http_server",
        features: "timing-wheel",
    };
    const ARGUMENTS: &[&str] = &["--port", "0"];
    const TOKIO: Executable = Executable {
        manifest: "peers/Cargo.toml",
        package: "http-tokio",
        binary: "http-tokio",
        features: "",
    };
    &[
        Contestant {
            name: "ours",
            executable: OURS,
            arguments: ARGUMENTS,
        },
        Contestant {
            name: "classic",
            executable: Executable {
                features: "",
                ..OURS
            },
            arguments: ARGUMENTS,
        },
        // Ours have such timeouts.
        Contestant {
            name: "tokio+timeouts",
            executable: TOKIO,
            arguments: &["--io-timeout", "90s"],
        },
        Contestant {
            name: "tokio",
            executable: TOKIO,
            arguments: &[],
        },
    ]
}

impl Contestant {
    /// Builds it and returns the executable.
    pub fn build(&self, directory: &Path) -> Result<PathBuf, String> {
        self.executable
            .build(directory, &format!("http-{}", self.name), false)
    }

    /// Starts `binary`, with `arguments` besides its own, and waits until it listens. The address
    /// is that of its root, with a slash at the end.
    pub fn start(&self, binary: &Path, arguments: &[&str]) -> Result<Server, String> {
        let mut command = Command::new(binary);
        Server::start(command.args(self.arguments).args(arguments), 0)
            .map_err(|error| format!("{}: {error}", self.name))
    }
}
