//! The kernel accepts connections for accepts that wait: how many, what becomes of those that none
//! claims, and what ends it.

use std::pin::pin;

use super::*;

/// Well beyond what a listener takes while no connection is claimed.
const MANY: usize = 200;

/// A turn of the reactor or two, long enough for it not to be over before it is waited for.
pub(super) async fn turns() {
    sleep(Duration::from_micros(50)).await;
}

/// Connects `count` clients, with turns of the reactor in between.
async fn clients(address: SocketAddr, count: usize) -> Result<Vec<std::net::TcpStream>> {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(std::net::TcpStream::connect(address)?);
        turns().await;
    }
    Ok(clients)
}

/// The other end is closed, or, if it was not accepted, gone.
pub(super) fn assert_ended(mut client: std::net::TcpStream) {
    client
        .set_read_timeout(Some(PATIENCE))
        .expect("it is not zero");
    let end = client.read_to_end(&mut Vec::new());
    let end = end.map_err(|error| error.kind());
    assert!(
        matches!(end, Ok(0) | Err(io::ErrorKind::ConnectionReset)),
        "{end:?}"
    );
}

/// Accepts a connection of each of the clients, and no other.
async fn accept_all(listener: &TcpListener, clients: &[std::net::TcpStream]) -> Result {
    let mut expected = HashSet::new();
    for client in clients {
        expected.insert(client.local_addr()?);
    }
    for _ in clients {
        let peer = listener.accept().await?.peer_addr()?;
        assert!(expected.remove(&peer), "{peer} twice, or of no client");
    }
    Ok(())
}

#[run_test(run_alone)]
async fn a_listener_without_a_waiting_task_takes_hardly_any_connection() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let before = open_descriptors();
    for _ in 0..3 {
        poll_and_drop(3, listener.accept()).await;
        let clients = clients(listener.local_addr()?, MANY).await?;
        let taken = open_descriptors() - before - clients.len();
        assert!(taken <= 20, "{taken} connections were taken for no accept");
        accept_all(&listener, &clients).await?;
    }
    back_to(before).await;
}

#[run_test(run_alone)]
async fn a_waiter_that_does_not_come_back_is_not_buried_under_connections() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let before = open_descriptors();
    for _ in 0..3 {
        let mut held = pin!(listener.accept());
        assert!(poll_once(&mut held).await.is_none());
        let mut clients = clients(listener.local_addr()?, MANY).await?;
        let taken = open_descriptors() - before - clients.len();
        assert!((1..=20).contains(&taken), "{taken} connections wait");
        let first = held.await?.peer_addr()?;
        assert_eq!(first, clients.remove(0).local_addr()?);
        accept_all(&listener, &clients).await?;
    }
    back_to(before).await;
}

/// The same for tasks that have polled and do not come back.
#[run_test(run_alone)]
async fn pollers_that_do_not_come_back_are_not_buried_under_connections() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let before = open_descriptors();
    for _ in 0..3 {
        let poller = std::future::poll_fn(|cx| listener.poll_accept(cx));
        assert!(poll_once(poller).await.is_none());
        let clients = clients(listener.local_addr()?, MANY).await?;
        let taken = open_descriptors() - before - clients.len();
        assert!((1..=20).contains(&taken), "{taken} connections wait");
        accept_all(&listener, &clients).await?;
    }
    back_to(before).await;
}

/// An accept that begins to wait while the cancellation is under way is served all the same.
#[run_test(run_alone)]
async fn accepting_goes_on_after_it_was_stopped() {
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    let address = listener.local_addr()?;
    for polls in 0..8 {
        poll_and_drop(3, listener.accept()).await;
        let early = std::net::TcpStream::connect(address)?;
        // Anywhere between the completion without a waiting accept and the end of the
        // operation.
        for _ in 0..polls {
            turns().await;
        }
        accept_all(&listener, std::slice::from_ref(&early)).await?;
        let waiting = Rc::clone(&listener);
        let waiter = spawn_local(async move { waiting.accept().await?.peer_addr() });
        for _ in 0..polls {
            turns().await;
        }
        let late = std::net::TcpStream::connect(address)?;
        assert_eq!(waiter.await?, late.local_addr()?);
    }
}

#[run_test(run_alone)]
async fn unclaimed_connections_end_with_their_listener() {
    let before = open_descriptors();
    for count in [1, 10, MANY] {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let clients = {
            let mut held = pin!(listener.accept());
            assert!(poll_once(&mut held).await.is_none());
            clients(listener.local_addr()?, count).await?
        };
        drop(listener);
        // The task goes on without a turn: the end does not wait for one.
        clients.into_iter().for_each(assert_ended);
        back_to(before).await;
    }
}

/// The next owner of the descriptor gets all connections from then on, and what was taken is
/// closed.
#[run_test(run_alone)]
async fn a_listener_that_is_given_away_takes_nothing_any_more() {
    let before = open_descriptors();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let early = {
        let mut held = pin!(listener.accept());
        assert!(poll_once(&mut held).await.is_none());
        clients(address, 3).await?
    };
    use std::os::fd::{FromRawFd, IntoRawFd};
    // SAFETY: the descriptor has just been given up by its owner.
    let plain = unsafe { std::net::TcpListener::from_raw_fd(listener.into_raw_fd()) };
    plain.set_nonblocking(true)?;
    // Where one connection is accepted at a time, the others are still there.
    while plain.accept().is_ok() {}
    early.into_iter().for_each(assert_ended);
    for client in clients(address, 20).await? {
        assert_eq!(plain.accept()?.1, client.local_addr()?);
    }
    drop(plain);
    back_to(before).await;
}

