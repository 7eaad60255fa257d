//! A shard of the service, from its start until it dies, and the store that keeps what is confirmed, which no shard that dies
//! takes along.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use futures_lite::future::pending;
use glommio::ResourceType;
use glommio::channels::channel_mesh::{Full, MeshBuilder, Senders};
use glommio::channels::shared_channel::{ConnectedSender, SharedReceiver};
use glommio::channels::{local_channel, oneshot, shared_channel, watch};
use glommio::net::{
    BalancedTcpListener, ConnectionGuard, DetachedTcpStream, Preallocated, ShardListener,
};
use glommio::overload::LoadShedder;

use super::protocol::{Deaths, Frame, What};
use crate::workload::prelude::*;

/// What all lives of all shards share.
#[derive(Clone)]
pub(super) struct Service {
    /// What it accepts from.
    pub(super) listen: Listen,
    pub(super) lives: Lives,
    pub(super) begun: Arc<AtomicU32>,
    pub(super) deaths: Deaths,
}

pub(super) type Listen = Arc<dyn Fn() -> glommio::Result<BalancedTcpListener, ()> + Send + Sync>;

type Stream = TcpStream<Preallocated>;
type Moving = DetachedTcpStream<Preallocated>;

/// One life of a shard.
struct Shard {
    number: u32,
    store: ConnectedSender<Entry>,
    shed: LoadShedder,
    deaths: Deaths,
    /// To the others, while all of them live.
    others: RefCell<Option<Rc<Senders<Moving>>>>,
}

/// Serves until the service ends.
pub(super) async fn run(service: Service) -> glommio::Result<(), ()> {
    let number = service.begun.fetch_add(1, Ordering::Relaxed);
    let listener = (service.listen)()?.join(number as usize)?;
    let (store, entries) = shared_channel::new_bounded(ENTRIES);
    if !service.lives.begin(entries) {
        return Ok(());
    }
    let shard = Rc::new(Shard {
        number,
        store: store.connect().await,
        shed: (LoadShedder::builder().target(LATE).interval(LATE_FOR)).build(),
        deaths: service.deaths,
        others: RefCell::default(),
    });
    let (arrived, arrivals) = local_channel::new_unbounded();
    let meeting = shard.clone().meet(service.lives, Rc::new(arrived));
    or(meeting, shard.accept(listener, arrivals)).await
}

impl Shard {
    /// Joins the mesh of each epoch, and passes on the connections that arrive by it.
    async fn meet(
        self: Rc<Self>,
        mut lives: Lives,
        arrived: Rc<local_channel::LocalSender<Moving>>,
    ) -> glommio::Result<(), ()> {
        loop {
            let epoch = lives.epoch();
            let Some(mesh) = epoch.mesh.clone() else {
                return Ok(());
            };
            let joined = or(async { Some(mesh.join().await) }, async {
                lives.after(&epoch).await;
                None
            });
            let Some(joined) = joined.await else { continue };
            let (senders, mut receivers) = joined?;
            self.others.replace(Some(Rc::new(senders)));
            for (_, receiver) in receivers.streams() {
                let arrived = Rc::clone(&arrived);
                // Until the sender has left that mesh, and what it has sent was received.
                spawn_local(async move {
                    while let Some(connection) = receiver.recv().await {
                        let is_taken = arrived.try_send(connection);
                        assert!(is_taken.is_ok(), "the shard accepts as long as it lives");
                    }
                })
                .detach();
            }
            lives.after(&epoch).await;
            self.others.take();
        }
    }

    /// Serves each connection in a task of its own.
    async fn accept(
        self: Rc<Self>,
        mut listener: ShardListener,
        arrivals: local_channel::LocalReceiver<Moving>,
    ) -> glommio::Result<(), ()> {
        loop {
            let moved = async {
                let arrived = arrivals.recv().await;
                Ok((arrived.expect("`meet` has the sender").attach(), None))
            };
            let accepted = async {
                let (stream, guard) = listener.accept().await?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                let stream = stream.buffered_with(Preallocated::new(BUFFER));
                glommio::Result::<_, ()>::Ok((stream, Some(guard)))
            };
            let (stream, guard) = or(moved, accepted).await?;
            let guard = guard.unwrap_or_else(|| listener.count_connection());
            let shard = Rc::clone(&self);
            spawn_local(async move {
                // A client that is not heard any more has given the connection up.
                let _ = shard.serve(stream, guard).await;
            })
            .detach();
        }
    }

