//! The broker: nothing in it knows of a simulation.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::channels::oneshot;
use glommio::io::{BufferedFile, Directory, OpenOptions};
use glommio::net::{TcpListener, TcpStream};
use glommio::spawn_local;
use glommio::sync::Semaphore;
use glommio::timer::sleep;

use super::MILLISECOND;

/// A message with its checksum: eight bytes each.
const RECORD_BYTES: usize = 16;

/// The commands of clients, each followed by a number of eight bytes: a message to keep, or anything for
/// all that are kept. The answer is the message, or the count of messages and these.
pub(crate) const PUT: u8 = b'P';
pub(crate) const GET: u8 = b'G';

struct Broker {
    file: BufferedFile,
    syncs: bool,
    /// All that is on the device, in the order of arrival.
    messages: RefCell<Vec<u64>>,
    /// What the next group has, each with whom to tell.
    gathered: RefCell<Vec<(u64, oneshot::Sender<()>)>>,
    /// Units for the writer, one for each group that begins.
    groups: Semaphore,
}

pub(crate) async fn run(syncs: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.create(true).read(true).write(true);
    let file = options.buffered_open("/messages").await?;
    // The name of the file, too, is to survive.
    let directory = Directory::open("/").await?;
    directory.sync().await?;
    directory.close().await?;
    let bytes = file.read_at(0, file.file_size().await? as usize).await?;
    let messages: Vec<_> = bytes
        .chunks_exact(RECORD_BYTES)
        .map_while(message_of)
        .collect();
    // What follows was never confirmed, and must not look whole when it is written over in part.
    file.truncate((messages.len() * RECORD_BYTES) as u64)
        .await?;
    file.fdatasync().await?;
    let broker = Rc::new(Broker {
        file,
        syncs,
        messages: RefCell::new(messages),
        gathered: RefCell::default(),
        groups: Semaphore::new(0),
    });
    spawn_local(write_groups(Rc::clone(&broker))).detach();
    let listener = TcpListener::bind("0.0.0.0:7000")?;
    loop {
        match listener.accept().await {
            Ok(connection) => {
                spawn_local(serve(connection, Rc::clone(&broker))).detach();
            }
            // Out of descriptors, most likely.
            Err(_) => sleep(50 * MILLISECOND).await,
        }
    }
}

async fn serve(mut client: TcpStream, broker: Rc<Broker>) -> io::Result<()> {
    client.set_nodelay(true)?;
    loop {
        let mut command = [0; 9];
        client.read_exact(&mut command).await?;
        let number = u64::from_le_bytes(command[1..].try_into().expect("there are eight"));
        let answer: Vec<u64> = match command[0] {
            PUT => {
                let (sender, confirmed) = oneshot::oneshot();
                let is_first = {
                    let mut gathered = broker.gathered.borrow_mut();
                    gathered.push((number, sender));
                    gathered.len() == 1
                };
                if is_first {
                    broker.groups.signal(1);
                }
                confirmed
                    .await
                    .map_err(|_| io::ErrorKind::ConnectionAborted)?;
                vec![number]
            }
            GET => {
                let messages = broker.messages.borrow();
                let count = messages.len() as u64;
                [count]
                    .into_iter()
                    .chain(messages.iter().copied())
                    .collect()
            }
            other => {
                let text = format!("a client has sent the command {other}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        };
        let bytes: Vec<_> = answer.iter().flat_map(|it| it.to_le_bytes()).collect();
        client.write_all(&bytes).await?;
    }
}

/// Writes a group, tells its clients, and goes on with what was gathered meanwhile.
async fn write_groups(broker: Rc<Broker>) {
    loop {
        broker.groups.acquire(1).await.expect("it stays open");
        sleep(2 * MILLISECOND).await;
        let group = broker.gathered.take();
        if let Err(error) = write(&broker, &group).await {
            panic!("the log cannot be written: {error}");
        }
        broker
            .messages
            .borrow_mut()
            .extend(group.iter().map(|(message, _)| message));
        for (_, client) in group {
            // A client that has left is not told.
            let _ = client.send(());
        }
    }
}

async fn write(broker: &Broker, group: &[(u64, oneshot::Sender<()>)]) -> io::Result<()> {
    let mut position = (broker.messages.borrow().len() * RECORD_BYTES) as u64;
    let mut bytes: Vec<u8> = group
        .iter()
        .flat_map(|(message, _)| record_of(*message))
        .collect();
    while !bytes.is_empty() {
        let written = broker.file.write_at(bytes.clone(), position).await?;
        bytes.drain(..written);
        position += written as u64;
    }
    if broker.syncs {
        broker.file.fdatasync().await?;
    }
    Ok(())
}

fn record_of(message: u64) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&message.to_le_bytes());
    record[8..].copy_from_slice(&checksum(message).to_le_bytes());
    record
}

/// The message of a record, if it is whole.
fn message_of(record: &[u8]) -> Option<u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("there are eight"));
    let message = number(&record[..8]);
    (number(&record[8..]) == checksum(message)).then_some(message)
}

fn checksum(message: u64) -> u64 {
    u64::from(crc32fast::hash(&message.to_le_bytes())) | 1 << 40
}
