//! A listener of several executors that gives each connection to the least loaded.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicU64;

use glommio::net::{BalancedTcpListener, ConnectionGuard, ShardListener, ShardLoad};

use super::{PATIENCE, Result, abandon, run};
use crate::common::prelude::*;

const SHARDS: usize = 4;

/// Executors that greet each client with their number and serve it until it has gone, and end with
/// a client that sends `S` to each.
struct Server {
    address: SocketAddr,
    executors: Vec<ExecutorJoinHandle<()>>,
}

/// A client's end, and the shard that serves it.
struct Client {
    stream: TcpStream,
    shard: usize,
}

impl Server {
    /// `arrived` is called with the shard and the first byte of each client before it is greeted.
    fn start(
        listener: &BalancedTcpListener,
        arrived: impl Fn(usize, u8) + Send + Clone + 'static,
    ) -> Server {
        let address = listener.local_addr().expect("it is bound");
        let joined = Arc::new(AtomicUsize::new(0));
        let executors = (0..SHARDS).map(|shard| {
            let (listener, arrived, joined) = (listener.clone(), arrived.clone(), joined.clone());
            let run = move || async move {
                let mut accepts = listener.join(shard).expect("it joins");
                joined.fetch_add(1, Ordering::SeqCst);
                loop {
                    let accepted = accepts.accept().await;
                    let (mut stream, guard) = accepted.expect("there are descriptors");
                    let mut first = [0];
                    stream
                        .read_exact(&mut first)
                        .await
                        .expect("the client says something");
                    if first == *b"S" {
                        return drop(accepts.leave().await);
                    }
                    arrived(shard, first[0]);
                    let serving = async move {
                        stream.write_all(&[shard as u8]).await?;
                        while stream.read(&mut [0; 64]).await? > 0 {}
                        drop(guard);
                        // After the guard is gone the client may know.
                        stream.close().await
                    };
                    spawn_local(serving).detach();
                }
            };
            spawn_executor(run)
        });
        let executors = executors.collect();
        while joined.load(Ordering::SeqCst) < SHARDS {
            thread::sleep(Duration::from_millis(1));
        }
        Server { address, executors }
    }

    fn connect(&self, first: u8) -> Client {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("it is not zero");
        stream.write_all(&[first]).expect("it is open");
        let mut shard = [0];
        stream
            .read_exact(&mut shard)
            .expect("it is accepted and greeted");
        let shard = usize::from(shard[0]);
        Client { stream, shard }
    }

    /// One client for each executor.
    fn stop(self) {
        let mut clients = Vec::new();
        for _ in 0..SHARDS {
            let mut client = TcpStream::connect(self.address).expect("it listens");
            client.write_all(b"S").expect("it is open");
            clients.push(client);
        }
        for executor in self.executors {
            executor.join().expect("it has ended");
        }
    }
}

impl Client {
    /// Until the shard has taken note.
    fn leave(mut self) {
        self.stream.shutdown(Shutdown::Write).expect("it is open");
        let rest = self.stream.read_to_end(&mut Vec::new());
        assert_eq!(rest.expect("the shard closes"), 0);
    }
}

fn per_shard(clients: &[Client]) -> Vec<usize> {
    let mut counts = BTreeMap::from_iter((0..SHARDS).map(|shard| (shard, 0)));
    for client in clients {
        *counts.entry(client.shard).or_insert(0) += 1;
    }
    counts.into_values().collect()
}

/// Clients that connect at the same time are accepted by several executors at the same time.
#[test]
fn a_crowd_that_comes_at_once_is_shared_out_evenly() {
    let listener = BalancedTcpListener::bind("127.0.0.1:0").expect("there is a port");
    let server = Server::start(&listener, |_, _| {});
    let clients: Vec<_> = thread::scope(|scope| {
        let crowd: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| [(); 8].map(|()| server.connect(b'x'))))
            .collect();
        crowd
            .into_iter()
            .flat_map(|it| it.join().expect("all are greeted"))
            .collect()
    });
    assert_eq!(per_shard(&clients), [16; SHARDS]);
    for client in clients {
        client.leave();
    }
    server.stop();
}

