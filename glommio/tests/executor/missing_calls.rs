//! System calls that an older kernel does not have, or a sandbox forbids: the library does without each of
//! them. Each case is a process of its own.

use glommio::DefaultStallDetectionHandler;
use glommio::io::{rename, stat};
use glommio::process::Command;
use glommio::timer::interval;
use tempfile::tempdir;

use crate::common::prelude::*;
use crate::common::seccomp::{deny_all, deny_from};
use crate::faults::basic_workload;

/// The rows of the table in `docs/operations/kernels.md`, which the test `docs` compares. Those of io_uring
/// have cases of their own, in `drivers.rs`.
const MAY_BE_MISSING: [libc::c_long; 10] = [
    libc::SYS_copy_file_range,
    libc::SYS_fstatfs,
    libc::SYS_getrusage,
    libc::SYS_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_statx,
    libc::SYS_timerfd_create,
];

#[test]
fn without_the_calls_that_may_be_missing_all_work_is_done() {
    for (errno, word) in [(libc::ENOSYS, "missing"), (libc::EPERM, "forbidden")] {
        for driver in ["epoll", "io_uring"] {
            let environment = [("GLOMMIO_DRIVER", driver), ("THEY_ARE", word)];
            in_child_with(&environment, || {
                // The child has one of them.
                if is_set(&environment) {
                    let mut calls = MAY_BE_MISSING.to_vec();
                    // A ring is mapped with it.
                    calls.retain(|it| driver == "epoll" || *it != libc::SYS_madvise);
                    deny_all(&calls, errno);
                    all_work();
                }
            });
        }
    }
}

/// Without those that have come since, which have higher numbers.
#[run_test(in_child_with(&[("GLOMMIO_DRIVER", "auto")]))]
fn the_calls_of_linux_4_18_are_enough_for_epoll() {
    deny_from(libc::SYS_rseq + 1, libc::ENOSYS);
    all_work();
    let driver = LocalExecutor::default().run(async { executor().driver() });
    assert_eq!(driver, glommio::Driver::Epoll);
}

fn is_set(environment: &[(&str, &str)]) -> bool {
    let mut environment = environment.iter();
    environment.all(|(name, value)| std::env::var(name).is_ok_and(|it| it == *value))
}

/// What calls the kernel, in each area.
fn all_work() {
    basic_workload();
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
        .on_all_shards(|| async { executor().id() })
        .expect("nothing is lacking");
    assert!(shards.join_all().into_iter().all(|it| it.is_ok()));
    let made = LocalExecutorBuilder::default()
        .detect_stalls(Some(Box::new(DefaultStallDetectionHandler {})))
        .make();
    made.expect("nothing is lacking").run(async {
        times_are_kept().await;
        a_connection_echoes().await;
        files_are_written_and_read().await;
        directories_have_names().await;
        a_pipe_is_read_to_its_end().await;
        children_end().await;
        assert!(executor().executor_stats().tasks_executed() > 0);
    });
}

async fn times_are_kept() {
    let begin = std::time::Instant::now();
    interval(Duration::from_micros(300)).take(11).count().await;
    assert!(begin.elapsed() >= Duration::from_millis(3));
}

pub(crate) async fn a_connection_echoes() {
    let (listener, address) = bound().expect("a port is free");
    let echo = spawn_local(async move {
        let mut stream = listener.accept().await.expect("a client connects");
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).await.expect("it sends");
        stream.write_all(&bytes).await.expect("it receives");
    });
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(b"echo").await.expect("it receives");
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes).await.expect("it answers");
    assert_eq!(&bytes, b"echo");
    echo.await;
}

pub(crate) async fn files_are_written_and_read() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("file");
    let file = BufferedFile::create(&path).await.expect("it is ours");
    let written = file.write_at(vec![7; 10_000], 0).await;
    assert_eq!(written.expect("there is room"), 10_000);
    file.fdatasync().await.expect("it is a file");
    assert_eq!(file.file_size().await.expect("it is open"), 10_000);
    file.close().await.expect("it was written");
    let file = BufferedFile::open(&path).await.expect("it is there");
    let read = file.read_at(9_000, 4_000).await.expect("it is readable");
    assert_eq!(&*read, [7; 1_000]);
    file.close().await.expect("it is open");
    let known = stat(&path).await.expect("it is there");
    assert_eq!(known.file_size, 10_000);
    assert!(known.allocated_file_size >= 10_000 && known.fs_cluster_size >= 512);

    let from = DmaFile::open(&path).await.expect("it is there");
    let read = from.read_at(4096, 512).await.expect("it is readable");
    assert_eq!(&*read, [7; 512]);
    let copy = folder.path().join("copy");
    let to = OpenOptions::new()
        .write(true)
        .create(true)
        .dma_open(&copy)
        .await
        .expect("it is ours");
    let copied = to.copy_file_range_aligned(&from, 4096, 4096, 0).await;
    assert_eq!(copied.expect("there is room"), 4096);
    let past = to.copy_file_range_aligned(&from, 20_480, 4096, 0).await;
    assert_eq!(past.expect("there is nothing"), 0);
    from.close().await.expect("it is open");
    to.close().await.expect("it is open");
    assert_eq!(std::fs::read(&copy).expect("it is there"), [7; 4096]);
}

async fn directories_have_names() {
    let folder = tempdir().expect("a folder");
    let directory = Directory::open(folder.path()).await.expect("it is there");
    let file = directory.create_file("old").await.expect("it is ours");
    file.close().await.expect("it is open");
    let names = [folder.path().join("old"), folder.path().join("new")];
    rename(&names[0], &names[1]).await.expect("it is there");
    let mut entries = directory.read_dir().expect("it is open");
    let entry = entries.next().await.expect("it has one");
    assert_eq!(entry.expect("it is readable").file_name(), "new");
    assert!(entries.next().await.is_none());
    directory.close().await.expect("it is open");
}

/// As the standard input of this process.
async fn a_pipe_is_read_to_its_end() {
    let (reader, mut writer) = std::io::pipe().expect("descriptors are free");
    std::io::Write::write_all(&mut writer, b"typed").expect("it has room");
    drop(writer);
    nix::unistd::dup2_stdin(&reader).expect("both are open");
    let mut bytes = Vec::new();
    let read = glommio::io::stdin().read_to_end(&mut bytes).await;
    assert_eq!((read.expect("it is readable"), &*bytes), (5, &b"typed"[..]));
}

/// More is in the suite `process`.
async fn children_end() {
    let output = Command::new("echo").arg("hello").output().await;
    assert_eq!(output.expect("every system has it").stdout, b"hello\n");
    let mut child = Command::new("sleep").arg("600").spawn().expect("as above");
    child.kill().await.expect("it is ours");
}
