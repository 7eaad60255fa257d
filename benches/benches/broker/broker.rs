//! The brokers: how they are built and started.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use benches::thread;

/// A broker, in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broker {
    /// The example, with its timers in the timing wheel.
    Wheel,
    /// The example, with its timers in the ordered map.
    Classic,
    /// Redis' streams.
    Redis,
    /// NATS' JetStream.
    Nats,
}

impl Broker {
    /// All that can run here.
    pub fn all() -> Vec<Broker> {
        let mut all = vec![Broker::Wheel, Broker::Classic];
        let others = [Broker::Redis, Broker::Nats];
        all.extend(others.iter().filter(|other| other.version().is_some()));
        all
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Broker::Wheel => "`broker`, timing wheel",
            Broker::Classic => "`broker`, ordered map",
            Broker::Redis => "Redis streams",
            Broker::Nats => "NATS JetStream",
        }
    }

    /// That of a program that is not ours; none if it is not installed.
    fn version(self) -> Option<String> {
        let (program, mark) = match self {
            Broker::Wheel | Broker::Classic => return None,
            Broker::Redis => ("redis-server", "v="),
            Broker::Nats => ("nats-server", "v"),
        };
        let output = Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.split_whitespace();
        let version = words.find_map(|word| word.strip_prefix(mark))?;
        Some(version.to_owned())
    }
}

/// The versions of what is not ours.
pub fn versions() -> String {
    let version = |broker: Broker, name| match broker.version() {
        Some(version) => format!("{name} {version}"),
        None => format!("without {name}"),
    };
    let redis = version(Broker::Redis, "Redis");
    format!("{redis}, {}", version(Broker::Nats, "NATS"))
}

/// The executables of the examples.
#[derive(Debug)]
pub struct Programs {
    wheel: PathBuf,
    classic: PathBuf,
    /// The load generator.
    pub load: PathBuf,
}

impl Programs {
    /// Builds them.
    ///
    /// # Errors
    /// If one does not build.
    pub fn build(directory: &Path) -> Result<Programs, String> {
        Ok(Programs {
            classic: build(directory, "broker", "")?,
            wheel: build(directory, "broker", "timing-wheel")?,
            load: build(directory, "broker_load", "timing-wheel")?,
        })
    }
}

fn build(directory: &Path, binary: &str, features: &str) -> Result<PathBuf, String> {
    eprintln!("building {binary} {features}");
    let build_directory = directory.join("build");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--package", "examples"])
        .args(["--bin", binary, "--features", features, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&build_directory)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("{binary} does not build: {status}")),
        Err(error) => return Err(format!("{binary} cannot be built: {error}")),
    }
    // Two come from one package: each keeps its own copy.
    let path = directory.join(format!("{binary}-{features}"));
    fs::copy(build_directory.join("release").join(binary), &path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// A broker that runs, on the first CPU; killed when dropped.
#[derive(Debug)]
pub struct Running {
    process: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Running {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// If it does not start, or listens nowhere.
    pub fn start(programs: &Programs, broker: Broker) -> Result<Running, String> {
        thread::bind_to(0).map_err(|error| format!("this needs CPU 0: {error}"))?;
        let started = match broker {
            Broker::Wheel => example(&programs.wheel),
            Broker::Classic => example(&programs.classic),
            Broker::Redis => other("redis-server", |command, port| {
                command.args(["--bind", "127.0.0.1", "--port", port]).args([
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ]);
            }),
            // Streams in memory write nothing there.
            Broker::Nats => other("nats-server", |command, port| {
                command
                    .args(["--addr", "127.0.0.1", "--port", port, "--jetstream"])
                    .arg("--store_dir")
                    .arg(programs.load.with_file_name("nats"));
            }),
        };
        started.map_err(|error| format!("{} does not start: {error}", broker.name()))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn example(program: &Path) -> Result<Running, String> {
    let process = Command::new(program)
        .args(["--port", "0", "--waiting-max", "10000000"])
        // No message is to be delivered again, however busy the machine.
        .args(["--ack-deadline", "10m"])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut running = Running {
        process,
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let mut line = String::new();
    if let Some(output) = &mut running.process.stdout {
        BufReader::new(output)
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
    }
    let address = line.trim().strip_prefix("listening on ");
    running.address = address
        .and_then(|address| address.parse().ok())
        .ok_or_else(|| format!("it began with `{line}`"))?;
    Ok(running)
}

/// Starts a program that is given its port and does not say when it listens.
fn other(program: &str, configure: impl FnOnce(&mut Command, &str)) -> Result<Running, String> {
    // The port is free when the program takes it, unless another one is quicker.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    configure(&mut command, &address.port().to_string());
    let process = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let running = Running { process, address };
    for _ in 0..TRIES {
        if TcpStream::connect(address).is_ok() {
            return Ok(running);
        }
        sleep(PAUSE);
    }
    Err(format!("nothing listens on {address}"))
}

const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);
