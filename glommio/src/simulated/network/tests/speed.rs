//! How fast it is: `cargo test --release speed -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use super::{Kind, Network, advance_to, connected, two_nodes};

fn messages(network: &mut Network, client: super::SocketId, server: super::SocketId, count: u32) {
    let mut buffer = [0; 256];
    let (mut sent, mut received) = (0, 0);
    while received < count * 100 {
        while sent < count && network.send(client, &[1; 100]) == Ok(100) {
            sent += 1;
            if sent % 8 == 0 {
                break;
            }
        }
        if let Some(next) = network.next_event() {
            network.advance(next);
        }
        for id in network.take_changed() {
            if id == server {
                while let Ok(part) = network.recv(server, &mut buffer, false) {
                    received += part.len as u32;
                }
            }
        }
    }
}

#[test]
#[ignore = "prints times"]
fn speed() {
    const COUNT: u32 = 1_000_000;
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    let start = Instant::now();
    messages(&mut network, client, server, COUNT);
    println!(
        "link: {:?} for a message of 100 bytes",
        start.elapsed() / COUNT
    );
    let (client, server) = network.pair(one, Kind::UnixStream).expect("a pair");
    let start = Instant::now();
    messages(&mut network, client, server, COUNT);
    println!(
        "unix: {:?} for a message of 100 bytes",
        start.elapsed() / COUNT
    );
    let end = network.now() + Duration::from_secs(1);
    advance_to(&mut network, end);
}
