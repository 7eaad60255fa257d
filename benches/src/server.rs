//! Servers that are measured: built by Cargo, started on one CPU, killed when dropped.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;

use crate::{process, thread};

/// How long a server may take until it listens; an executor starts in milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries to connect.
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
    /// Builds it with optimizations, if wanted with one codegen unit and thin LTO, copies it to
    /// `directory` under `name`, and returns that path. With names of their own, several builds of
    /// one package can be kept.
    ///
    /// # Errors
    /// In words, with the first errors of the compiler if it does not build.
    pub fn build(
        &self,
        directory: &Path,
        name: &str,
        is_thin_lto: bool,
    ) -> Result<PathBuf, String> {
        eprintln!("building {name} ({})", self.package);
        let build_directory = directory.join("build");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.manifest);
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--release", "--package", self.package])
            .args(["--bin", self.binary, "--features", self.features])
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--target-dir")
            .arg(&build_directory);
        if is_thin_lto {
            cargo
                .env("CARGO_PROFILE_RELEASE_LTO", "thin")
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
        }
        let output = cargo
            .output()
            .map_err(|error| format!("{name} cannot be built: {error}"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let first: Vec<&str> = errors.lines().take(20).collect();
            return Err(format!("{}\n{name} does not build", first.join("\n")));
        }
        let path = directory.join(name);
        fs::copy(build_directory.join("release").join(self.binary), &path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

/// A process that listens; killed when dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    /// Where it listens, as it printed it.
    pub address: String,
}

impl Server {
    /// Starts a server on `cpu` whose first line is its address, perhaps behind `listening on`, and
    /// waits for that line.
    ///
    /// # Errors
    /// In words, if it does not start or prints nothing.
    pub fn start(command: &mut Command, cpu: usize) -> Result<Server, String> {
        let mut server = Server::spawn(command.stdout(Stdio::piped()), cpu)?;
        let line = server.first_line().map_err(|error| error.to_string())?;
        let line = line.trim();
        line.strip_prefix("listening on ")
            .unwrap_or(line)
            .clone_into(&mut server.address);
        if server.address.is_empty() {
            // It hung up without a word, so it is ending.
            let _ = server.process.wait();
            let complaint = server.complaint();
            return Err(complaint.unwrap_or_else(|| "the server says nothing".to_owned()));
        }
        Ok(server)
    }

    fn first_line(&mut self) -> io::Result<String> {
        let output = self.process.stdout.as_mut().expect("it is in a pipe");
        if !process::happens(output, PollFlags::POLLIN, PATIENCE)? {
            return Err(io::Error::other("the server does not start within 10 s"));
        }
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        Ok(line)
    }

    /// Starts a server on `cpu` that was told to listen on `address`, and waits until it does. What
    /// it prints is discarded.
    ///
    /// # Errors
    /// In words, if it does not start or does not listen within ten seconds.
    pub fn start_at(
        command: &mut Command,
        cpu: usize,
        address: SocketAddr,
    ) -> Result<Server, String> {
        let mut server = Server::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()), cpu)?;
        server.address = address.to_string();
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            sleep(PAUSE);
        }
        Err(format!("it does not listen on {address}"))
    }

    fn spawn(command: &mut Command, cpu: usize) -> Result<Server, String> {
        let process = process::start(command, Some(cpu));
        Ok(Server {
            process: process.map_err(|error| format!("it does not start: {error}"))?,
            address: String::new(),
        })
    }

    /// What it died of, if it did and its errors are in a pipe.
    pub fn complaint(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok()??;
        let mut errors = Vec::new();
        // What cannot be read is not told.
        let _ = self.process.stderr.as_mut()?.read_to_end(&mut errors);
        Some(format!("server: {}", process::complaint(status, &errors)))
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
        process::end(&mut self.process);
    }
}

/// Binds this thread, and what it starts from now on, to one CPU.
///
/// # Errors
/// In words, if it may not run there.
pub fn bind_to(cpu: usize) -> Result<(), String> {
    thread::bind_to(cpu).map_err(|error| format!("this needs CPU {cpu}: {error}"))
}
