//! The load generator of brokers, with the brokers that are there.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const BROKER_LOAD: &str = env!("CARGO_BIN_EXE_broker_load");
const PATIENCE: Duration = Duration::from_secs(60);

/// Each of `counts` is part of what was printed.
fn assert_counts(printed: &str, counts: &[&str]) {
    for count in counts {
        assert!(printed.contains(count), "no `{count}`: {printed}");
    }
}

/// Many messages from one process to another by way of a third, with acks that are held back. The
/// example is there if it was built.
#[test]
fn the_example_delivers_every_message_once() {
    let broker = Path::new(BROKER_LOAD).with_file_name("broker");
    let started = Command::new(broker)
        .args(["--port", "0"])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut broker) = started else {
        println!("skipped: no `cargo build -p examples --bin broker` was made");
        return;
    };
    let mut line = String::new();
    let output = broker.stdout.take().expect("it is piped");
    let said = BufReader::new(output).read_line(&mut line);
    said.expect("it says where it listens");
    let address = line.trim().trim_start_matches("listening on ");
    let loads = [&[][..], &["--rate", "20000"]].map(|rate| {
        Command::new(BROKER_LOAD)
            .args([address, "--in-flight", "3000", "--messages", "5000"])
            .args(rate)
            .output()
            .expect("the binary was built for this test")
    });
    broker.kill().expect("it runs");
    broker.wait().expect("it was killed");
    for load in loads {
        let printed = String::from_utf8(load.stdout).expect("text");
        let error = String::from_utf8_lossy(&load.stderr);
        assert!(load.status.success(), "{printed}{error}");
        assert!(printed.starts_with("3000 in flight: 5000 messages of 128 bytes in "));
        let delivered = "8000 delivered, 0 delivered twice";
        let acknowledged = "8000 acknowledged in time, 0 late";
        assert_counts(&printed, &[delivered, acknowledged]);
    }
}

/// The load generator speaks to Redis as well, if it is installed.
#[test]
fn redis_takes_the_same_load() {
    let failure = Some("BUSYGROUP");
    other_takes_the_same_load("redis-server", "--redis", failure, |command, port| {
        command.args(["--bind", "127.0.0.1", "--port", port]).args([
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
    });
}

/// And to NATS.
#[test]
fn nats_takes_the_same_load() {
    let folder = tempfile::tempdir().expect("a folder for this test");
    other_takes_the_same_load("nats-server", "--nats", None, |command, port| {
        command
            .args(["--addr", "127.0.0.1", "--port", port, "--jetstream"])
            .arg("--store_dir")
            .arg(folder.path());
    });
}

/// Starts a server at a free port, if there is such a program.
fn start(program: &str, configure: impl Fn(&mut Command, &str)) -> Option<(Child, SocketAddr)> {
    let start = Instant::now();
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has one");
        drop(listener);
        let mut command = Command::new(program);
        configure(&mut command, &address.port().to_string());
        let mut server = (command.stdout(Stdio::null()).stderr(Stdio::null()))
            .spawn()
            .ok()?;
        // It ends if another process has taken the port meanwhile.
        while server.try_wait().expect("it is a child").is_none() {
            if TcpStream::connect(address).is_ok() {
                return Some((server, address));
            }
            assert!(start.elapsed() < PATIENCE, "{program} does not start");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The stream is there already when a second run begins: Redis refuses to make its group again,
/// NATS has the same one.
fn other_takes_the_same_load(
    program: &str,
    option: &str,
    again: Option<&str>,
    configure: impl Fn(&mut Command, &str),
) {
    let Some((mut server, address)) = start(program, configure) else {
        println!("skipped: there is no {program} on the PATH");
        return;
    };
    let process = server.id().to_string();
    let load = || {
        Command::new(BROKER_LOAD)
            .arg(address.to_string())
            .args([option, "--in-flight", "300", "--messages", "1500"])
            .args(["--process", &process])
            .output()
            .expect("the binary was built for this test")
    };
    let (first, second) = (load(), load());
    server.kill().expect("it runs");
    server.wait().expect("it was killed");

    let printed = String::from_utf8(first.stdout).expect("text");
    let error = String::from_utf8_lossy(&first.stderr);
    assert!(first.status.success(), "{printed}{error}");
    assert_counts(
        &printed,
        &[
            "1800 delivered, 0 delivered twice",
            "1800 acknowledged in time, 0 late",
            " s of CPU per million messages, and ",
        ],
    );
    let error = String::from_utf8_lossy(&second.stderr);
    match again {
        None => assert!(second.status.success(), "{error}"),
        Some(again) => assert!(!second.status.success() && error.contains(again), "{error}"),
    }
}
