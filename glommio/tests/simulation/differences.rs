//! What was once other than with the kernel, and what a simulation does not have: that fails and says so.

use std::net::Ipv6Addr;

use glommio::io::{hard_link, remove, rename, symlink};
use glommio::process::Command;
use glommio::signal::Signals;
use glommio::simulation::{self, Fault, Simulation};

use super::{MILLISECOND, SECOND};
use crate::common::prelude::*;

/// The same with the kernel and in a simulation.
fn as_with_the_kernel<F>(test: fn(PathBuf) -> F)
where
    F: Future<Output = io::Result<()>> + 'static,
{
    let _watchdog = watchdog();
    let folder = tempfile::tempdir().expect("there is space");
    let real = glommio::LocalExecutor::default().run(test(folder.path().into()));
    real.expect("with the kernel");
    let simulated = Simulation::builder().client("client", move || test("/".into()));
    simulated.run().expect("in a simulation");
}

fn errno<T>(result: Result<T, impl Into<io::Error>>) -> Option<i32> {
    result
        .map_err(Into::into)
        .err()
        .and_then(|error| error.raw_os_error())
}

#[test]
fn a_further_name_of_a_file_is_refused_for_the_same_reasons() {
    as_with_the_kernel(|folder: PathBuf| async move {
        let open = async |name: &str| {
            let mut options = OpenOptions::new();
            let options = options.create(true).read(true).write(true);
            options.dma_open(folder.join(name)).await
        };
        let (file, _other) = (open("one").await?, open("other").await?);
        let linked = async |name: &str| errno(file.link(folder.join(name)).await);
        assert_eq!(linked("two").await, None);
        assert_eq!(linked("other").await, Some(libc::EEXIST));
        assert_eq!(linked("two").await, Some(libc::EEXIST));
        assert_eq!(linked("missing/three").await, Some(libc::ENOENT));
        assert_eq!(linked("one/three").await, Some(libc::ENOTDIR));
        Ok(())
    });
}

#[test]
fn the_path_of_a_unix_socket_is_a_file() {
    as_with_the_kernel(|folder: PathBuf| async move {
        let path = |name: &str| folder.join(name);
        let connect = async |name: &str| errno(UnixStream::connect(path(name)).await);
        BufferedFile::create(path("file")).await?.close().await?;
        let listener = UnixListener::bind(path("one"))?;
        assert_eq!(listener.local_addr()?.as_pathname(), Some(&*path("one")));
        assert_eq!(connect("one").await, None);
        assert_eq!(connect("file").await, Some(libc::ECONNREFUSED));
        assert_eq!(connect("file/x").await, Some(libc::ENOTDIR));
        for (name, error) in [
            ("one", libc::EADDRINUSE),
            ("file", libc::EADDRINUSE),
            ("file/x", libc::ENOTDIR),
            ("missing/x", libc::ENOENT),
        ] {
            assert_eq!(errno(UnixListener::bind(path(name))), Some(error), "{name}");
        }
        // Whatever name it has.
        rename(path("one"), path("two")).await?;
        hard_link(path("two"), path("three")).await?;
        symlink("two", path("four")).await?;
        assert_eq!(connect("one").await, Some(libc::ENOENT));
        for name in ["two", "three", "four"] {
            assert_eq!(connect(name).await, None, "{name}");
        }
        assert_eq!(listener.local_addr()?.as_pathname(), Some(&*path("one")));
        let opened = BufferedFile::open(path("two")).await;
        assert_eq!(errno(opened), Some(libc::ENXIO));
        remove(path("two")).await?;
        assert_eq!(connect("four").await, Some(libc::ENOENT));
        let bound = UnixListener::bind(path("four"));
        assert_eq!(errno(bound), Some(libc::EADDRINUSE));
        assert_eq!(connect("three").await, None);
        drop(listener);
        assert_eq!(connect("three").await, Some(libc::ECONNREFUSED));
        let again = UnixListener::bind(path("three"));
        assert_eq!(errno(again), Some(libc::EADDRINUSE));
        remove(path("three")).await?;
        let _again = UnixListener::bind(path("three"))?;
        // Also of datagrams.
        let (one, other) = (UnixDatagram::bind(path("five"))?, UnixDatagram::unbound()?);
        rename(path("five"), path("six")).await?;
        assert_eq!(other.send_to(b"hello", path("six")).await?, 5);
        assert_eq!(one.recv(&mut [0; 8]).await?, 5);
        let lost = other.send_to(b"hello", path("five")).await;
        assert_eq!(errno(lost), Some(libc::ENOENT));
        Ok(())
    });
}

/// What random steps on the paths of sockets and files end with.
async fn steps_on_paths(folder: PathBuf, seed: u64, log: Log<String>) -> io::Result<()> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut listeners, mut datagrams) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..OF_ONE_FOLDER {
        let path =
            |rng: &mut fastrand::Rng| folder.join(["a", "b", "c", "d", "a/x"][rng.usize(..5)]);
        let (one, other) = (path(&mut rng), path(&mut rng));
        let step = rng.u32(..11);
        let done = match step {
            0 | 1 => UnixListener::bind(&one).map(|it| drop(listeners.insert(number % 4, it))),
            2 => UnixDatagram::bind(&one).map(|it| drop(datagrams.insert(number % 4, it))),
            3 | 4 => UnixStream::connect(&one).await.map(drop),
            5 => match UnixDatagram::unbound() {
                Ok(socket) => socket.connect(&one).await,
                Err(error) => Err(error),
            },
            6 => rename(&one, &other).await,
            7 => remove(&one).await,
            8 => hard_link(&one, &other).await,
            9 => symlink(other.file_name().expect("it has one"), &one).await,
            _ => {
                listeners.remove(&rng.u64(..4));
                datagrams.remove(&rng.u64(..4));
                match BufferedFile::create(&one).await {
                    Ok(file) => file.close().await,
                    Err(error) => Err(error),
                }
            }
        };
        log.push(format!("{step} {:?}", errno(done)));
    }
    Ok(())
}

