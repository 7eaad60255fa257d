//! Programs under measurement: built by Cargo, started where they belong, ended when they hang.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use support::output::target_directory;

/// No case takes a tenth of it; a program that hangs is named, and the others go on.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server may take until it listens; an executor starts in milliseconds.
const START: Duration = Duration::from_secs(10);

/// The CPUs that this thread may use.
///
/// # Errors
/// If the machine has more than the set can name.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| allowed.is_set(cpu).unwrap_or(false))
        .collect())
}

/// Binds this thread, and what it starts from now on, to one CPU.
///
/// # Errors
/// If it may not run there.
pub fn bind_to(cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu)?;
    let bound = sched_setaffinity(Pid::from_raw(0), &cpus);
    bound.map_err(|error| io::Error::other(format!("this needs CPU {cpu}: {error}")))
}

/// Starts `command`, on `cpu` alone if one is given.
fn start(command: &mut Command, cpu: Option<usize>) -> io::Result<Child> {
    command.env("RUST_BACKTRACE", "0");
    let Some(cpu) = cpu else {
        return command.spawn();
    };
    // A child begins with the CPUs of the thread that starts it.
    let this_thread = Pid::from_raw(0);
    let own_cpus = sched_getaffinity(this_thread)?;
    bind_to(cpu)?;
    let child = command.spawn();
    sched_setaffinity(this_thread, &own_cpus)?;
    child
}

/// Runs a program to its end, on `cpu` alone if one is given, and takes what it printed.
///
/// # Errors
/// In words, when it could not be started, failed, or had to be killed.
pub fn run(command: &mut Command, cpu: Option<usize>) -> Result<String, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = start(command, cpu).map_err(|error| format!("{command:?}: {error}"))?;
    // What it prints, a panic included, fits the pipes, which need not be read while it runs. It hangs up by ending.
    // Looking now and then instead would take a CPU from those who are measured.
    let output = process.stdout.as_ref().expect("it is in a pipe");
    let has_ended = happens(output, PollFlags::empty(), PATIENCE);
    if !has_ended.map_err(|error| error.to_string())? {
        end(&mut process);
        return Err(format!("killed after {} s", PATIENCE.as_secs()));
    }
    let output = process.wait_with_output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(complaint(output.status, &output.stderr))
    }
}

/// Waits until `output` has one of `events` or hangs up, and says whether that came within `patience`.
fn happens(output: &ChildStdout, events: PollFlags, patience: Duration) -> io::Result<bool> {
    let timeout = PollTimeout::try_from(patience).expect("a minute fits");
    Ok(poll(&mut [PollFd::new(output.as_fd(), events)], timeout)? > 0)
}

/// Kills `process` if it still runs, and waits for its end.
fn end(process: &mut Child) {
    // The kill fails only if it has ended, and the wait only if it was waited for.
    let _ = process.kill();
    let _ = process.wait();
}

/// What became of a process, with the beginning of what it said about it.
fn complaint(status: ExitStatus, errors: &[u8]) -> String {
    let errors = String::from_utf8_lossy(errors);
    let lines = errors.lines().filter(|line| !line.is_empty());
    format!("{status}: {}", lines.take(2).collect::<Vec<_>>().join(" "))
}

/// An executable that Cargo builds.
#[derive(Clone, Copy, Debug)]
pub struct Executable<'a> {
    /// The manifest, relative to that of the benches or absolute.
    pub manifest: &'a str,
    /// The package in it.
    pub package: &'static str,
    /// The binary of the package.
    pub binary: &'static str,
    /// The features it is built with, separated by commas.
    pub features: &'static str,
}

impl Executable<'_> {
    /// Builds it with optimizations, and returns its path, below `target/peers`. With a `name` of its own, each of
    /// several builds of a package can be kept.
    ///
    /// # Errors
    /// In words, with the first errors of the compiler if it does not build.
    pub fn build(&self, name: &str) -> Result<PathBuf, String> {
        eprintln!("building {name} ({})", self.package);
        let directory = target_directory().join("peers");
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
    /// Starts a server on `cpu` whose first line is its address, perhaps behind `listening on`, and waits for that line.
    ///
    /// # Errors
    /// In words, if it does not start or prints nothing.
    pub fn start(command: &mut Command, cpu: usize) -> Result<Server, String> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Server::spawn(command, cpu)?;
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
        if !happens(output, PollFlags::POLLIN, START)? {
            return Err(io::Error::other("the server does not start within 10 s"));
        }
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        Ok(line)
    }

    /// Starts a server on `cpu` that was told to listen on `address`, and waits until it does. What it prints is
    /// discarded.
    ///
    /// # Errors
    /// In words, if it does not start or does not listen within ten seconds.
    pub fn start_at(
        command: &mut Command,
        cpu: usize,
        address: SocketAddr,
    ) -> Result<Server, String> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server::spawn(command, cpu)?;
        server.address = address.to_string();
        let begin = Instant::now();
        while begin.elapsed() < START {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            sleep(Duration::from_millis(20));
        }
        Err(format!("it does not listen on {address}"))
    }

    fn spawn(command: &mut Command, cpu: usize) -> Result<Server, String> {
        let process = start(command, Some(cpu));
        Ok(Server {
            process: process.map_err(|error| format!("{command:?} does not start: {error}"))?,
            address: String::new(),
        })
    }

    /// What it died of, if it did and its errors are in a pipe.
    pub fn complaint(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok()??;
        let mut errors = Vec::new();
        // What cannot be read is not told.
        let _ = self.process.stderr.as_mut()?.read_to_end(&mut errors);
        Some(format!("server: {}", complaint(status, &errors)))
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// CPU time of all of its threads so far.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn cpu(&self) -> io::Result<Duration> {
        let process = Pid::from_raw(self.id().cast_signed());
        Ok(clock_gettime(clock_getcpuclockid(process)?)?.into())
    }

    /// Its resident memory, counted page by page.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn resident_bytes(&self) -> io::Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.ok_or_else(|| io::Error::other("smaps_rollup has no Rss"))? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}
