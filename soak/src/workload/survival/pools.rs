//! Pools of shards that accept from one socket and take turns at it, in the process that serves, and clients that
//! connect, are greeted with the number of a shard, and leave.
//!
//! In a round the shards serve, each computes in turn, and one fails twice; then the next pool begins, and these leave.
//!
//! The clients are threads with sockets of the standard library, and none of the checks depends on how fast the
//! machine is: patience ends only for what would never come.

use std::io::Read;
use std::net::{TcpListener, TcpStream as Client};
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use glommio::channels::watch;
use glommio::net::{BalancedTcpListener, ShardListener};
use glommio::{LocalExecutorPoolBuilder, PoolPlacement, PoolThreadHandles, ShardExitPolicy};

use super::shard::SHARDS;
use crate::check::invariants::Ledger;
use crate::measure::ring_events;
use crate::workload::prelude::*;

/// What is judged.
pub(super) const ROWS: [Invariant; 3] = [
    Invariant::Replacements,
    Invariant::Accepts,
    Invariant::Failures,
];

/// Round after round, until `is_over`.
pub(super) fn run(ledger: &Ledger, is_over: &AtomicBool) -> glommio::Result<(), ()> {
    let socket = TcpListener::bind("127.0.0.1:0")?;
    let mut judge = Judge {
        ledger,
        address: socket.local_addr()?,
        pool: Pool::start(&socket)?,
    };
    while !is_over.load(SeqCst) {
        judge.connect_in_turn();
        judge.connect_while_shards_compute();
        judge.let_a_shard_fail();
        judge.replace(Pool::start(&socket)?);
        let pause = Instant::now();
        while !is_over.load(SeqCst) && pause.elapsed() < EVERY {
            thread::sleep(MOMENT);
        }
    }
    judge.pool.end(Order::End);
    Ok(())
}

/// What the shards of a pool are to do. They serve meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Serve,
    /// This one is to compute, until it is told to go on.
    Compute(usize),
    /// This one is to end with an error, in its first two lives.
    Fail(usize),
    /// All are to leave: what some have accepted for others, which do not accept any more, is to be served.
    HandOn,
    /// All are to leave.
    End,
}

struct Pool {
    orders: watch::SharedSender<Order>,
    shared: Arc<Shared>,
    shards: PoolThreadHandles<io::Result<()>>,
}

/// What the shards of a pool know of each other, and their judge of them.
struct Shared {
    listener: BalancedTcpListener,
    orders: watch::SharedReceiver<Order>,
    numbers: AtomicUsize,
    /// When each life of each shard began.
    lives: [Mutex<Vec<Instant>>; SHARDS],
    /// When one failed first.
    failed: Mutex<Option<Instant>>,
    /// Of those that have failed.
    restarts: AtomicUsize,
    served: AtomicUsize,
    /// From when the shard that is to compute does, until it is to stop.
    computes: AtomicBool,
    /// How many of those that leave have connections to hand on, and how many have left.
    have_enough: AtomicUsize,
    have_left: AtomicUsize,
}

impl Pool {
    fn start(socket: &TcpListener) -> glommio::Result<Pool, ()> {
        let (orders, receiver) = watch::shared(Order::Serve);
        let shared = Arc::new(Shared {
            listener: BalancedTcpListener::from(socket.try_clone()?),
            orders: receiver,
            numbers: AtomicUsize::new(0),
            lives: Default::default(),
            failed: Mutex::default(),
            restarts: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            computes: AtomicBool::new(false),
            have_enough: AtomicUsize::new(0),
            have_left: AtomicUsize::new(0),
        });
        let (of_hook, of_shards) = (Arc::clone(&shared), Arc::clone(&shared));
        let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(SHARDS))
            .name("soak-pool")
            .on_shard_end(ShardExitPolicy::Restart { per_minute: 10 })
            .on_shard_restart(move |_, reason| {
                let is_planned = reason.contains(FAILED);
                of_hook.restarts.fetch_add(is_planned.into(), SeqCst);
            })
            .try_on_all_shards(move || live(of_shards))?;
        let pool = Pool {
            orders,
            shared,
            shards,
        };
        for lives in &pool.shared.lives {
            wait(|| !lock(lives).is_empty());
        }
        Ok(pool)
    }

    fn order(&self, order: Order) {
        // It is not heard where no shard lives.
        let _ = self.orders.send(order);
    }

    /// Whether all shards have ended in good order.
    fn end(self, order: Order) -> bool {
        self.order(order);
        let mut ended = self.shards.join_all().into_iter();
        ended.all(|ended| matches!(ended, Ok(Ok(()))))
    }
}