const OF_ONE_FOLDER: u64 = 100;

#[test]
fn random_steps_on_paths_of_sockets_end_as_with_the_kernel() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("GLOMMIO_SEED", 0);
    let rounds = number("GLOMMIO_OPERATIONS", 3000_u64).div_ceil(OF_ONE_FOLDER);
    for seed in first..first + rounds {
        let _watchdog = watchdog();
        let (log, seen) = (Log::default(), Log::default());
        let folder = tempfile::tempdir().expect("there is space");
        let real = steps_on_paths(folder.path().into(), seed, log.clone());
        glommio::LocalExecutor::default()
            .run(real)
            .expect("with the kernel");
        let simulated = seen.clone();
        let client = move || steps_on_paths("/".into(), seed, simulated.clone());
        let run = Simulation::builder().client("client", client).run();
        run.expect("in a simulation");
        for (number, (real, simulated)) in log.take().into_iter().zip(seen.take()).enumerate() {
            assert_eq!(real, simulated, "step {number} of seed {seed}");
        }
    }
}

#[test]
fn a_peer_of_datagrams_is_reset_only_if_something_is_lost() {
    as_with_the_kernel(|folder: PathBuf| async move {
        let bind = |name: &str| UnixDatagram::bind(folder.join(name));
        for is_unread in [false, true] {
            let name = |name: &str| format!("{name}{is_unread}");
            let (one, other, third) = (
                bind(&name("one"))?,
                bind(&name("other"))?,
                bind(&name("third"))?,
            );
            one.connect(folder.join(name("other"))).await?;
            other.connect(folder.join(name("one"))).await?;
            if is_unread {
                other.send(b"lost").await?;
            }
            one.connect(folder.join(name("third"))).await?;
            let reset = is_unread.then_some(libc::ECONNRESET);
            assert_eq!(
                errno(other.send(b"more").await),
                reset.or(Some(libc::EPERM))
            );
            drop(third);
        }
        Ok(())
    });
}

#[test]
fn both_ends_of_a_unix_socket_have_the_same_user() {
    as_with_the_kernel(|_| async {
        let (one, other) = UnixStream::pair()?;
        let (one, other) = (one.peer_cred()?, other.peer_cred()?);
        assert_eq!(one, other);
        assert!(one.uid() < u32::MAX && one.pid().is_some(), "{one:?}");
        Ok(())
    });
}

/// Less patience than the quarter of an hour that is the default.
#[run_test]
fn a_user_timeout_ends_a_connection_whose_peer_is_gone() {
    for limit in [None, Some(5), Some(60)] {
        let log = Log::default();
        let seen = log.clone();
        Simulation::builder()
            .seed(1)
            .node("server", 1, || async {
                let listener = TcpListener::bind("0.0.0.0:7000")?;
                let _stream = listener.accept().await?;
                std::future::pending::<io::Result<()>>().await
            })
            .client("client", move || {
                let log = seen.clone();
                async move {
                    sleep(MILLISECOND).await;
                    let mut stream = TcpStream::connect("server:7000").await?;
                    stream.set_user_timeout(limit.map(|limit| limit * SECOND))?;
                    sleep(SECOND).await;
                    let cut_off = Fault::Partition {
                        groups: vec![vec!["client".into()]],
                    };
                    simulation::inject(MILLISECOND, cut_off);
                    sleep(SECOND).await;
                    stream.write_all(b"x").await?;
                    let error = stream.read(&mut [0]).await.unwrap_err();
                    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
                    log.push(simulation::elapsed().as_secs() - 2);
                    Ok::<_, io::Error>(())
                }
            })
            .run()
            .expect("nothing fails");
        let after = log.take()[0];
        let expected = limit.map_or(900..1000, |limit| limit.into()..u64::from(limit) + 2);
        assert!(expected.contains(&after), "{limit:?}: {after} s");
    }
}

#[run_test]
fn what_a_simulation_does_not_have_fails_and_says_so() {
    let client = || async {
        let is_named = |error: io::Error, name: &str| {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        };
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        let kept_alive = stream.set_keepalive(Some(SECOND)).unwrap_err();
        is_named(kept_alive.into(), "keep-alives");
        let deferred = listener.set_defer_accept(Some(SECOND)).unwrap_err();
        is_named(deferred.into(), "deferred accept");
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        let group = Ipv4Addr::new(224, 0, 0, 251);
        let joined = socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED);
        is_named(joined.unwrap_err().into(), "multicast");
        let joined = socket.join_multicast_v6(&Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), 0);
        is_named(joined.unwrap_err().into(), "multicast");
        is_named(
            Command::new("true").spawn().unwrap_err().into(),
            "child process",
        );
        let signals = Signals::new(&[libc::SIGUSR1]);
        is_named(signals.unwrap_err().into(), "signals");
        let directory = Directory::open(Path::new("/")).await?;
        is_named(
            directory.sync_read_dir().unwrap_err().into(),
            "standard library",
        );
        io::Result::Ok(())
    };
    let run = Simulation::builder().client("client", client).run();
    run.expect("nothing else fails");
}
