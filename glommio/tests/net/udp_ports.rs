//! Which UDP sockets share a port.

use std::net::UdpSocket as StdSocket;

use glommio::net::DatagramPool;

use super::{in_child, run};
use crate::common::prelude::*;

#[run_test]
async fn sockets_share_an_address() {
    let one = UdpSocket::bind("127.0.0.1:0")?;
    let two = UdpSocket::bind(one.local_addr()?)?;
    assert_eq!(one.local_addr()?, two.local_addr()?);
    // The sender decides which gets it.
    let pool = DatagramPool::new(64, 8);
    let (mut by_one, mut by_two) = (Vec::new(), Vec::new());
    for _ in 0..64 {
        let sender = StdSocket::bind("127.0.0.1:0")?;
        sender.send_to(b"x", one.local_addr()?)?;
    }
    while by_one.len() + by_two.len() < 64 {
        or(
            one.recv_many(&pool, &mut by_one),
            two.recv_many(&pool, &mut by_two),
        )
        .await?;
    }
    assert!(!by_one.is_empty() && !by_two.is_empty());
}

#[run_test(in_child)]
fn a_port_that_was_chosen_is_that_of_one_socket() {
    // In a process of its own, for the descriptors. If ports that are taken might be chosen, some
    // ten of so many would be.
    let bind = |_| UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let sockets: Vec<_> = (0..900).map(bind).collect();
    let port = |socket: &UdpSocket| socket.local_addr().expect("it is bound").port();
    let ports: HashSet<_> = sockets.iter().map(port).collect();
    assert_eq!(ports.len(), sockets.len());
}
