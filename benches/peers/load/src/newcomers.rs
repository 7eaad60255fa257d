//! Connections that come and go.

use std::io;

use socket2::{Domain, Socket, Type};

use crate::measured::Measured;
use crate::poller::Poller;
use crate::server::{Server, reset_when_closed};

/// Connections on their way at any time. More would overflow the queue of a listening socket, which holds 128 in some
/// of the crates, and a connection that finds it full tries again a second later.
const AT_ONCE: usize = 32;

/// Connects, waits until the server has accepted and closed the connection, and connects again.
pub fn come_and_go(case: &str, server: &Server) -> io::Result<()> {
    let mut poller = Poller::new()?;
    let mut sockets = Vec::with_capacity(AT_ONCE);
    for key in 0..AT_ONCE {
        sockets.push(connect(server, &poller, key)?);
    }
    // A key lives on in the socket that takes the place of one that was closed.
    let mut closed = Vec::with_capacity(AT_ONCE);
    let measured = Measured::steadily(server, |_| {
        closed.extend(poller.wait()?);
        let count = closed.len();
        for key in closed.drain(..) {
            if let Some(error) = sockets[key].take_error()? {
                return Err(error);
            }
            sockets[key] = connect(server, &poller, key)?;
        }
        Ok(count as u64)
    })?;
    measured.report_rate(case);
    measured.report_cpu(case);
    Ok(())
}

fn connect(server: &Server, poller: &Poller, key: usize) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    reset_when_closed(&socket)?;
    // Loopback answers within the call: it never waits.
    socket.connect(&server.address.into())?;
    poller.add(&socket, key)?;
    Ok(socket)
}
