//! Clients that send the head of a request byte by byte, or not at all, many thousands at a time.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use glommio_hyper::Graceful;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;

use super::*;

/// Connections that descriptors allow, two for each, up to 10,000.
fn affordable() -> usize {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("it can be asked for");
    let wanted = (2 * 10_000 + 500).min(hard).max(soft);
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).expect("up to the hard limit");
    ((wanted as usize).saturating_sub(500) / 2).min(10_000)
}

/// A listener with a backlog for all of them, and a port.
fn listen() -> Result<TcpListener> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(4096)?)?;
    Ok(TcpListener::from(listener))
}

/// Each is cut off when the time for the head is over, and none before; a client that speaks in
/// time is served meanwhile; and each connection has one timer of the executor.
#[test]
fn slow_heads_are_cut_off_and_each_has_one_timer() {
    let clients = affordable();
    run(async move {
        const LIMIT: Duration = Duration::from_secs(3);
        let listener = listen()?;
        let address = listener.local_addr()?;
        let (open, cut_off) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let shared = (Rc::clone(&open), Rc::clone(&cut_off));
        let serving = spawn_local(async move {
            let mut http = server::conn::http1::Builder::new();
            http.timer(GlommioTimer).header_read_timeout(LIMIT);
            while let Ok(stream) = listener.accept().await {
                let (open, cut_off) = (Rc::clone(&shared.0), Rc::clone(&shared.1));
                let service = service_fn(|_| async {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
                });
                let connection = http.serve_connection(GlommioIo::new(stream), service);
                spawn_local(async move {
                    let begun = std::time::Instant::now();
                    open.set(open.get() + 1);
                    // In what words hyper ends it depends on whether anything had come.
                    let _ended = connection.await;
                    assert!(begun.elapsed() >= LIMIT, "cut off early");
                    open.set(open.get() - 1);
                    cut_off.set(cut_off.get() + 1);
                })
                .detach();
            }
        });

        let memory_before = resident_bytes();
        // They connect a few at a time, and the server accepts these.
        let mut loris: Vec<OwnedFd> = Vec::with_capacity(clients);
        while loris.len() < clients {
            for _ in 0..64.min(clients - loris.len()) {
                let mut client = std::net::TcpStream::connect(address)?;
                if loris.len().is_multiple_of(2) {
                    client.write_all(b"GET / HTTP/1.1\r\nx-slow: ")?;
                }
                loris.push(client.into());
            }
            // `connect` blocks this thread where the listener's queue is full.
            while open.get() + cut_off.get() < loris.len() {
                sleep(Duration::from_micros(10)).await;
            }
        }
        let (mut client, mut connection) = Client::connect(Version::Http1, address).await?;
        let mut answers = 0;
        let mut most_open = 0;
        let memory = resident_bytes().saturating_sub(memory_before) / clients;
        let time_before = processor_time();
        while cut_off.get() < clients {
            most_open = most_open.max(open.get());
            #[cfg(feature = "metrics")]
            assert_timers(open.get());
            if let Ok(response) = client.send(get("/")).await {
                assert_eq!(text(response).await?, "hello");
                answers += 1;
            } else {
                // On a busy machine it may be too slow, too.
                connection.cancel().await;
                (client, connection) = Client::connect(Version::Http1, address).await?;
            }
            sleep(Duration::from_millis(20)).await;
        }
        assert!(answers > 1, "others are served meanwhile");
        let time = processor_time() - time_before;
        println!(
            "{clients} slow clients, up to {most_open} connections at a time after all had come, \
             {memory} bytes for each; cut off in {time:?} of processor time; {answers} answers"
        );
        serving.cancel().await;
        connection.cancel().await;
        Ok(())
    });
}

/// A header timeout is one timer, in the executor's queue; here there are a few others at most.
#[cfg(feature = "metrics")]
fn assert_timers(connections: usize) {
    const OTHERS: u64 = 8;
    let live = glommio::executor().metrics().snapshot().timers_live();
    let most = connections as u64 + OTHERS;
    assert!(live <= most, "{live} timers for {connections} connections");
}

/// Memory of this process.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is a `/proc`");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.expect("it says so") << 10
}

/// What this thread has used.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("every thread has one");
    let times = [usage.user_time(), usage.system_time()];
    let micros = times.map(|time| time.num_microseconds().max(0).cast_unsigned());
    Duration::from_micros(micros.iter().sum())
}

/// In the future that watches it there is nothing of it but a pointer.
#[test]
fn a_watched_connection_is_held_once() {
    struct Large([u8; 4096]);

    impl Future for Large {
        type Output = std::result::Result<usize, Infallible>;

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            Poll::Ready(Ok(self.0.len()))
        }
    }

    impl Graceful for Large {
        fn graceful_shutdown(self: Pin<&mut Self>) {}
    }

    run(async {
        let watched = Connections::new().watch(Large([0; 4096]));
        assert!(size_of_val(&watched) < 1024, "{}", size_of_val(&watched));
        assert_eq!(watched.await.expect("it does not fail"), 4096);
        Ok(())
    });
}
