//! Starting an example as a process of its own, and looking at it from outside.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use socket2::SockRef;

/// What has not happened by then never will.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where the example of this name was built to.
pub fn binary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_echo")).with_file_name(name)
}

/// What a program that ends by itself has printed, to both of its outputs.
pub fn run(name: &str, arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(binary(name)).args(arguments).output();
    let output = output.expect("it was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let is_success = output.status.success();
    (is_success, text(output.stdout), text(output.stderr))
}

/// An example that serves; killed when dropped.
pub struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts an example on any port.
    pub fn of(name: &str, arguments: &[&str]) -> Server {
        let path = binary(name);
        let arguments = [arguments, &["--port", "0"]].concat();
        Server::start(path.to_str().expect("text"), &arguments)
    }

    /// Starts `binary` and waits until it says where it listens.
    pub fn start(binary: &str, arguments: &[&str]) -> Server {
        let mut process = Command::new(binary)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        let mut output = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("stdout is text");
        let address = line.trim().strip_prefix("listening on ").and_then(|url| {
            url.trim_start_matches("http://")
                .trim_start_matches("https://")
                .trim_end_matches('/')
                .parse()
                .ok()
        });
        Server {
            process,
            output,
            address: address.unwrap_or_else(|| panic!("{binary} began with `{line}`")),
        }
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Its open descriptors, standard streams and all.
    pub fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.process.id());
        fs::read_dir(directory).expect("it runs").count()
    }

    /// Waits until it has `count` descriptors, as it does in the end: it may still be closing some.
    pub fn await_descriptors(&self, count: usize) {
        await_that(&format!("{count} descriptors"), || {
            self.descriptors() == count
        });
    }

    /// Presses Ctrl-C and returns what it printed until it ended, which has to be well.
    pub fn interrupt(self) -> String {
        self.press_ctrl_c();
        self.ended()
    }

    /// Presses Ctrl-C.
    pub fn press_ctrl_c(&self) {
        self.signal("INT");
    }

    /// Sends the signal of this name.
    pub fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.process.id());
        let sent = Command::new("sh").args(["-c", &command]).status();
        assert!(sent.expect("there is a shell").success());
    }

    /// Waits for its end.
    pub fn end(mut self) -> ExitStatus {
        self.process.wait().expect("it is our child")
    }

    /// Waits for its end, which has to be well, and returns what it has printed.
    pub fn ended(mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let status = self.process.wait().expect("it is our child");
        assert!(status.success(), "{status}: {rest}");
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended and been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection whose reads and writes fail rather than hang.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    limit(&stream);
    stream
}

pub fn limit(stream: &TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream.set_write_timeout(Some(PATIENCE)).expect("not zero");
}

/// Closes with a reset instead of an end.
pub fn reset(stream: TcpStream) {
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .expect("a TCP socket lingers");
}

/// Whether the other side has closed the connection, without waiting for more than a moment.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    let before = stream.read_timeout().expect("it has one");
    let moment = Some(Duration::from_millis(10));
    stream.set_read_timeout(moment).expect("not zero");
    let next = stream.read_exact(&mut [0]);
    stream.set_read_timeout(before).expect("not zero");
    next.is_err_and(|error| !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Waits until the other side closes the connection, which sends nothing before. A plain read with a time limit may be
/// interrupted by a signal, also where none is handled.
pub fn assert_closed(stream: &mut TcpStream) {
    let count = stream.read_to_end(&mut Vec::new());
    assert_eq!(count.expect("an end without a reset"), 0);
}

pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "still not: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes that do not repeat soon, so that a swapped or lost piece shows.
pub fn noise(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    bytes
}
