//! Servers that are measured: built by Cargo, started on the first CPU, killed when dropped.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::thread;

/// How long a server may take until it listens: so many tries, with a pause after each.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// An executable that Cargo builds.
#[derive(Clone, Copy, Debug)]
pub struct Executable {
    /// The manifest, relative to that of the benches.
    pub manifest: &'static str,
    /// The package in it.
    pub package: &'static str,
    /// The binary of the package.
    pub binary: &'static str,
    /// The features it is built with, separated by commas.
    pub features: &'static str,
}

impl Executable {
    /// Builds it with optimizations, copies it to `directory` under `name`, and returns that path.
    /// With names of their own, several builds of one package can be kept.
    ///
    /// # Errors
    /// In words, if it does not build or cannot be copied.
    pub fn build(&self, directory: &Path, name: &str) -> Result<PathBuf, String> {
        eprintln!("building {name}");
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
            Ok(status) => return Err(format!("{name} does not build: {status}")),
            Err(error) => return Err(format!("{name} cannot be built: {error}")),
        }
        let path = directory.join(name);
        fs::copy(build_directory.join("release").join(self.binary), &path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

/// A process that listens, on the first CPU; killed when dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    /// Where it listens, as it printed it.
    pub address: String,
}

impl Server {
    /// Starts a server whose first line is `listening on` and its address, and waits for that line.
    /// Binds this thread to the first CPU, too.
    ///
    /// # Errors
    /// In words, if it does not start or prints something else.
    pub fn start(command: &mut Command) -> Result<Server, String> {
        let mut server = Server::spawn(command.stdout(Stdio::piped()))?;
        let mut line = String::new();
        if let Some(output) = &mut server.process.stdout {
            BufReader::new(output)
                .read_line(&mut line)
                .map_err(|error| format!("its output cannot be read: {error}"))?;
        }
        match line.trim().strip_prefix("listening on ") {
            Some(address) => server.address = address.to_owned(),
            None => {
                return Err(format!(
                    "it does not listen: its first line is `{}`",
                    line.trim()
                ));
            }
        }
        Ok(server)
    }

    /// Starts a server that was told to listen on `address`, and waits until it does. What it
    /// prints is discarded. Binds this thread to the first CPU, too.
    ///
    /// # Errors
    /// In words, if it does not start or does not listen within ten seconds.
    pub fn start_at(command: &mut Command, address: SocketAddr) -> Result<Server, String> {
        let mut server = Server::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
        server.address = address.to_string();
        for _ in 0..TRIES {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            sleep(PAUSE);
        }
        Err(format!("it does not listen on {address}"))
    }

    fn spawn(command: &mut Command) -> Result<Server, String> {
        bind_to(0)?;
        let process = command.spawn();
        Ok(Server {
            process: process.map_err(|error| format!("it does not start: {error}"))?,
            address: String::new(),
        })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// CPU time of all of its threads so far, in nanoseconds.
    ///
    /// # Errors
    /// In words, if the process has ended.
    pub fn cpu_ns(&self) -> Result<f64, String> {
        let directory = format!("/proc/{}/task", self.id());
        let read = || {
            let mut total_ns = 0.0;
            for thread in fs::read_dir(&directory)? {
                let text = fs::read_to_string(thread?.path().join("schedstat"))?;
                let first = text.split(' ').next().and_then(|word| word.parse().ok());
                total_ns += first.unwrap_or(0.0);
            }
            Ok(total_ns)
        };
        read().map_err(|error: io::Error| format!("{directory}: {error}"))
    }

    /// Its resident memory, counted page by page.
    ///
    /// # Errors
    /// In words, if the process has ended.
    pub fn resident_bytes(&self) -> Result<f64, String> {
        let file = format!("/proc/{}/smaps_rollup", self.id());
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
///
/// # Errors
/// In words, if it may not run there.
pub fn bind_to(cpu: usize) -> Result<(), String> {
    thread::bind_to(cpu).map_err(|error| format!("this needs CPU {cpu}: {error}"))
}
