//! A client, which reads and writes registers with a majority of the replicas.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io;
use std::rc::Rc;

use fastrand::Rng;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::channels::local_channel;
use glommio::future::timeout;
use glommio::net::TcpStream;
use glommio::timer::sleep;
use glommio::{rng_seed, spawn_local};

use crate::entry::{ENTRY_BYTES, Entry};
use crate::history::History;
use crate::planted::{Defect, Planted};
use crate::{MILLISECOND, REPLICAS};

pub(crate) const PORT: u16 = 7000;

/// Requests: one of these, and an entry. The answer is an entry.
pub(crate) const QUERY: u8 = b'Q';
const STORE: u8 = b'S';
pub(crate) const REQUEST_BYTES: usize = 1 + ENTRY_BYTES;

struct Client {
    number: u64,
    planted: Planted,
    replicas: Vec<Rc<Replica>>,
    /// Of the last write.
    counter: Cell<u64>,
}

/// A replica, with the connections to it that are free.
struct Replica {
    name: &'static str,
    planted: Planted,
    free: RefCell<Vec<TcpStream>>,
}

/// Reads and writes for some seconds.
pub(crate) async fn run(number: u64, planted: Planted, history: Rc<History>) {
    let mut rng = Rng::with_seed(rng_seed());
    let replica = |name| {
        let free = RefCell::default();
        Rc::new(Replica {
            name,
            planted,
            free,
        })
    };
    let client = Client {
        number,
        planted,
        replicas: REPLICAS.into_iter().map(replica).collect(),
        counter: Cell::new(0),
    };
    for operation in 0..OPERATIONS {
        sleep(rng.u32(..200) * MILLISECOND).await;
        let key = rng.u64(..KEYS);
        if rng.bool() {
            let value = number << 32 | operation;
            let under_way = history.write_begins(key, value);
            client.write(key, value).await;
            history.write_ends(under_way);
        } else {
            let began = history.tick();
            let value = client.read(key).await;
            history.has_read(key, value, began);
        }
    }
}

impl Client {
    async fn read(&self, key: u64) -> u64 {
        let newest = self.newest(key).await;
        if !self.planted.is(Defect::NoWriteBack) {
            self.ask_majority(STORE, newest).await;
        }
        newest.value()
    }

    async fn write(&self, key: u64, value: u64) {
        let counter = match self.planted.is(Defect::NoQuery) {
            true => self.counter.get(),
            false => self.newest(key).await.version().0,
        };
        self.counter.set(counter + 1);
        let client = match self.planted.is(Defect::SameVersion) {
            true => 0,
            false => self.number,
        };
        let entry = Entry::new(key, (counter + 1, client), value);
        self.ask_majority(STORE, entry).await;
    }

    async fn newest(&self, key: u64) -> Entry {
        let found = self.ask_majority(QUERY, Entry::none(key)).await;
        let newest = found.into_iter().max_by_key(Entry::version);
        newest.expect("a majority has answered")
    }

    /// The answers of a majority of the replicas, each of which is asked until it answers.
    async fn ask_majority(&self, what: u8, entry: Entry) -> Vec<Entry> {
        let majority = match self.planted.is(Defect::OneIsAMajority) {
            true => 1,
            false => self.replicas.len() / 2 + 1,
        };
        let (sender, answers) = local_channel::new_unbounded();
        let sender = Rc::new(sender);
        let asking = self.replicas.iter().map(|replica| {
            let (replica, sender) = (Rc::clone(replica), Rc::clone(&sender));
            spawn_local(async move {
                loop {
                    match timeout(PATIENCE, replica.ask(what, entry)).await {
                        Ok(Ok(answer)) => {
                            let _ = sender.try_send(answer);
                            if !replica.planted.is(Defect::CountedTwice) {
                                return;
                            }
                        }
                        _ => glommio::sometimes!(true, "a request is repeated"),
                    }
                    sleep(20 * MILLISECOND).await;
                }
            })
        });
        // Those that are late are dropped with their connections.
        let _asking: Vec<_> = asking.collect();
        let mut found = Vec::new();
        while found.len() < majority {
            match answers.recv().await {
                Some(answer) => found.push(answer),
                None => pending().await,
            }
        }
        found
    }
}

impl Replica {
    async fn ask(&self, what: u8, entry: Entry) -> io::Result<Entry> {
        let free = self.free.borrow_mut().pop();
        let mut stream = match free {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect((self.name, PORT)).await?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        let mut request = vec![what];
        request.extend(entry.to_bytes());
        stream.write_all(&request).await?;
        let mut answer = [0; ENTRY_BYTES];
        if self.planted.is(Defect::PartialAnswer) {
            if stream.read(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        } else if self.planted.is(Defect::ConnectionUsedAgain) {
            let read = timeout(PATIENCE / 8, stream.read_exact(&mut answer));
            if let Ok(read) = read.await {
                read?;
            } else {
                self.free.borrow_mut().push(stream);
                return Err(io::ErrorKind::TimedOut.into());
            }
        } else {
            stream.read_exact(&mut answer).await?;
        }
        self.free.borrow_mut().push(stream);
        Ok(Entry::from_bytes(&answer))
    }
}

const KEYS: u64 = 2;
const OPERATIONS: u64 = 60;
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(400);
