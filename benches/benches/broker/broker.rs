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
}

impl Broker {
    /// All that can run here.
    pub fn all() -> Vec<Broker> {
        let mut all = vec![Broker::Wheel, Broker::Classic];
        all.extend(redis_version().map(|_| Broker::Redis));
        all
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Broker::Wheel => "`broker`, timing wheel",
            Broker::Classic => "`broker`, ordered map",
            Broker::Redis => "Redis streams",
        }
    }
}

/// The version of what is not ours.
pub fn versions() -> String {
    match redis_version() {
        Some(version) => format!("Redis {version}"),
        None => "without Redis".to_owned(),
    }
}

fn redis_version() -> Option<String> {
    let output = Command::new("redis-server")
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split(' ').find_map(|word| word.strip_prefix("v="))?;
    Some(version.to_owned())
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
            Broker::Redis => redis(),
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

fn redis() -> Result<Running, String> {
    // The port is free when Redis takes it, unless another program is quicker.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| error.to_string())?;
    let process = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args(["--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
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
