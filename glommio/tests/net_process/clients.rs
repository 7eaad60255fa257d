//! Clients in another process, that a test has connect and answer.
//!
//! The test runs in a process of its own, whose descriptors are all for the server; the clients are
//! in the process that started it, and do what they are told through a connection of theirs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::common::prelude::*;

/// A connection to the clients.
pub(crate) struct Unbound(TcpStream);

/// The clients, as the server sees them.
pub(crate) struct Clients(glommio::net::TcpStream);

/// Runs `body` in a process of its own, with the way to clients in this one.
pub(crate) fn in_child_with_clients(body: impl FnOnce(Unbound)) {
    const MEETING: &str = "GLOMMIO_TEST_MEETING";
    if let Ok(address) = std::env::var(MEETING) {
        let to_clients = TcpStream::connect(address).expect("they wait there");
        return in_child(|| body(Unbound(to_clients)));
    }
    let meeting = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = meeting.local_addr().expect("it is bound").to_string();
    let clients = std::thread::spawn(move || {
        let (server, _) = meeting.accept()?;
        obey(server)
    });
    in_child_with(&[(MEETING, &address)], || {
        unreachable!("the child has come in above");
    });
    let done = clients.join().expect("the clients do not panic");
    done.expect("the clients are served");
}

impl Unbound {
    pub(crate) fn bind_to_executor(self) -> Clients {
        Clients(glommio::net::TcpStream::from(self.0))
    }
}

impl Clients {
    /// So many more connect to `address`, and send their numbers.
    pub(crate) async fn connect(&mut self, address: SocketAddr, count: usize) -> io::Result<()> {
        self.tell(format!("connect {address} {count}\n")).await
    }

    /// Each sends a byte and waits until it comes back.
    pub(crate) async fn ask(&mut self) -> io::Result<()> {
        self.tell("ask\n".into()).await
    }

    /// All are gone.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        self.tell("close\n".into()).await
    }

    async fn tell(&mut self, order: String) -> io::Result<()> {
        self.0.write_all(order.as_bytes()).await?;
        self.0.read_exact(&mut [0]).await
    }
}

/// Does what the server says until it goes.
fn obey(server: TcpStream) -> io::Result<()> {
    let mut done = server.try_clone()?;
    let mut clients = Vec::new();
    for order in BufReader::new(server).lines() {
        let order = order?;
        let words: Vec<&str> = order.split(' ').collect();
        match words[..] {
            ["connect", address, count] => {
                let address: SocketAddr = address.parse().expect("an address");
                for _ in 0..count.parse().expect("a number") {
                    let mut client = TcpStream::connect(address)?;
                    client.write_all(&(clients.len() as u32).to_be_bytes())?;
                    clients.push(client);
                }
            }
            ["ask"] => {
                for mut client in &clients {
                    client.write_all(b"?")?;
                }
                for mut client in &clients {
                    client.read_exact(&mut [0])?;
                }
            }
            _ => {
                for client in clients.drain(..) {
                    // Leaves no port in its wake.
                    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
                }
            }
        }
        done.write_all(b".")?;
    }
    Ok(())
}
