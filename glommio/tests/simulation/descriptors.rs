//! Descriptors of sockets and files that are passed, shared and spliced.

use std::cell::OnceCell;

use glommio::net::BalancedTcpListener;
use glommio::simulation::{self, Failure, FailureKind, Simulation, SimulationBuilder};
use nix::sys::resource::{Resource, setrlimit};

use super::{MILLISECOND, SECOND};
use crate::common::prelude::*;

/// The same in a simulation and with the kernel: what is passed along with bytes of a Unix socket.
async fn descriptors_are_passed() -> io::Result<()> {
    let (mut one, mut other) = UnixStream::pair()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let listening = listener.as_fd();
    one.write_all(b"before").await?;
    assert_eq!(one.send_with_fds(b"first", &[listening]).await?, 5);
    assert_eq!(
        one.send_with_fds(b"second", &[listening, listening])
            .await?,
        6
    );
    one.write_all(b"after").await?;
    drop(listener);
    // With descriptors come the bytes in front of them, and none behind their send.
    let mut buf = [0; 8];
    let (count, mut fds) = other.recv_with_fds(&mut buf).await?;
    assert_eq!((&buf[..count], fds.len()), (&b"beforefi"[..], 1));
    let mut rest = [0; 64];
    let (count, two) = other.recv_with_fds(&mut rest).await?;
    assert_eq!((&rest[..count], two.len()), (&b"rstsecond"[..], 2));
    let (count, none) = other.recv_with_fds(&mut rest).await?;
    assert_eq!((&rest[..count], none.len()), (&b"after"[..], 0));
    for fd in two {
        drop(TcpListener::from(std::net::TcpListener::from(fd)));
    }
    // It has listened all the time.
    let passed = std::net::TcpListener::from(fds.pop().expect("it is one"));
    let passed = TcpListener::from(passed);
    let mut client = TcpStream::connect(address).await?;
    passed.accept().await?.write_all(b"hello").await?;
    let mut text = String::new();
    client.read_to_string(&mut text).await?;
    assert_eq!(text, "hello");
    // What nothing receives is closed: by a read of other kinds, or with the socket.
    one.send_with_fds(b"x", &[passed.as_fd()]).await?;
    other.read_exact(&mut rest[..1]).await?;
    one.send_with_fds(b"x", &[passed.as_fd()]).await?;
    drop((one, other, passed));
    // The kernel may have the last one a little longer.
    let refused = loop {
        match TcpStream::connect(address).await {
            Ok(_) => sleep(MILLISECOND).await,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.raw_os_error(), Some(libc::ECONNREFUSED));
    let (mut one, _other) = UnixStream::pair()?;
    let fds = [one.as_fd().try_clone_to_owned()?];
    let too_many = vec![fds[0].as_fd(); 254];
    let error = one.send_with_fds(b"x", &too_many).await.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    Ok(())
}

#[run_test]
fn descriptors_are_passed_as_by_the_kernel() {
    let real = glommio::LocalExecutor::default().run(descriptors_are_passed());
    real.expect("with the kernel");
    for seed in 0..20 {
        let simulation = Simulation::builder().seed(seed);
        let simulated = simulation.client("client", descriptors_are_passed);
        simulated.run().expect("in a simulation");
    }
}

/// The same in a simulation and with the kernel, whose files are at `path`.
async fn a_file_is_sent(path: PathBuf) -> glommio::Result<(), ()> {
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| (n / 256) as u8).collect();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    let file = options.buffered_open(&path).await?;
    assert_eq!(file.write_at(content.clone(), 0).await?, content.len());
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    let mut server = listener.accept().await?;
    let reading = spawn_local(async move {
        let mut received = Vec::new();
        client.read_to_end(&mut received).await?;
        io::Result::Ok(received)
    });
    assert_eq!(server.send_file(&file, 1000, 900_000).await?, 900_000);
    // Up to the end of the file.
    assert_eq!(server.send_file(&file, 999_990, 100).await?, 10);
    assert_eq!(server.send_file(&file, 2_000_000, 100).await?, 0);
    drop(server);
    let received = reading.await?;
    assert_eq!(received.len(), 900_010);
    assert!(received[..900_000] == content[1000..901_000]);
    assert!(received[900_000..] == content[999_990..]);
    file.close().await
}

#[run_test]
fn a_file_is_sent_as_by_the_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let real = glommio::LocalExecutor::default().run(a_file_is_sent(path));
    real.expect("with the kernel");
    for seed in 0..5 {
        let simulation = Simulation::builder().seed(seed);
        let simulated = simulation.client("client", || a_file_is_sent("/file".into()));
        simulated.run().expect("in a simulation");
    }
}