#[run_test(run_alone)]
async fn accepts_given_up_under_load_leave_no_descriptor() {
    const CONNECTIONS: usize = 1000;
    let before = open_descriptors();
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    let address = listener.local_addr()?;
    let clients = std::thread::spawn(move || {
        (0..CONNECTIONS)
            .map(|_| {
                let mut client = std::net::TcpStream::connect(address)?;
                // Waits for the other end to be closed.
                client.read(&mut [0; 1])
            })
            .collect::<io::Result<Vec<_>>>()
    });
    let claimed = Rc::new(std::cell::Cell::new(0));
    let acceptors: Vec<_> = (0..4_usize)
        .map(|patience| {
            let (listener, claimed) = (Rc::clone(&listener), Rc::clone(&claimed));
            spawn_local(async move {
                while claimed.get() < CONNECTIONS {
                    let mut accept = pin!(listener.accept());
                    for _ in 0..=patience {
                        if let Some(server) = poll_once(&mut accept).await {
                            drop(server.expect("accepting works"));
                            claimed.set(claimed.get() + 1);
                            break;
                        }
                        glommio::executor().yield_task_queue_now().await;
                    }
                }
            })
        })
        .collect();
    join_all(acceptors).await;
    let ends = clients.join().expect("the clients do not panic")?;
    assert_eq!(ends, [0; CONNECTIONS], "each was closed by its owner");
    drop(listener);
    back_to(before).await;
}

/// The limit is reached while the kernel accepts: the waiting accepts fail once, and when there are
/// descriptors again, the next accept gets a connection.
#[run_test(alone)]
fn accepting_goes_on_after_descriptors_ran_out() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("every process has a limit");
    run(async {
        let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
        let address = listener.local_addr()?;
        let before = open_descriptors();
        let limit = before as u64 + 30;
        setrlimit(Resource::RLIMIT_NOFILE, limit.min(hard), hard).expect("down is always allowed");
        for _ in 0..3 {
            // The kernel accepts, and goes on.
            let first = clients(address, 1).await?;
            accept_all(&listener, &first).await?;
            let waiting = Rc::clone(&listener);
            let waiter = spawn_local(async move { waiting.accept().await });
            turns().await;
            let mut clients = clients_without_descriptors(address, 3)?;
            let error = waiter.await.expect_err("no descriptor is left");
            assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            for _ in 0..3 {
                let error = listener.accept().await.expect_err("none is left");
                assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            }
            clients.hoard.clear();
            accept_all(&listener, &clients.connected).await?;
            drop((clients, first));
            back_to(before).await;
        }
        // An error that comes while no accept waits is out of date when one does.
        poll_and_drop(3, listener.accept()).await;
        let mut clients = clients_without_descriptors(address, 3)?;
        turns().await;
        clients.hoard.clear();
        accept_all(&listener, &clients.connected).await?;
        Ok(())
    });
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("back to where it was");
}

pub(super) struct Hoarded {
    pub(super) connected: Vec<std::net::TcpStream>,
    /// All descriptors that were left.
    pub(super) hoard: Vec<File>,
}

/// Takes all descriptors, and only then connects.
pub(super) fn clients_without_descriptors(
    address: SocketAddr,
    count: usize,
) -> io::Result<Hoarded> {
    let sockets = (0..count)
        .map(|_| socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None))
        .collect::<io::Result<Vec<_>>>()?;
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    let connect = |socket: socket2::Socket| {
        socket.connect(&address.into())?;
        Ok(socket.into())
    };
    Ok(Hoarded {
        connected: sockets
            .into_iter()
            .map(connect)
            .collect::<io::Result<_>>()?,
        hoard,
    })
}

/// The listener outlives its executor, which had taken connections for it.
#[run_test(alone)]
fn a_listener_without_its_executor_is_harmless() {
    let before = open_descriptors();
    for count in [0, 1, 20] {
        let executor = LocalExecutor::default();
        let (listener, clients) = executor.run(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
            let address = listener.local_addr().expect("it is bound");
            let mut held = Box::pin(listener.accept());
            assert!(poll_once(&mut held).await.is_none());
            let clients = clients(address, count).await.expect("it listens");
            drop(held);
            // Completes while the executor is taken down, if at all.
            let last = std::net::TcpStream::connect(address).expect("it listens");
            (listener, (clients, last))
        });
        drop(executor);
        run(async {
            // What was taken is there, and then no executor takes more.
            let mut taken = 0;
            let error = loop {
                match listener.shared_accept().await {
                    Ok(_) => taken += 1,
                    Err(error) => break error,
                }
            };
            assert!(taken <= count + 1, "{taken} of {count}");
            let GlommioError::IoError(error) = error else {
                panic!("not an I/O error: {error}");
            };
            assert_eq!(error.kind(), io::ErrorKind::NotConnected);
            Ok(())
        });
        drop((listener, clients));
        assert_eq!(open_descriptors(), before);
    }
}
