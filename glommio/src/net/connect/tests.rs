//! Host names: looked up elsewhere, so that the executor goes on.
//!
//! `localhost` is looked up in no time. What shows that a lookup runs on a thread for lookups is
//! that it waits for one: they are all kept busy until the test says otherwise.

use std::cell::RefCell;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use std::{io, vec};

use futures_lite::future::poll_once;

use crate::GlommioError;
use crate::executor::{LocalExecutor, Task, spawn_local};
use crate::net::{TcpListener, TcpStream, UdpSocket};
use crate::reactor::{Reactor, current};
use crate::timer::{sleep, timeout};

#[path = "../../../tests/common/deaf.rs"]
mod deaf;
use deaf::{Deaf, closed_port};

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

/// Longer than any test should take, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    LocalExecutor::default()
        .run(async { timeout(PATIENCE, test).await })
        .expect("the test's operations succeed in time")
}

fn io_kind(error: &GlommioError<()>) -> io::ErrorKind {
    match error {
        GlommioError::IoError(error) => error.kind(),
        other => panic!("not an I/O error: {other}"),
    }
}

/// Polls `future`, which must have to wait, and drops it.
async fn abandon<F: Future>(future: F) {
    let mut future = Box::pin(future);
    assert!(
        poll_once(&mut future).await.is_none(),
        "there is nothing to be done yet"
    );
}

fn reactor() -> Rc<Reactor> {
    current::current().upgrade().expect("the executor runs")
}

/// The lookups of an executor, with all threads in use.
struct BusyPool {
    go_on: Vec<mpsc::Sender<()>>,
    calls: Vec<Task<io::Result<()>>>,
}

impl BusyPool {
    const THREADS: usize = 4;

    async fn new() -> Self {
        let mut busy = BusyPool {
            go_on: Vec::new(),
            calls: Vec::new(),
        };
        for _ in 0..Self::THREADS {
            let (go_on, told) = mpsc::channel::<()>();
            let (begun, has_begun) = mpsc::channel();
            busy.go_on.push(go_on);
            busy.calls
                .push(spawn_local(reactor().lookups().call(move || {
                    begun.send(()).expect("the test waits");
                    // Until it is told, or the test has failed.
                    let _ = told.recv();
                })));
            has_begun.recv().expect("the call begins");
        }
        busy
    }

    async fn release(self) {
        for go_on in self.go_on {
            go_on.send(()).expect("the call waits");
        }
        for call in self.calls {
            call.await.expect("it was made");
        }
    }
}

/// Asserts that `operation` waits for the pool, and nothing else for it; then lets it end.
async fn waits_for_the_pool<T>(pool: BusyPool, operation: impl Future<Output = T>) -> T {
    let mut operation = Box::pin(operation);
    for _ in 0..10 {
        assert!(
            poll_once(&mut operation).await.is_none(),
            "the lookup waits for a thread"
        );
        sleep(Duration::from_millis(2)).await;
    }
    pool.release().await;
    operation.await
}

/// A listener that is connected to as `localhost`.
fn listener() -> Result<(TcpListener, u16)> {
    let listener = TcpListener::bind("localhost:0")?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

#[run_test]
async fn a_name_is_looked_up_on_a_thread_for_lookups() {
    let (listener, port) = listener()?;
    let pool = BusyPool::new().await;
    let connect = TcpStream::connect(format!("localhost:{port}"));
    let client = waits_for_the_pool(pool, connect).await?;
    assert_eq!(client.peer_addr()?, listener.local_addr()?);
    assert_eq!(listener.accept().await?.peer_addr()?, client.local_addr()?);
}

#[run_test]
async fn what_needs_no_lookup_does_not_wait_for_the_pool() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let SocketAddr::V4(v4) = address else {
        panic!("bound to IPv4: {address}");
    };
    let ip = IpAddr::from(*v4.ip());
    let pool = BusyPool::new().await;
    TcpStream::connect(address).await?;
    TcpStream::connect(v4).await?;
    TcpStream::connect((ip, address.port())).await?;
    TcpStream::connect(&[address][..]).await?;
    TcpStream::connect(address.to_string()).await?;
    TcpStream::connect(address.to_string().as_str()).await?;
    TcpStream::connect(("127.0.0.1", address.port())).await?;
    TcpStream::connect((String::from("127.0.0.1"), address.port())).await?;
    TcpStream::connect_timeout(&address.to_string(), PATIENCE).await?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.send_to(b"x", ("127.0.0.1", address.port())).await?;
    socket.connect(address.to_string()).await?;
    assert_eq!(socket.peer_addr()?, address);
    pool.release().await;
}

