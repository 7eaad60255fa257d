//! The example `reliable_udp`: two processes, and a link that loses datagrams.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::servers::{Server, binary, noise};
use examples::reliable_udp::wire::{DATAGRAM_BYTES_MAX, Datagram, Salt};

fn receiver(copy: &Path, arguments: &[&str]) -> Server {
    let copy = copy.to_str().expect("text");
    Server::of("reliable_udp", &[&["receive", copy], arguments].concat())
}

fn send(file: &Path, to: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary("reliable_udp"));
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

/// The last ack is sent when the file is complete, so it does not matter what happens to the
/// receiver after it.
#[test]
fn a_receiver_that_is_killed_after_the_last_ack_has_the_whole_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, copy) = (directory.path().join("file"), directory.path().join("copy"));
    // Not a whole number of the writer's buffers.
    let content = noise(300_000);
    fs::write(&file, &content).expect("there is space");
    let server = receiver(&copy, &["--linger", "1h"]);
    let sent = send(&file, &server.address.to_string(), &["--attempts", "100"]);
    drop(server); // kills it
    assert!(sent.status.success(), "{sent:?}");
    let copied = fs::read(&copy).expect("there is a copy");
    assert_eq!(copied.len(), content.len());
    assert!(copied == content);
}

/// A file whose checksum is another one is not acknowledged.
#[test]
fn a_transfer_with_a_wrong_checksum_is_not_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = receiver(&directory.path().join("copy"), &[]);
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    sender.connect(server.address).expect("it is local");
    let send = |sequence: u64, segment: &[u8]| {
        let datagram = Datagram::Data {
            sequence,
            resent: 0,
            segment,
        };
        let salt = Salt(u64::from_le_bytes(*b"transfer"));
        sender.send(&datagram.encode(salt)).expect("it listens");
    };
    sender
        .set_read_timeout(Some(crate::servers::PATIENCE))
        .expect("not zero");
    send(0, b"\0content");
    let mut ack = [0; DATAGRAM_BYTES_MAX];
    sender.recv(&mut ack).expect("the segment has come");
    send(1, &[1; 33]);
    assert!(!server.end().success(), "it ends with an error");
    // Nothing was sent before it ended, so nothing comes any more.
    sender.set_nonblocking(true).expect("it is a socket");
    let received = sender.recv(&mut ack);
    received.expect_err("no ack of the last segment");
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
