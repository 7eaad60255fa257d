//! Files in children of `fork(2)`: a child has the open files of its parent, but not what the parent
//! has made of them. Each case is a process of its own, which forks.

use futures_lite::future::try_zip;
use glommio::{DefaultStallDetectionHandler, Driver};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::*;
use crate::common::{FORK_ENDED_WELL, fork, wait_for_fork};

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// Drops the child's copy of `value`, in the ordinary way and by a panic.
fn dropped_in_children<T>(value: &T) {
    // SAFETY: the child ends by `_exit`: its copy is not used or dropped again.
    fork(|| drop(unsafe { std::ptr::read(value) }));
    fork(|| {
        // SAFETY: as above.
        let copy = unsafe { std::ptr::read(value) };
        let message = panic_of(move || {
            let _dropped = copy;
            panic!("as intended")
        });
        assert_eq!(message, "as intended");
    });
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").len()
}

/// The rings of kernels before 6.9 do not truncate.
fn is_cut_by_a_thread() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs is mounted");
    let mut numbers = (release.split(['.', '-'])).map(|it| it.parse().unwrap_or(0));
    let version: [u32; 2] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    executor().driver() == Driver::IoUring && version < [6, 9]
}

#[run_test(run_in_child)]
async fn a_writer_that_a_forked_child_drops_does_not_cut_the_file() {
    for (_folder, path) in places(folders()) {
        let file = DmaFile::create(&path).await?;
        let mut writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(4096)
            .build();
        writer.write_all(&pattern(0, 5000)).await?;
        // Under way: the kernel has nothing, or something.
        for waits in [false, true] {
            let mut flush = writer.flush();
            assert!(poll_once(&mut flush).await.is_none());
            if waits {
                sleep(Duration::from_millis(1)).await;
            }
            let before = size(&path);
            dropped_in_children(&writer);
            assert!(size(&path) >= before);
        }
        writer.flush().await?;
        dropped_in_children(&writer);
        assert_eq!(size(&path), 8192, "its padding is the parent's");
        writer.write_all(&pattern(5000, 50_000)).await?;
        assert_eq!(writer.sync().await?, 55_000);
        dropped_in_children(&writer);
        assert!(fs::read(&path)?[..55_000] == pattern(0, 55_000));
        assert!(poll_once(writer.close()).await.is_none());
        dropped_in_children(&writer);
        while size(&path) != 55_000 {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(fs::read(&path)? == pattern(0, 55_000));
    }
}

/// In the middle of sealing it, and after the executor of the parent is gone.
#[run_test(in_child)]
fn padding_is_left_to_the_parent_by_a_forked_child() {
    let folder = folder();
    let path = folder.path().join("sealed");
    run(async {
        let mut sink = ImmutableFileBuilder::new(&path)
            .with_buffer_size(4096)
            .build_sink()
            .await?;
        glommio::executor().io_stats();
        sink.write_all(&pattern(0, 5000)).await?;
        let mut seal: Boxed<Result<_>> = Box::pin(sink.seal());
        written(2, &mut seal).await;
        // All is flushed, and it is about to be cut.
        assert!(poll_once(&mut seal).await.is_none());
        dropped_in_children(&seal);
        // It may have happened where a thread does it.
        assert!(size(&path) == 8192 || size(&path) == 5000 && is_cut_by_a_thread());
        seal.await?.close().await?;
        assert_eq!(size(&path), 5000);
        Ok(())
    });

    let path = folder.path().join("outlives");
    let writer = run(async {
        let file = DmaFile::create(&path).await?;
        let mut writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(4096)
            .build();
        writer.write_all(&pattern(0, 5000)).await?;
        writer.flush().await?;
        Ok(writer)
    });
    dropped_in_children(&writer);
    assert_eq!(size(&path), 8192);
    drop(writer);
    assert_eq!(size(&path), 5000);
}

#[run_test(run_in_child)]
async fn a_lock_whose_guard_a_forked_child_drops_is_held() {
    for (_folder, path) in places(folders()) {
        filled(&path, 100);
        let (one, other) = (DmaFile::open(&path).await?, DmaFile::open(&path).await?);
        let is_locked = async || match other.try_lock_exclusive().await {
            Err(GlommioError::WouldBlock(_)) => true,
            freed => freed.map(drop).is_err(),
        };
        let lock = one.try_lock_exclusive().await?;
        dropped_in_children(&lock);
        assert!(is_locked().await);
        drop(lock);
        assert!(!is_locked().await);

        // Taken by a blocking thread, and not handed over yet.
        let locks = loop {
            let mut locks = Box::pin(one.try_lock_exclusive());
            if let Some(at_once) = poll_once(&mut locks).await {
                drop(at_once?);
                continue;
            }
            sleep(Duration::from_millis(5)).await;
            // The thread may come so late that it meets this look.
            if is_locked().await {
                break locks;
            }
        };
        dropped_in_children(&locks);
        assert!(is_locked().await);
        drop(locks.await?);
        assert!(!is_locked().await);
    }
}

#[run_test(run_in_child)]
async fn a_socket_stays_nonblocking_when_a_forked_child_drops_what_is_sent() {
    let (_folder, path) = place();
    const LEN: usize = 16 << 20;
    filled(&path, LEN);
    let file = BufferedFile::open(&path).await?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let connecting = TcpStream::connect(listener.local_addr()?);
    let accepting = listener.accept();
    let (mut peer, mut stream) = try_zip(connecting, accepting).await?;
    let same = stream.as_fd().try_clone_to_owned()?;
    let is_nonblocking = || {
        let flags = fcntl(&same, FcntlArg::F_GETFL).expect("it is open");
        OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK)
    };
    let was_nonblocking = is_nonblocking();
    assert!(!was_nonblocking, "else this shows nothing");
    let mut sends = Box::pin(stream.send_file(&file, 0, LEN));
    // Until the socket is full.
    while !is_nonblocking() {
        assert!(poll_once(&mut sends).await.is_none());
        sleep(Duration::from_millis(1)).await;
    }
    dropped_in_children(&sends);
    assert!(is_nonblocking(), "the parent is sending");
    let reads = spawn_local(async move {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).await.map(|_| all)
    });
    let sent = sends.await?;
    assert!(!is_nonblocking());
    stream.shutdown(std::net::Shutdown::Write).await?;
    assert!(reads.await? == pattern(0, sent));
}

