//! The executor that keeps what is confirmed: no shard of the pool that dies takes it along.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use glommio::channels::channel_mesh::{Full, MeshBuilder};
use glommio::channels::oneshot;
use glommio::channels::shared_channel::SharedReceiver;
use glommio::channels::watch;
use glommio::net::{DetachedTcpStream, Preallocated};
use glommio::spawn_local;

/// A number to be stored, and who is told when it is.
pub(super) struct Entry {
    pub(super) client: u32,
    pub(super) number: u64,
    pub(super) stored: oneshot::SharedSender<()>,
}

/// Shards of the pool that come and go, and the mesh in which those meet that live.
#[derive(Clone)]
pub(super) struct Lives {
    /// Of shards that the store has not heard of.
    new: Arc<Mutex<Vec<SharedReceiver<Entry>>>>,
    sender: Arc<Mutex<watch::SharedSender<Epoch>>>,
    epoch: watch::SharedReceiver<Epoch>,
}

/// From one birth to the next.
#[derive(Clone)]
pub(super) struct Epoch {
    number: u64,
    /// `None`: the service ends.
    pub(super) mesh: Option<Mesh>,
}

/// By which connections move.
pub(super) type Mesh = MeshBuilder<DetachedTcpStream<Preallocated>, Full>;

impl Lives {
    pub(super) fn new(shards: usize) -> Self {
        let (sender, epoch) = watch::shared(Epoch {
            number: 0,
            mesh: Some(mesh(shards)),
        });
        Lives {
            new: Arc::default(),
            sender: Arc::new(Mutex::new(sender)),
            epoch,
        }
    }

    /// A shard begins, which sends entries to `store`: all are to meet again. False if the service has ended
    /// while the shard was being restarted.
    pub(super) fn begin(&self, entries: SharedReceiver<Entry>, shards: usize) -> bool {
        let mut new = self.new.lock().expect(NO_PANIC);
        let goes_on = self.epoch().mesh.is_some();
        if goes_on {
            new.push(entries);
            self.publish(Some(mesh(shards)));
        }
        goes_on
    }

    /// The service ends.
    pub(super) fn end(&self) {
        let _none_begins = self.new.lock().expect(NO_PANIC);
        self.publish(None);
    }

    fn publish(&self, mesh: Option<Mesh>) {
        let sender = self.sender.lock().expect(NO_PANIC);
        let number = sender.with_current(|epoch| epoch.number + 1);
        let is_heard = sender.send(Epoch { number, mesh });
        assert!(is_heard.is_ok(), "this has a receiver");
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch.get()
    }

    /// Waits until `epoch` is over.
    pub(super) async fn after(&mut self, epoch: &Epoch) {
        while self.epoch.with_current(|now| now.number == epoch.number) {
            self.epoch.changed().await.expect("this has the sender");
        }
    }
}

/// What is stored of each client.
pub(super) type Stored = BTreeMap<u32, BTreeSet<u64>>;

/// Stores what shards send until the service ends, and with it the last of them.
pub(super) async fn keep(mut lives: Lives) -> Stored {
    let stored: Rc<RefCell<Stored>> = Rc::default();
    let mut readers = Vec::new();
    loop {
        let epoch = lives.epoch();
        let new = std::mem::take(&mut *lives.new.lock().expect(NO_PANIC));
        for entries in new {
            let stored = Rc::clone(&stored);
            readers.push(spawn_local(async move {
                let entries = entries.connect().await;
                while let Some(entry) = entries.recv().await {
                    let mut stored = stored.borrow_mut();
                    stored.entry(entry.client).or_default().insert(entry.number);
                    // The shard may have died meanwhile.
                    let _ = entry.stored.send(());
                }
            }));
        }
        if epoch.mesh.is_none() {
            break;
        }
        lives.after(&epoch).await;
    }
    for reader in readers {
        reader.await;
    }
    stored.take()
}

fn mesh(shards: usize) -> Mesh {
    MeshBuilder::full(shards, CONNECTIONS)
}

/// Connections under way from one shard to another.
const CONNECTIONS: usize = 64;

const NO_PANIC: &str = "no panic happens under this lock";
