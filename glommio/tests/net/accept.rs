//! Many tasks that accept from one listener, and some that give up.

use std::io::Write;

use glommio::timer::timeout;

use super::{PATIENCE, run};
use crate::common::prelude::*;

/// `count` clients, each of which sends its number. They are connected, and open, when the returned
/// thread is joined.
fn numbered_clients(
    address: SocketAddr,
    count: u32,
) -> std::thread::JoinHandle<Vec<std::net::TcpStream>> {
    std::thread::spawn(move || {
        (0..count)
            .map(|number| {
                let mut client =
                    std::net::TcpStream::connect(address).expect("the listener is bound");
                client
                    .write_all(&number.to_be_bytes())
                    .expect("four bytes fit");
                client
            })
            .collect()
    })
}

async fn number_of(mut server: TcpStream) -> u32 {
    let mut bytes = [0; 4];
    server
        .read_exact(&mut bytes)
        .await
        .expect("each client sends its number");
    u32::from_be_bytes(bytes)
}

#[run_test]
async fn a_poller_that_never_returns_takes_nothing_from_the_others() {
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    for _ in 0..64_000 {
        let polled = poll_once(poll_fn(|cx| listener.poll_shared_accept(cx))).await;
        assert!(polled.is_none());
    }
    let waiting = Rc::clone(&listener);
    let task = spawn_local(async move { waiting.accept().await });
    let client = TcpStream::connect(listener.local_addr()?).await?;
    assert_eq!(task.await?.peer_addr()?, client.local_addr()?);
}

#[run_test]
async fn a_waiter_that_is_kept_and_not_polled_keeps_no_connection() {
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    let mut kept = Vec::new();
    for _ in 0..3 {
        let mut accept = Box::pin(listener.accept());
        assert!(poll_once(&mut accept).await.is_none(), "there is no client");
        kept.push(accept);
    }
    let last = spawn_local({
        let listener = Rc::clone(&listener);
        async move { number_of(listener.accept().await.expect("there is one client")).await }
    });
    let clients = numbered_clients(listener.local_addr()?, 1);
    assert_eq!(timeout(PATIENCE, async { Ok(last.await) }).await?, 0);
    clients.join().expect("it connects");
    drop(kept);
}

#[run_test]
async fn a_connection_accepted_for_a_dropped_future_goes_to_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    for comes_late in [false, true] {
        let mut accept = Box::pin(listener.accept());
        assert!(poll_once(&mut accept).await.is_none());
        sleep(Duration::from_millis(1)).await;
        let mut accept = Some(accept);
        if comes_late {
            accept = None;
        }
        let client = std::net::TcpStream::connect(listener.local_addr()?)?;
        // Long enough for the connection to be taken in; the waiting task is woken and not
        // polled.
        sleep(Duration::from_millis(20)).await;
        drop(accept);
        let server = listener.accept().await?;
        assert_eq!(server.peer_addr()?, client.local_addr()?);
    }
}

/// A listener whose accept waits is gone at once when it is dropped, although the task goes on.
#[run_test]
async fn a_dropped_listener_gives_its_port_back_at_once() {
    // An address at which no other test takes the port meanwhile.
    let listener = TcpListener::bind("127.0.0.2:0")?;
    let address = listener.local_addr()?;
    super::abandon(listener.accept()).await;
    drop(listener);
    // Without SO_REUSEPORT: refused as long as the other one listens.
    std::net::TcpListener::bind(address)?;
}

/// Each connection goes to one of the listeners on the address.
#[test]
fn listeners_on_one_address_share_the_connections() {
    const LISTENERS: usize = 3;
    const CONNECTIONS: u32 = 300;
    let (numbers, received) = std::sync::mpsc::channel();
    let is_over = Arc::new(AtomicBool::new(false));
    let (_keeps_the_port, address) = free_shared_port();
    let (listening, all_listen) = std::sync::mpsc::channel();
    let siblings: Vec<_> = (0..LISTENERS)
        .map(|_| {
            let (numbers, listening) = (numbers.clone(), listening.clone());
            let is_over = Arc::clone(&is_over);
            spawn_executor(move || async move {
                let listener = TcpListener::bind(address).expect("the port is shared");
                listening.send(()).expect("the test waits for it");
                let mut accepted = 0;
                while !is_over.load(Ordering::Acquire) {
                    // Given up, over and over, whether a connection comes or not.
                    let waiting = timeout(Duration::from_millis(1), listener.accept());
                    match waiting.await {
                        Ok(server) => {
                            let number = number_of(server).await;
                            numbers.send(number).expect("the test waits for it");
                            accepted += 1;
                        }
                        Err(GlommioError::TimedOut(_)) => {}
                        Err(error) => panic!("accepting failed: {error}"),
                    }
                }
                accepted
            })
        })
        .collect();
    (0..LISTENERS).for_each(|_| all_listen.recv().expect("each comes to listen"));
    let clients = numbered_clients(address, CONNECTIONS);
    let accepted: HashSet<u32> = (0..CONNECTIONS)
        .map(|_| received.recv_timeout(PATIENCE).expect("none is lost"))
        .collect();
    assert_eq!(accepted, (0..CONNECTIONS).collect());
    is_over.store(true, Ordering::Release);
    let shares: Vec<u32> = siblings
        .into_iter()
        .map(|sibling| sibling.join().expect("it does not panic"))
        .collect();
    assert_eq!(shares.iter().sum::<u32>(), CONNECTIONS);
    // By a hash of the client's port: with so many clients, each executor gets some.
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    clients.join().expect("the clients do not panic");
}

/// A port for several listeners, which stays theirs as long as the socket lives.
fn free_shared_port() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
        .expect("a socket can be made");
    socket.set_reuse_port(true).expect("it is an option");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).expect("there is a free port");
    let address = socket.local_addr().expect("it is bound").as_socket();
    (socket, address.expect("it is an internet socket"))
}

/// Any number of tasks may poll one listener, by each method, and go on polling.
#[run_test]
async fn all_tasks_that_poll_get_connections() {
    const TASKS: u32 = 50;
    const EACH: u32 = 4;
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let listener = Rc::clone(&listener);
            spawn_local(async move {
                let mut numbers = Vec::new();
                for _ in 0..EACH {
                    let server = match task % 4 {
                        0 => listener.accept().await,
                        1 => poll_fn(|cx| listener.poll_accept(cx)).await,
                        2 => listener.incoming().next().await.expect("never ends"),
                        _ => {
                            let shared = poll_fn(|cx| listener.poll_shared_accept(cx)).await;
                            shared.map(|accepted| accepted.bind_to_executor())
                        }
                    };
                    numbers.push(number_of(server.expect("there is one for each")).await);
                }
                numbers
            })
        })
        .collect();
    let clients = numbered_clients(listener.local_addr()?, TASKS * EACH);
    let mut numbers = HashSet::new();
    for task in tasks {
        numbers.extend(task.await);
    }
    assert_eq!(numbers, (0..TASKS * EACH).collect());
    clients.join().expect("the clients do not panic");
}

/// Also if the environment names unknown features.
#[test]
fn what_is_done_without_is_not_used() {
    let without = [("GLOMMIO_RING_WITHOUT", "warp,poll_multi")];
    in_child_with(&without, || {
        let executor = format!("{:?}", LocalExecutor::default());
        assert!(!executor.contains("poll_multi"), "{executor}");
    });
}