#[test]
fn connections_go_where_others_have_gone() {
    let listener = BalancedTcpListener::bind("127.0.0.1:0").expect("there is a port");
    let server = Server::start(&listener, |_, _| {});
    let clients: Vec<_> = (0..16).map(|_| server.connect(b'x')).collect();
    let (left, mut stayed): (Vec<_>, Vec<_>) = clients.into_iter().partition(|it| it.shard == 2);
    for client in left {
        client.leave();
    }
    assert_eq!(per_shard(&stayed), [4, 4, 0, 4]);
    for _ in 0..4 {
        let client = server.connect(b'x');
        assert_eq!(client.shard, 2);
        stayed.push(client);
    }
    for client in stayed {
        client.leave();
    }
    server.stop();
}

/// Most clients cost little and some a lot. The count alone would leave that to chance.
#[test]
fn with_uneven_loads_the_busiest_is_little_above_the_mean() {
    let loads: Arc<[AtomicU64; SHARDS]> = Arc::default();
    let weight = {
        let loads = loads.clone();
        move |load: ShardLoad| loads[load.shard].load(Ordering::SeqCst)
    };
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let listener = BalancedTcpListener::with_weight(socket, weight);
    let arrived = {
        let loads = loads.clone();
        move |shard: usize, cost: u8| {
            loads[shard].fetch_add(cost.into(), Ordering::SeqCst);
        }
    };
    let server = Server::start(&listener, arrived);
    let costs = |number: usize| {
        if number % 7 == 3 {
            40
        } else {
            1 + (number * number % 5) as u8
        }
    };
    let clients: Vec<_> = (0..64)
        .map(|number| server.connect(costs(number)))
        .collect();
    let loads = loads.each_ref().map(|it| it.load(Ordering::SeqCst));
    let (total, busiest) = (
        loads.iter().sum::<u64>(),
        *loads.iter().max().expect("four"),
    );
    assert!(10 * busiest * SHARDS as u64 <= 13 * total, "{loads:?}");
    for client in clients {
        client.leave();
    }
    server.stop();
}

/// Connections of the same listener, on one executor, that never meet a second thread.
pub(super) fn two_on_one() -> Result<(BalancedTcpListener, ShardListener, ShardListener)> {
    let listener = BalancedTcpListener::bind("127.0.0.1:0")?;
    let (one, other) = (listener.join(0)?, listener.join(1)?);
    Ok((listener, one, other))
}

pub(super) fn client_of(listener: &BalancedTcpListener) -> Result<TcpStream> {
    let client = TcpStream::connect(listener.local_addr()?)?;
    client.set_read_timeout(Some(PATIENCE))?;
    Ok(client)
}

/// Accepts, and drops the future if nothing comes of it.
pub(super) async fn accept_for_a_while(
    shard: &mut ShardListener,
) -> Option<Result<(glommio::net::TcpStream, ConnectionGuard)>> {
    let accept = async { Some(shard.accept().await) };
    let for_a_while = async {
        sleep(Duration::from_millis(1)).await;
        None
    };
    or(accept, for_a_while).await
}

/// Until `one` has accepted a connection for `other`.
pub(super) async fn hand_on(one: &mut ShardListener, other: &ShardListener) {
    while other.connections() == 0 {
        assert!(accept_for_a_while(one).await.is_none());
    }
}

/// The executor waits in `accept`, and hears of what another has accepted for it.
#[run_test]
async fn an_executor_is_woken_for_what_another_has_accepted() {
    let (listener, mut one, mut other) = two_on_one()?;
    // Nothing comes to it but through the first.
    let _busy = [(); 3].map(|()| one.count_connection());
    let client = client_of(&listener)?;
    let waiting = spawn_local(async move { Some(other.accept().await) });
    let hands_on = async {
        drop(one.accept().await);
        None
    };
    let served = or(waiting, hands_on).await.expect("the other has fewer");
    assert_eq!(served?.0.peer_addr()?, client.local_addr()?);
}