/// Holds pools to what they promise.
struct Judge<'a> {
    ledger: &'a Ledger,
    address: SocketAddr,
    pool: Pool,
}

impl Judge<'_> {
    /// All shards have as many connections: each time another is given the next.
    fn connect_in_turn(&self) {
        let mut served = [0; SHARDS];
        for _ in 0..CLIENTS {
            match connect(self.address).and_then(greeting) {
                Ok(shard) => served[shard] += 1,
                Err(error) => self.ledger.holds(Invariant::Accepts, false, || {
                    format!("a client was not served: {error}")
                }),
            }
        }
        let are_shared_out = served.iter().all(|&count| count <= CLIENTS / 2);
        self.ledger.holds(Invariant::Accepts, are_shared_out, || {
            format!("of {CLIENTS} clients in turn, the shards served {served:?}")
        });
    }

    /// The kernel may have told one that computes of one client, and others may have given it some.
    fn connect_while_shards_compute(&self) {
        let shared = &self.pool.shared;
        for shard in 0..SHARDS {
            self.pool.order(Order::Compute(shard));
            let computes = wait(|| shared.computes.load(SeqCst));
            let before = shared.served.load(SeqCst);
            let clients: Vec<_> = (0..CLIENTS).map(|_| connect(self.address)).collect();
            let served = || shared.served.load(SeqCst) - before;
            let are_served = computes && wait(|| served() >= CLIENTS - WAITING_MAX);
            self.ledger.holds(Invariant::Accepts, are_served, || {
                let served = served();
                format!("{served} of {CLIENTS} clients were served while a shard computed")
            });
            shared.computes.store(false, SeqCst);
            for client in clients {
                let served = client.and_then(greeting).map(drop);
                self.ledger.ended(Invariant::Accepts, "a client", served);
            }
        }
    }

    fn let_a_shard_fail(&self) {
        let (shared, logged) = (&self.pool.shared, ring_events::watched());
        let began = || lock(&shared.lives[FAILING]).clone();
        self.pool.order(Order::Fail(FAILING));
        let is_restarted = wait(|| began().len() > FAILURES);
        let logged = ring_events::watched() - logged;
        let counts = [logged, shared.restarts.load(SeqCst)];
        let are_seen = is_restarted && counts == [FAILURES; 2];
        self.ledger.holds(Invariant::Failures, are_seen, || {
            let lives = began().len();
            format!("{FAILURES} failures of a shard: {counts:?} logged and told, {lives} starts")
        });
        let last = began().last().copied();
        let took = lock(&shared.failed)
            .zip(last)
            .map(|(failed, last)| last - failed);
        let has_paused = took >= Some(PAUSES);
        self.ledger.holds(Invariant::Failures, has_paused, || {
            format!("a shard that had failed {FAILURES} times was there after {took:?}")
        });
    }

    /// Clients come all the while.
    fn replace(&mut self, successor: Pool) {
        let old = std::mem::replace(&mut self.pool, successor);
        let (address, ledger, is_over) = (self.address, self.ledger, AtomicBool::new(false));
        let comes_and_goes = || {
            while !is_over.load(SeqCst) {
                let served = connect(address).and_then(greeting).map(drop);
                ledger.ended(Invariant::Replacements, "a client", served);
                thread::sleep(MOMENT);
            }
        };
        let has_ended = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(comes_and_goes);
            }
            let has_ended = old.end(Order::HandOn);
            is_over.store(true, SeqCst);
            has_ended
        });
        ledger.holds(Invariant::Failures, has_ended, || {
            "not all shards that were to leave have ended well".to_owned()
        });
    }
}

fn connect(address: SocketAddr) -> io::Result<Client> {
    let client = Client::connect(address)?;
    client.set_read_timeout(Some(PATIENCE))?;
    Ok(client)
}