/// The child that goes on in a task of its parent, and unwinds out of `run`.
#[run_test(in_child)]
fn a_child_that_unwinds_out_of_a_task_leaves_the_files_of_all_tasks_alone() {
    let (_folder, path) = place();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .detect_stalls(Some(Box::new(DefaultStallDetectionHandler {})))
        .make()
        .expect("an executor can be made");
    let forked = std::cell::Cell::new(None);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        executor.run(async {
            let file = DmaFile::create(&path).await?;
            let lock = file.try_lock_exclusive().await?;
            let copy = file.dup()?;
            let mut writer = DmaStreamWriterBuilder::new(copy)
                .with_buffer_size(4096)
                .build();
            writer.write_all(&pattern(0, 5000)).await?;
            writer.flush().await?;
            // SAFETY: as in `fork`.
            forked.set(Some(unsafe { libc::fork() }));
            if forked.get() == Some(0) {
                // SAFETY: as above.
                unsafe { libc::alarm(100) };
                panic!("as intended");
            }
            wait_for_fork(forked.get().expect("it was forked"));
            assert_eq!(size(&path), 8192);
            let other = DmaFile::open(&path).await?;
            assert!(other.try_lock_shared().await.is_err());
            writer.close().await?;
            assert_eq!(size(&path), 5000);
            drop(lock);
            drop(other.try_lock_shared().await?);
            Result::Ok(())
        })
    }));
    if forked.get() == Some(0) {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(executor)));
        let is_well = ended.is_err() && dropped.is_ok();
        // SAFETY: as in `fork`.
        unsafe { libc::_exit(if is_well { FORK_ENDED_WELL } else { 1 }) };
    }
    match ended {
        Ok(ended) => ended.expect("the parent's operations succeed"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