/// One listener of all shards of a node, which know it by descriptors of their own.
#[run_test]
fn a_balanced_listener_shares_connections_out() {
    let accepted = Log::default();
    let seen = accepted.clone();
    let shared = Rc::new(OnceCell::new());
    Simulation::builder()
        .node("server", 3, move || {
            let (log, shared) = (seen.clone(), Rc::clone(&shared));
            async move {
                let bind = || BalancedTcpListener::bind("0.0.0.0:7000").expect("it is free");
                let listener = shared.get_or_init(bind);
                assert_eq!(listener.local_addr()?.port(), 7000);
                let number = simulation::rng_seed() as usize;
                let mut listener = listener.join(number)?;
                loop {
                    let (mut stream, guard) = listener.accept().await?;
                    log.push(number);
                    let serving = async move {
                        let _guard = guard;
                        stream.write_all(b"x").await?;
                        stream.read(&mut [0]).await
                    };
                    spawn_local(serving).detach();
                }
                #[allow(unreachable_code, reason = "it has a type")]
                glommio::Result::<_, ()>::Ok(())
            }
        })
        .client("client", || async {
            sleep(SECOND).await;
            let mut streams = Vec::new();
            for _ in 0..9 {
                let mut stream = TcpStream::connect("server:7000").await?;
                stream.read_exact(&mut [0]).await?;
                streams.push(stream);
            }
            io::Result::Ok(())
        })
        .run()
        .expect("nothing fails");
    let mut accepted = accepted.take();
    accepted.sort_unstable();
    let counts = accepted.chunk_by(|one, other| one == other);
    let counts: Vec<_> = counts.map(<[usize]>::len).collect();
    assert_eq!(counts, [3, 3, 3]);
}

/// Opens up to so many files, and tells how that ended. The error of the last one, and of a read that is not allowed.
async fn open_files(count: usize) -> (usize, String) {
    let mut files = Vec::new();
    for number in 0..count {
        let mut options = OpenOptions::new();
        let opened = options.create(true).write(true);
        match opened.buffered_open(format!("/{number}")).await {
            Ok(file) => files.push(file),
            Err(error) => return (files.len(), error.to_string()),
        }
    }
    let last = files.last().expect("there are some");
    let error = last.read_at(0, 10).await.unwrap_err();
    (files.len(), error.to_string())
}

fn opened(simulation: SimulationBuilder, count: usize) -> Result<(usize, String), Failure> {
    let log = Log::default();
    let seen = log.clone();
    let simulation = simulation.seed(7).client("client", move || {
        let log = seen.clone();
        async move { log.push(open_files(count).await) }
    });
    simulation.run()?;
    Ok(log.take().remove(0))
}

#[run_test]
fn a_node_has_as_many_descriptors_as_it_is_given() {
    let (count, error) = opened(Simulation::builder().descriptors(20), 100).expect("it goes on");
    assert_eq!(count, 17, "beside the standard streams");
    assert!(error.contains("os error 24"), "EMFILE: {error}");
    let accepts = |max: usize| {
        let talks = || async {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let _client = TcpStream::connect(listener.local_addr()?).await?;
            let accepted = listener.accept().await;
            accepted.map(drop)
        };
        let run = Simulation::builder()
            .descriptors(max)
            .client("client", talks);
        run.run()
            .map(drop)
            .map_err(|failure| failure.kind().clone())
    };
    assert_eq!(accepts(6), Ok(()));
    let error = accepts(5).unwrap_err();
    assert!(error.to_string().contains("os error 24") || error.to_string().contains("code: 24"));
}

/// Numbers of the process depend on what else is open in it.
#[run_test]
fn errors_tell_the_numbers_that_the_node_sees() {
    let alone = opened(Simulation::builder(), 5).expect("nothing fails");
    assert!(alone.1.contains("fd: Some(7)"), "{alone:?}");
    let others: Vec<_> = (0..50).map(|_| std::fs::File::open("/dev/null")).collect();
    let beside = opened(Simulation::builder(), 5).expect("nothing fails");
    assert_eq!(beside, alone);
    drop(others);
}

#[run_test(in_child)]
fn a_process_without_descriptors_ends_the_simulation_and_does_not_change_it() {
    // The limit is raised as far as it may be.
    let limit = |soft, hard| setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    limit(64, 4096);
    assert!(opened(Simulation::builder(), 200).is_ok());
    limit(64, 64);
    let failure = opened(Simulation::builder(), 200).unwrap_err();
    assert!(matches!(failure.kind(), FailureKind::Setup(_)), "{failure}");
    assert!(failure.to_string().contains("ulimit -n"), "{failure}");
}