/// The kernel tells one of those that wait of a connection: the first of them here, which computes, and then
/// does not wait any more.
#[test]
fn of_a_connection_that_an_executor_was_told_of_and_gives_up_another_is_told() {
    let listener = BalancedTcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let (events, told) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let waits_in_the_kernel = Duration::from_millis(20);
    let first = listener.clone();
    let says = events.clone();
    let first = LocalExecutorBuilder::default().spawn(move || async move {
        let mut shard = first.join(0).expect("it joins");
        {
            let mut accept = pin!(shard.accept());
            assert!(poll_once(&mut accept).await.is_none());
            sleep(waits_in_the_kernel).await;
            says.send("the first waits").expect("the test listens");
            may_go_on.recv().expect("a client has come");
        }
        // It stays, and does not accept.
        while may_go_on.try_recv().is_err() {
            sleep(Duration::from_millis(1)).await;
        }
        drop(shard);
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok("the first waits"));
    let second = LocalExecutorBuilder::default().spawn(move || async move {
        let mut shard = listener.join(1).expect("it joins");
        let mut accept = pin!(shard.accept());
        assert!(poll_once(&mut accept).await.is_none());
        sleep(waits_in_the_kernel).await;
        events.send("the second waits").expect("the test listens");
        accept.await.expect("there are descriptors");
        events.send("accepted").expect("the test listens");
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok("the second waits"));
    let client = TcpStream::connect(address).expect("it listens");
    go_on.send(()).expect("the first waits for this");
    assert_eq!(told.recv_timeout(PATIENCE), Ok("accepted"));
    go_on.send(()).expect("the first waits for this");
    for executor in [first, second] {
        let executor = executor.expect("an executor starts");
        executor.join().expect("it has ended");
    }
    drop(client);
}

#[run_test]
async fn an_accept_that_is_dropped_loses_no_connection() {
    let (listener, mut one, mut other) = two_on_one()?;
    abandon(one.accept()).await;
    abandon(other.accept()).await;
    let clients = [
        client_of(&listener)?,
        client_of(&listener)?,
        client_of(&listener)?,
    ];
    sleep(Duration::from_millis(3)).await;
    let mut served = Vec::new();
    let mut guards = Vec::new();
    while served.len() < clients.len() {
        for shard in [&mut one, &mut other] {
            if let Some(accepted) = accept_for_a_while(shard).await {
                let (stream, guard) = accepted?;
                served.push(stream.peer_addr()?);
                guards.push(guard);
            }
        }
    }
    served.sort();
    let mut expected = clients
        .iter()
        .map(TcpStream::local_addr)
        .collect::<std::io::Result<Vec<_>>>()?;
    expected.sort();
    assert_eq!(served, expected);
    assert!(one.connections().abs_diff(other.connections()) <= 1);
}

/// A weight that panics does so where the connection was accepted, and breaks nothing else.
#[test]
fn a_weight_that_panics_leaves_the_listener_usable() {
    let calls = Arc::new(AtomicUsize::new(0));
    let weight = {
        let calls = calls.clone();
        move |load: ShardLoad| {
            assert_ne!(calls.fetch_add(1, Ordering::SeqCst), 0, "the first time");
            load.connections as u64
        }
    };
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let listener = BalancedTcpListener::with_weight(socket, weight);
    run(async {
        let mut shard = listener.join(0)?;
        let mut refused = client_of(&listener)?;
        let caught = {
            let accept = std::panic::AssertUnwindSafe(shard.accept());
            futures_lite::FutureExt::catch_unwind(accept).await
        };
        assert!(caught.is_err());
        assert_eq!(refused.read(&mut [0])?, 0);
        let client = client_of(&listener)?;
        let (stream, _guard) = shard.accept().await?;
        assert_eq!(stream.peer_addr()?, client.local_addr()?);
        Ok(())
    });
}

struct Loud;

impl Wake for Loud {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

#[run_test]
async fn a_waker_that_panics_stops_no_other_shard() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0")?;
    let second_only = |load: ShardLoad| u64::from(load.shard == 0);
    let listener = BalancedTcpListener::with_weight(socket, second_only);
    let (mut first, mut second) = (listener.join(0)?, listener.join(1)?);
    // Given up, it leaves its waker behind.
    let waker = Waker::from(Arc::new(Loud));
    let polled = pin!(second.accept()).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());

    let client = TcpStream::connect(listener.local_addr()?)?;
    let mut accept = Box::pin(first.accept());
    while second.connections() == 0 {
        assert!(
            poll_once(&mut accept).await.is_none(),
            "all are for the second"
        );
        sleep(Duration::from_millis(1)).await;
    }
    let (stream, _guard) = second.accept().await?;
    assert_eq!(stream.peer_addr()?, client.local_addr()?);
}

/// Each is closed before the next comes, so that all executors have equally many: none.
#[test]
fn short_connections_one_after_the_other_take_turns() {
    let listener = BalancedTcpListener::bind("127.0.0.1:0").expect("there is a port");
    let server = Server::start(&listener, |_, _| {});
    let mut counts = [0; SHARDS];
    for _ in 0..10 * SHARDS {
        let client = server.connect(b'x');
        counts[client.shard] += 1;
        client.leave();
    }
    assert_eq!(counts, [10; SHARDS]);
    server.stop();
}

/// The kernel tells the first, which computes, of one client; the second takes it, and does not come back. On a ring of
/// another kind the first has the client itself as soon as its thread is in the kernel.
#[run_test(in_child_with(&[("GLOMMIO_RING", "defer")]))]
fn a_client_is_accepted_by_a_third_executor_when_one_computes_and_one_does_not_come_back() {
    let listener = BalancedTcpListener::bind("127.0.0.1:0").expect("there is a port");
    let (says, hears) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let in_the_kernel = Duration::from_millis(20);
    let first = listener.clone();
    let computes = LocalExecutorBuilder::default().spawn(move || async move {
        let mut shard = first.join(0).expect("it joins");
        let mut accept = pin!(shard.accept());
        assert!(poll_once(&mut accept).await.is_none());
        sleep(in_the_kernel).await;
        says.send(()).expect("the test listens");
        let _ = may_go_on.recv();
    });
    assert_eq!(hears.recv_timeout(PATIENCE), Ok(()));
    run(async {
        let (mut second, mut third) = (listener.join(1)?, listener.join(2)?);
        let mut accepts = pin!(second.accept());
        assert!(poll_once(&mut accepts).await.is_none());
        sleep(in_the_kernel).await;
        let mut waits = pin!(third.accept());
        assert!(poll_once(&mut waits).await.is_none());
        sleep(in_the_kernel).await;
        let _clients = (client_of(&listener)?, client_of(&listener)?);
        let _served = accepts.await?;
        let _served = waits.await?;
        Ok(())
    });
    drop(go_on);
    let computes = computes.expect("an executor starts");
    computes.join().expect("it has ended");
}

#[run_test]
async fn an_executor_that_does_not_take_what_it_is_given_gets_no_more() {
    const CLIENTS: usize = 60;
    let (listener, mut one, computes) = two_on_one()?;
    let mut served = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(client_of(&listener)?);
    }
    while served.len() < CLIENTS - 16 {
        served.push(one.accept().await?);
    }
    assert_eq!(computes.connections(), 16);
    drop(computes);
    while served.len() < CLIENTS {
        served.push(one.accept().await?);
    }
}
