//! The servers: how they are built, started and supervised.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use benches::thread;

/// One server, in one configuration.
#[derive(Debug)]
pub struct Contestant {
    /// Its name in the table.
    pub name: &'static str,
    manifest: &'static str,
    package: &'static str,
    binary: &'static str,
    features: &'static str,
    arguments: &'static [&'static str],
}

/// All, in the order of the table: the yardstick last.
pub const fn all() -> &'static [Contestant] {
    const OURS: Contestant = Contestant {
        name: "ours",
        manifest: "../Cargo.toml",
        package: "examples",
        binary: "http_server",
        features: "timing-wheel",
        arguments: &["--port", "0"],
    };
    &[
        OURS,
        Contestant {
            name: "classic",
            features: "",
            ..OURS
        },
        Contestant {
            name: "tokio",
            manifest: "peers/Cargo.toml",
            package: "http-tokio",
            binary: "http-tokio",
            features: "",
            arguments: &[],
        },
    ]
}

impl Contestant {
    /// Builds it and returns the executable.
    pub fn build(&self, directory: &Path) -> Result<PathBuf, String> {
        eprintln!("building {} ({})", self.name, self.package);
        let build_directory = directory.join("build");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.manifest);
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--package", self.package])
            .args(["--bin", self.binary, "--features", self.features])
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--target-dir")
            .arg(&build_directory)
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{} does not build: {status}", self.name)),
            Err(error) => return Err(format!("{} cannot be built: {error}", self.name)),
        }
        // Two come from one package: each keeps its own copy.
        let path = directory.join(format!("http-{}", self.name));
        fs::copy(build_directory.join("release").join(self.binary), &path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

/// A server that runs, on the first CPU.
#[derive(Debug)]
pub struct Server {
    process: Child,
    /// Its root, with a slash at the end.
    pub address: String,
}

impl Server {
    /// Starts it, with `arguments` besides its own, and waits until it listens.
    pub fn start(
        contestant: &Contestant,
        binary: &Path,
        arguments: &[&str],
    ) -> Result<Server, String> {
        bind_to(0)?;
        let process = Command::new(binary)
            .args(contestant.arguments)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", contestant.name))?;
        let mut server = Server {
            process,
            address: String::new(),
        };
        let mut line = String::new();
        if let Some(output) = &mut server.process.stdout {
            BufReader::new(output)
                .read_line(&mut line)
                .map_err(|error| format!("{}: {error}", contestant.name))?;
        }
        match line.trim().strip_prefix("listening on ") {
            Some(address) => server.address = address.to_owned(),
            None => return Err(format!("{} does not listen", contestant.name)),
        }
        Ok(server)
    }

    /// CPU time of all of its threads so far, in nanoseconds.
    pub fn cpu_ns(&self) -> Result<f64, String> {
        let directory = format!("/proc/{}/task", self.process.id());
        let read = || {
            let mut total_ns = 0.0;
            for thread in fs::read_dir(&directory)? {
                let text = fs::read_to_string(thread?.path().join("schedstat"))?;
                let first = text.split(' ').next().and_then(|word| word.parse().ok());
                total_ns += first.unwrap_or(0.0);
            }
            Ok(total_ns)
        };
        read().map_err(|error: std::io::Error| format!("{directory}: {error}"))
    }

    /// Its memory that is resident, counted page by page.
    pub fn resident_bytes(&self) -> Result<f64, String> {
        let file = format!("/proc/{}/smaps_rollup", self.process.id());
        let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.ok_or_else(|| format!("{file} has no Rss"))? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Binds this thread, and what it starts from now on, to one CPU.
pub fn bind_to(cpu: usize) -> Result<(), String> {
    thread::bind_to(cpu).map_err(|error| format!("this needs CPU {cpu}: {error}"))
}
