//! The clients: producers, and the auditor that looks at what is left in the end.

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::TcpStream;
use glommio::simulation;
use glommio::timer::sleep;

use super::broker::{GET, PUT};
use super::{Ledger, MILLISECOND, SECOND};

/// Sends messages until each is confirmed.
pub(crate) async fn produce(producer: u64, messages: u32, ledger: Rc<Ledger>) {
    let mut connection = None;
    for number in 0..u64::from(messages) {
        let message = producer << 32 | number;
        loop {
            match request(&mut connection, PUT, message).await {
                Ok(confirmed) if confirmed == message => break,
                // Confirms no message of ours: a broker that mixes up clients.
                Ok(other) => panic!("{message} was sent, and {other} confirmed"),
                Err(_) => sleep(10 * MILLISECOND).await,
            }
        }
        ledger.confirmed.borrow_mut().insert(message);
        sleep(MILLISECOND).await;
    }
}

/// Waits until all messages are confirmed, reads what the broker has, and compares.
pub(crate) async fn audit(expected: usize, ledger: Rc<Ledger>) {
    while ledger.confirmed.borrow().len() < expected {
        sleep(SECOND).await;
    }
    let found = loop {
        match all_messages().await {
            Ok(messages) => break messages,
            Err(_) => sleep(10 * MILLISECOND).await,
        }
    };
    let confirmed = ledger.confirmed.borrow();
    let lost = confirmed.difference(&found).count();
    simulation::note(format!("{} messages are there", found.len()));
    assert_eq!(lost, 0, "messages that were confirmed are lost");
}

/// A command whose answer is a number. A connection that has failed is gone.
async fn request(connection: &mut Option<TcpStream>, command: u8, number: u64) -> io::Result<u64> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => connect().await?,
    };
    send(&mut stream, command, number).await?;
    let answer = receive(&mut stream).await?;
    *connection = Some(stream);
    Ok(answer)
}

async fn all_messages() -> io::Result<BTreeSet<u64>> {
    let mut stream = connect().await?;
    send(&mut stream, GET, 0).await?;
    let mut messages = BTreeSet::new();
    for _ in 0..receive(&mut stream).await? {
        messages.insert(receive(&mut stream).await?);
    }
    Ok(messages)
}

async fn connect() -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout("broker:7000", SECOND).await?;
    stream.set_nodelay(true)?;
    // A broker whose power is off says nothing.
    stream.set_read_timeout(Some(SECOND))?;
    Ok(stream)
}

async fn send(stream: &mut TcpStream, command: u8, number: u64) -> io::Result<()> {
    let mut bytes = [command; 9];
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    stream.write_all(&bytes).await
}

async fn receive(stream: &mut TcpStream) -> io::Result<u64> {
    let mut number = [0; 8];
    stream.read_exact(&mut number).await?;
    Ok(u64::from_le_bytes(number))
}