#[run_test]
async fn datagram_sockets_look_names_up_there_too() {
    let receiver = UdpSocket::bind("localhost:0")?;
    let port = receiver.local_addr()?.port();
    let sender = UdpSocket::bind("localhost:0")?;
    let mut buf = [0; 16];

    let pool = BusyPool::new().await;
    let send = sender.send_to(b"by name", ("localhost", port));
    assert_eq!(waits_for_the_pool(pool, send).await?, 7);
    let (length, from) = receiver.recv_from(&mut buf).await?;
    assert_eq!(&buf[..length], b"by name");
    assert_eq!(from, sender.local_addr()?);

    let pool = BusyPool::new().await;
    waits_for_the_pool(pool, sender.connect(format!("localhost:{port}"))).await?;
    assert_eq!(sender.peer_addr()?, receiver.local_addr()?);
}

#[run_test]
async fn a_connect_dropped_during_the_lookup_has_changed_nothing() {
    let socket = UdpSocket::bind("localhost:0")?;
    let (listener, port) = listener()?;
    let pool = BusyPool::new().await;
    abandon(socket.connect(("localhost", port))).await;
    abandon(socket.send_to(b"x", ("localhost", port))).await;
    abandon(TcpStream::connect(("localhost", port))).await;
    pool.release().await;
    // Behind those lookups in the queue.
    reactor().lookups().call(|| ()).await?;
    socket.peer_addr().expect_err("it was not connected");
    abandon(listener.accept()).await;
}

#[test]
fn an_executor_does_not_wait_for_the_lookups_of_its_tasks() {
    let (go_on, told) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let ended = Arc::new(AtomicUsize::new(0));
    let end = Arc::clone(&ended);
    let executor_of_test = LocalExecutor::default();
    executor_of_test.run(async {
        spawn_local(reactor().lookups().call(move || {
            begun.send(()).expect("the test waits");
            let _ = told.recv();
            end.fetch_add(1, Ordering::SeqCst);
        }))
        .detach();
        for _ in 0..10 {
            spawn_local(TcpStream::connect("localhost:1")).detach();
        }
        sleep(Duration::from_millis(1)).await;
        has_begun.recv().expect("the call begins");
    });
    drop(executor_of_test);
    assert_eq!(ended.load(Ordering::SeqCst), 0, "the call still runs");
    go_on.send(()).expect("the call waits to be told");
    let started = Instant::now();
    while ended.load(Ordering::SeqCst) == 0 {
        assert!(started.elapsed() < PATIENCE, "the call ends by itself");
        thread::sleep(Duration::from_millis(1));
    }
}

/// What the standard library says of `address`, to be compared with.
fn errors_of(address: impl ToSocketAddrs) -> (io::ErrorKind, String) {
    let Err(error) = address.to_socket_addrs() else {
        panic!("it is resolved by the standard library");
    };
    (error.kind(), error.to_string())
}