/// Which shard has served.
fn greeting(mut client: Client) -> io::Result<usize> {
    let mut shard = [0];
    client.read_exact(&mut shard)?;
    Ok(shard[0].into())
}

/// Whether it is so before patience ends.
fn wait(is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() && begun.elapsed() < PATIENCE {
        thread::sleep(MOMENT);
    }
    is_so()
}

/// One life of a shard.
async fn live(shared: Arc<Shared>) -> io::Result<()> {
    thread_local! {
        /// The same in all lives, which are on one thread.
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    let first = || shared.numbers.fetch_add(1, SeqCst);
    let number = NUMBER.get().unwrap_or_else(first);
    NUMBER.set(Some(number));
    let mut listener = shared.listener.join(number)?;
    let life = {
        let mut lives = lock(&shared.lives[number]);
        lives.push(Instant::now());
        lives.len()
    };
    // The accept stays in the kernel while this computes.
    let last = or(
        shared.serve(number, &mut listener),
        shared.obey(number, life),
    );
    let last = last.await?;
    shared.leave(number, listener, last).await;
    Ok(())
}

impl Shared {
    async fn serve(&self, number: usize, listener: &mut ShardListener) -> io::Result<Order> {
        loop {
            let (stream, guard) = listener.accept().await?;
            // Before its client may come again: all have as many then.
            drop(guard);
            self.greet(number, stream).await;
        }
    }

    async fn greet(&self, number: usize, mut stream: TcpStream) {
        // The client says whether it has heard it.
        let _ = stream.write_all(&[number as u8]).await;
        self.served.fetch_add(1, SeqCst);
    }

    /// The order by which the shard is to leave.
    async fn obey(&self, number: usize, life: usize) -> io::Result<Order> {
        let mut orders = self.orders.clone();
        let mut last = Order::Serve;
        loop {
            let order = orders.get();
            match order {
                Order::Compute(shard) if shard == number && order != last => {
                    self.computes.store(true, SeqCst);
                    while self.computes.load(SeqCst) {
                        thread::sleep(MOMENT);
                    }
                }
                Order::Fail(shard) if shard == number && life <= FAILURES => {
                    lock(&self.failed).get_or_insert_with(Instant::now);
                    return Err(io::Error::other(FAILED));
                }
                Order::HandOn | Order::End => return Ok(order),
                _ => {}
            }
            last = order;
            if orders.changed().await.is_err() {
                return Ok(Order::End);
            }
        }
    }

    /// The first gives what it accepts to the others, which accept nothing any more, until each has some; then they
    /// leave in turn, so that the last is left with it.
    async fn leave(&self, number: usize, mut listener: ShardListener, order: Order) {
        if order == Order::HandOn && number == 0 {
            let most: Vec<_> = (0..CLIENTS).map(|_| listener.count_connection()).collect();
            let accepting = self.serve(number, &mut listener);
            let enough = until(|| self.have_enough.load(SeqCst) == SHARDS - 1);
            let _ = or(accepting, async { Ok(enough.await) }).await;
            drop(most);
        } else if order == Order::HandOn {
            until(|| listener.connections() > 0).await;
            self.have_enough.fetch_add(1, SeqCst);
            until(|| self.have_left.load(SeqCst) == number).await;
        }
        for stream in listener.leave().await {
            self.greet(number, stream.bind_to_executor()).await;
        }
        self.have_left.fetch_add(1, SeqCst);
    }
}

/// Waits for a condition, but not for ever: a shard may be gone.
async fn until(is_so: impl Fn() -> bool) -> Order {
    for _ in 0..1_000 {
        if is_so() {
            break;
        }
        sleep(MOMENT).await;
    }
    Order::End
}

/// In the log, if a shard has failed as it was to.
pub(super) const FAILED: &str = "a failure that was asked for";

/// Which shard fails, and how often.
const FAILING: usize = 1;
const FAILURES: usize = 2;

/// Before the two restarts, 10 ms and twice as long, unless a second passes meanwhile.
const PAUSES: Duration = Duration::from_millis(30);

const CLIENTS: usize = 40;

/// Of clients that wait for a shard that computes: it was given sixteen, and the kernel has told it of another.
const WAITING_MAX: usize = 17;

const EVERY: Duration = Duration::from_secs(2);
const MOMENT: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(10);