    async fn serve(&self, mut stream: Stream, _counted: ConnectionGuard) -> io::Result<()> {
        let mut frame = [0; 16];
        loop {
            stream.read_exact(&mut frame).await?;
            let request = Frame::decode(frame)?;
            let mut answer = Frame {
                from: self.number,
                what: What::Refused,
                ..request
            };
            if self.shed.admit().is_ok() {
                self.store(request).await?;
                answer.what = What::Stored;
            }
            if request.what == What::DieUnheard {
                self.die().await;
            }
            stream.write_all(&answer.encode()).await?;
            match request.what {
                What::DieConfirmed => self.die().await,
                What::Move => match self.hand_over(stream.detach()).await {
                    Some(back) => stream = back.attach(),
                    None => return Ok(()),
                },
                _ => {}
            }
        }
    }

    async fn store(&self, request: Frame) -> io::Result<()> {
        // In a simulation no time passes meanwhile.
        if request.what == What::Compute && !self.deaths.are_power_cuts() {
            let begin = Instant::now();
            while begin.elapsed() < COMPUTING {}
        }
        let (stored, is_stored) = oneshot::shared();
        let entry = Entry {
            client: request.from,
            number: request.number,
            stored,
        };
        // The store lives as long as the service.
        self.store.send(entry).await.map_err(io::Error::other)?;
        is_stored.await.map_err(io::Error::other)
    }

    /// Dies as of a bug that was planned, without a word of the panic hook; in a simulation, with all others.
    async fn die(&self) -> ! {
        if self.deaths.cut_power() {
            pending().await
        } else {
            resume_unwind(Box::new("asked to die"))
        }
    }

    /// Hands a connection to another shard; if that is gone, here it is again.
    async fn hand_over(&self, connection: Moving) -> Option<Moving> {
        let others = self.others.borrow().clone();
        let Some(others) = others else {
            // They are about to meet.
            sleep(MEETING).await;
            return Some(connection);
        };
        let next = (others.peer_id() + 1) % SHARDS;
        match others.send_to(next, connection).await {
            Ok(()) => None,
            Err(GlommioError::Closed(ResourceType::Channel(connection))) => Some(connection),
            Err(error) => panic!("{error}"),
        }
    }
}

pub(super) const SHARDS: usize = 3;

const ENTRIES: usize = 256;

/// A connection has some requests in here when it moves.
const BUFFER: usize = 4096;

/// A silence of a client that ends its connection: longer than a machine stands still.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// For so long a shard computes for a request,
const COMPUTING: Duration = Duration::from_micros(500);

/// and when it is later than this,
const LATE: Duration = Duration::from_millis(1);

/// for so long, it refuses requests.
const LATE_FOR: Duration = Duration::from_millis(10);

const MEETING: Duration = Duration::from_millis(1);

/// A number to be stored, and who is told when it is.
struct Entry {
    client: u32,
    number: u64,
    stored: oneshot::SharedSender<()>,
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
struct Epoch {
    number: u64,
    /// `None`: the service ends.
    mesh: Option<Mesh>,
}

/// By which connections move.
type Mesh = MeshBuilder<Moving, Full>;

impl Lives {
    pub(super) fn new() -> Self {
        let mesh = Some(mesh());
        let (sender, epoch) = watch::shared(Epoch { number: 0, mesh });
        Lives {
            new: Arc::default(),
            sender: Arc::new(Mutex::new(sender)),
            epoch,
        }
    }

    /// A shard begins, which sends entries to `store`: all are to meet again. False if the service has ended
    /// while the shard was being restarted.
    fn begin(&self, entries: SharedReceiver<Entry>) -> bool {
        let mut new = lock(&self.new);
        let goes_on = self.epoch().mesh.is_some();
        if goes_on {
            new.push(entries);
            self.publish(Some(mesh()));
        }
        goes_on
    }

    /// The service ends.
    pub(super) fn end(&self) {
        let _none_begins = lock(&self.new);
        self.publish(None);
    }

    fn publish(&self, mesh: Option<Mesh>) {
        let sender = lock(&self.sender);
        let number = sender.with_current(|epoch| epoch.number + 1);
        let is_heard = sender.send(Epoch { number, mesh });
        assert!(is_heard.is_ok(), "this has a receiver");
    }

    fn epoch(&self) -> Epoch {
        self.epoch.get()
    }

    /// Waits until `epoch` is over.
    async fn after(&mut self, epoch: &Epoch) {
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
        let new = std::mem::take(&mut *lock(&lives.new));
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

fn mesh() -> Mesh {
    MeshBuilder::full(SHARDS, CONNECTIONS)
}

/// Connections under way from one shard to another.
const CONNECTIONS: usize = 64;