#[run_test]
async fn the_error_is_that_of_the_resolver() {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    // None of these gets as far as the network.
    let label_too_long = format!("{}.invalid:80", "x".repeat(300));
    for name in [
        "no port",
        "no.number:port",
        "nul\0byte:80",
        "",
        &label_too_long,
    ] {
        let (kind, text) = errors_of(name);
        let checked = |error: GlommioError<()>| {
            assert_eq!(io_kind(&error), kind, "{name}");
            assert!(error.to_string().contains(&text), "{error} is not {text}");
        };
        checked(TcpStream::connect(name).await.expect_err("no such host"));
        let limited = TcpStream::connect_timeout(name, PATIENCE).await;
        checked(limited.expect_err("no such host"));
        checked(socket.connect(name).await.expect_err("no such host"));
        checked(socket.send_to(b"", name).await.expect_err("no such host"));
    }
    assert_eq!(errors_of("no port").0, io::ErrorKind::InvalidInput);
}

#[run_test]
async fn the_time_limit_covers_the_lookup() {
    let (_listener, port) = listener()?;
    let pool = BusyPool::new().await;
    let limit = Duration::from_millis(20);
    let started = Instant::now();
    let connect = TcpStream::connect_timeout(("localhost", port), limit).await;
    assert!(started.elapsed() >= limit);
    let error = connect.expect_err("the lookup does not even begin");
    assert_eq!(io_kind(&error), io::ErrorKind::TimedOut);
    pool.release().await;
}

#[run_test]
async fn an_address_that_does_not_answer_leaves_time_for_the_next() {
    let deaf = Deaf::new();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let limit = Duration::from_secs(2);
    let started = Instant::now();
    let addresses = [closed_port(), deaf.address, address];
    let client = TcpStream::connect_timeout(&addresses[..], limit).await?;
    assert_eq!(client.peer_addr()?, address);
    assert!(
        started.elapsed() >= limit / 3,
        "the second one had its share"
    );
    let started = Instant::now();
    let addresses = [deaf.address, deaf.address];
    let limit = Duration::from_millis(40);
    let error = TcpStream::connect_timeout(&addresses[..], limit).await;
    assert_eq!(
        io_kind(&error.expect_err("none of them answers")),
        io::ErrorKind::TimedOut
    );
    assert!(started.elapsed() >= limit);
}

/// An address of the caller's own making: says where it is asked.
struct Recorder<'a> {
    addresses: Vec<SocketAddr>,
    asked_on: &'a RefCell<Vec<ThreadId>>,
}

impl ToSocketAddrs for Recorder<'_> {
    type Iter = vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        self.asked_on.borrow_mut().push(thread::current().id());
        Ok(self.addresses.clone().into_iter())
    }
}

#[run_test]
async fn an_unknown_type_is_asked_once_and_here() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let asked_on = RefCell::new(Vec::new());
    let recorder = || Recorder {
        addresses: vec![closed_port(), listener.local_addr().expect("bound")],
        asked_on: &asked_on,
    };
    let here = thread::current().id();
    let pool = BusyPool::new().await;
    let client = TcpStream::connect(recorder()).await?;
    assert_eq!(client.peer_addr()?, listener.local_addr()?);
    TcpStream::connect_timeout(recorder(), PATIENCE).await?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.send_to(b"", recorder()).await?;
    socket.connect(&recorder()).await?;
    assert_eq!(asked_on.take(), [here; 4]);
    pool.release().await;
}

#[run_test]
async fn a_datagram_goes_to_the_first_address_and_a_peer_is_one_that_will_do() {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let address = receiver.local_addr()?;
    let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], address.port()));
    let other = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.send_to(b"first", &[address, other][..]).await?;
    let mut buf = [0; 8];
    assert_eq!(receiver.recv_from(&mut buf).await?.0, 5);
    let wrong_family = socket.send_to(b"first", &[v6, address][..]).await;
    wrong_family.expect_err("only the first address is used");
    socket.connect(&[v6, address, other][..]).await?;
    assert_eq!(socket.peer_addr()?, address);
    let error = socket.connect(&[v6][..]).await.expect_err("no family fits");
    assert_eq!(error.raw_os_error(), Some(libc::EAFNOSUPPORT));
}
