//! The example `reliable_udp`: two processes, and a link that loses datagrams.

mod servers;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use servers::{Server, noise};

const BINARY: &str = env!("CARGO_BIN_EXE_reliable_udp");

fn receiver(copy: &Path, arguments: &[&str]) -> Server {
    let copy = copy.to_str().expect("text");
    let arguments = [&["receive", copy, "--port", "0"], arguments].concat();
    Server::start(BINARY, &arguments)
}

fn send(file: &Path, to: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.arg("send").arg(file).arg(to).args(arguments);
    command
        .output()
        .expect("the binary was built for this test")
}

/// Files of all kinds of lengths arrive, whatever is lost.
#[test]
fn a_file_arrives_over_a_link_that_loses() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, copy) = (directory.path().join("file"), directory.path().join("copy"));
    for (bytes, percent, seed) in [
        (0, "0", "1"),
        (1, "20", "2"),
        (1200, "5", "3"),
        (700_001, "5", "4"),
    ] {
        let content = noise(bytes);
        fs::write(&file, &content).expect("there is space");
        let server = receiver(
            &copy,
            &["--loss", percent, "--seed", seed, "--linger", "3s"],
        );
        let loss = ["--loss", percent, "--seed", seed, "--attempts", "30"];
        let sent = send(&file, &server.address.to_string(), &loss);
        let printed = String::from_utf8(sent.stdout).expect("text");
        let received = server.ended();
        assert!(
            fs::read(&copy).expect("there is a copy") == content,
            "{bytes} bytes"
        );
        assert!(
            received.starts_with(&format!("received {bytes} bytes in ")),
            "{received}"
        );
        let checksum = |text: &str| text.lines().last().map(str::to_owned);
        assert!(checksum(&received).is_some_and(|it| it.starts_with("sha256 ")));
        // The sender misses acks for longer than the receiver stays only on a very busy machine;
        // the file has arrived all the same.
        if sent.status.success() {
            assert_eq!(checksum(&printed), checksum(&received));
            assert!(
                printed.starts_with(&format!("sent {bytes} bytes in ")),
                "{printed}"
            );
            if bytes > 100_000 {
                assert!(!printed.contains(" 0 sent again, 0 dropped"), "{printed}");
            }
        }
    }
}

/// Without a receiver the sender gives up, and says so.
#[test]
fn a_sender_without_receiver_gives_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, b"content").expect("there is space");
    // Bound, so that no other program gets the port; it never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let address = silent.local_addr().expect("it is bound").to_string();
    let sent = send(&file, &address, &["--attempts", "2"]);
    assert!(!sent.status.success());
    let error = String::from_utf8_lossy(&sent.stderr).into_owned();
    assert!(error.contains("after 2 attempts"), "{error}");
}
