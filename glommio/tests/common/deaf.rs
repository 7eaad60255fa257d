//! Places to connect to in vain.

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

/// A listener whose queue is full: the kernel drops what further clients send.
pub(crate) struct Deaf {
    pub(crate) address: SocketAddr,
    _sockets: Vec<Socket>,
}

impl Deaf {
    pub(crate) fn new() -> Self {
        let tcp = || Socket::new(Domain::IPV4, Type::STREAM, None);
        let listener = tcp().expect("a socket can be made");
        // Where no other test takes the port once this is gone.
        let any: SocketAddr = "127.0.0.6:0".parse().expect("an address");
        listener.bind(&any.into()).expect("there is a free port");
        listener.listen(0).expect("it is bound");
        let address = listener.local_addr().expect("it is bound");
        let mut sockets = vec![listener];
        for _ in 0..8 {
            let client = tcp().expect("a socket can be made");
            client.set_nonblocking(true).expect("any socket can");
            // In progress: the first is taken into the queue, the others wait for an answer.
            let _ = client.connect(&address);
            sockets.push(client);
        }
        Deaf {
            address: address.as_socket().expect("it is an internet socket"),
            _sockets: sockets,
        }
    }
}

/// An address that no socket listens on.
pub(crate) fn closed_port() -> SocketAddr {
    // Bound and never listening: no other socket gets the port while this one lives, and it lives
    // as long as the process.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    socket.bind(&any.into()).expect("there is a free port");
    let address = socket.local_addr().expect("it is bound").as_socket();
    std::mem::forget(socket);
    address.expect("it is an internet socket")
}
