//! Accepting without descriptors: an error for an accept that waits while a client is there, and
//! for no other.

use std::pin::pin;

use super::accept_on_demand::{clients_without_descriptors, turns};
use super::*;

/// The ways to accept.
#[derive(Clone, Copy, Debug)]
enum Way {
    Future,
    Poll,
    Stream,
}

const WAYS: [Way; 3] = [Way::Future, Way::Poll, Way::Stream];

async fn accept(listener: &TcpListener, way: Way) -> Result<TcpStream> {
    match way {
        Way::Future => listener.accept().await,
        Way::Poll => poll_fn(|cx| listener.poll_accept(cx)).await,
        Way::Stream => listener.incoming().next().await.expect("it never ends"),
    }
}

/// Accepts whatever happens, as servers do: keeps connections, counts errors and goes on.
#[derive(Default)]
struct Server {
    served: RefCell<Vec<TcpStream>>,
    failed: Cell<usize>,
}

impl Server {
    fn start(listener: &Rc<TcpListener>, way: Way) -> (Rc<Server>, glommio::Task<()>) {
        let server = Rc::new(Server::default());
        let (this, listener) = (Rc::clone(&server), Rc::clone(listener));
        let task = spawn_local(async move {
            loop {
                match accept(&listener, way).await {
                    Ok(stream) => this.served.borrow_mut().push(stream),
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                        this.failed.set(this.failed.get() + 1);
                    }
                }
            }
        });
        (server, task)
    }

    fn served(&self) -> usize {
        self.served.borrow().len()
    }

    async fn until_served(&self, count: usize) {
        while self.served() < count {
            turns().await;
        }
    }
}

/// The executor does nothing for a while, and no accept fails.
async fn is_quiet(server: &Server) {
    const LOOKS: u64 = 50;
    turns().await;
    let (served, failed) = (server.served(), server.failed.get());
    executor().executor_stats();
    sleep(Duration::from_millis(50)).await;
    let looks = executor().executor_stats().scheduler_runs();
    assert!(
        looks <= LOOKS,
        "it looked {looks} times for something to do"
    );
    assert_eq!((server.served(), server.failed.get()), (served, failed));
}

#[run_test(alone)]
fn without_descriptors_and_without_a_client_accepting_waits() {
    in_child(|| {
        set_limit(Resource::RLIMIT_NOFILE, 64);
        for (way, nonblocking) in WAYS.into_iter().zip([false, true].into_iter().cycle()) {
            for is_busy in [false, true] {
                run(waits_for_a_client(way, nonblocking, is_busy));
                run(waits_for_a_client(way, !nonblocking, is_busy));
            }
        }
    });
}

async fn waits_for_a_client(way: Way, nonblocking: bool, is_busy: bool) -> Result {
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    socket2::SockRef::from(&*listener).set_nonblocking(nonblocking)?;
    let address = listener.local_addr()?;
    let mut running = None;
    if is_busy {
        // The kernel is accepting when it finds no descriptor.
        let (server, _) = running.insert(Server::start(&listener, way));
        for count in 1..4 {
            StdStream::connect(address)?;
            server.until_served(count).await;
        }
        server.served.take();
    }
    let clients = clients_without_descriptors(address, 0)?;
    let (server, task) = running.unwrap_or_else(|| Server::start(&listener, way));
    is_quiet(&server).await;
    assert_eq!(server.failed.get(), 0, "there is no client");
    drop(clients);

    // The last descriptor is for the next client, and then there is no other.
    let mut clients = clients_without_descriptors(address, 0)?;
    drop(clients.hoard.split_off(clients.hoard.len() - 2));
    let client = StdStream::connect(address)?;
    server.until_served(1).await;
    is_quiet(&server).await;
    assert_eq!(server.failed.get(), 0, "there is no other client");
    server.served.take();
    drop((client, clients));

    let clients = clients_without_descriptors(address, 1)?;
    while server.failed.get() < 3 {
        turns().await;
    }
    assert_eq!(server.served(), 0);
    drop(clients.hoard);
    server.until_served(1).await;
    task.cancel().await;
    Ok(())
}

type StdStream = std::net::TcpStream;

#[run_test(alone)]
fn an_error_that_no_accept_has_collected_does_not_meet_a_later_one() {
    in_child(|| {
        set_limit(Resource::RLIMIT_NOFILE, 64);
        for given_up in WAYS {
            for later in WAYS {
                run(async move {
                    let listener = TcpListener::bind("127.0.0.1:0")?;
                    let mut clients = clients_without_descriptors(listener.local_addr()?, 1)?;
                    {
                        let mut accept = pin!(accept(&listener, given_up));
                        assert!(poll_once(&mut accept).await.is_none());
                        // It is told of the error, and not polled.
                        for _ in 0..20 {
                            turns().await;
                        }
                    }
                    clients.hoard.clear();
                    let served = accept(&listener, later).await?;
                    assert_eq!(served.peer_addr()?, clients.connected[0].local_addr()?);
                    Ok(())
                });
            }
        }
    });
}

/// Neither does it meet one that came to wait after it, when the one that it was for leaves.
#[run_test(alone)]
fn an_error_for_an_accept_that_leaves_goes_to_none_that_came_later() {
    in_child(|| {
        set_limit(Resource::RLIMIT_NOFILE, 64);
        for later in WAYS {
            run(async move {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let mut clients = clients_without_descriptors(listener.local_addr()?, 1)?;
                let mut leaves = Box::pin(listener.accept());
                assert!(poll_once(&mut leaves).await.is_none());
                for _ in 0..20 {
                    turns().await;
                }
                clients.hoard.clear();
                let mut later = pin!(accept(&listener, later));
                assert!(poll_once(&mut later).await.is_none());
                drop(leaves);
                let served = later.await?;
                assert_eq!(served.peer_addr()?, clients.connected[0].local_addr()?);
                Ok(())
            });
        }
    });
}

/// The server that readers copy.
#[allow(dead_code, reason = "its `main` serves for ever")]
mod readme {
    include!("../docs/first_server_program.rs");

    pub(super) async fn serve(listener: TcpListener) {
        let limit = Duration::from_secs(3600);
        echo(listener, limit).await.expect("it goes on");
    }
}

#[run_test(alone)]
fn a_server_survives_a_shortage_of_descriptors() {
    in_child(|| {
        set_limit(Resource::RLIMIT_NOFILE, 64);
        run(async {
            let (listener, address) = bound()?;
            let _server = spawn_local(readme::serve(listener));
            let mut clients = clients_without_descriptors(address, 1)?;
            for _ in 0..20 {
                turns().await;
            }
            clients.hoard.clear();
            let mut client = clients.connected.remove(0);
            client.set_nonblocking(true)?;
            client.write_all(b"x")?;
            while client.read(&mut [0]).is_err() {
                turns().await;
            }
            Ok(())
        });
    });
}
