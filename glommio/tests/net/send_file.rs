//! Sending files.

use std::io::{ErrorKind, Read};

use glommio::io::SpliceSource;
use tempfile::TempDir;

use super::*;

fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

/// A file of so many bytes, on the disk and, if there is one, on a tmpfs.
fn files(len: usize) -> Vec<(TempDir, std::path::PathBuf)> {
    let folders = [
        tempfile::tempdir().ok(),
        tempfile::tempdir_in("/dev/shm").ok(),
    ];
    (folders.into_iter().flatten())
        .map(|folder| {
            let path = folder.path().join("file");
            fs::write(&path, pattern(len)).expect("the disk has room");
            (folder, path)
        })
        .collect()
}

/// Sends, while another task receives: what was said to be sent, and what has arrived.
async fn send<F: SpliceSource>(file: &F, offset: u64, len: usize) -> Result<(usize, Vec<u8>)> {
    let (mut sender, mut receiver) = pair().await?;
    let received = glommio::spawn_local(async move {
        let mut bytes = Vec::new();
        receiver.read_to_end(&mut bytes).await.map(|_| bytes)
    });
    let sent = sender.send_file(file, offset, len).await?;
    drop(sender);
    Ok((sent, received.await?))
}

/// Whether what has arrived is that range of the file, as far as there is one.
async fn check<F: SpliceSource>(file: &F, size: usize, offset: u64, len: usize) -> Result {
    let expected = pattern(size);
    let start = (offset as usize).min(size);
    let expected = &expected[start..start.saturating_add(len).min(size)];
    let (sent, received) = send(file, offset, len).await?;
    assert_eq!(sent, expected.len(), "{offset} {len}");
    assert!(received == expected, "{offset} {len}");
    Ok(())
}

const SIZE: usize = 1_000_001;

#[run_test]
async fn a_range_of_a_file_arrives_as_far_as_there_is_one() {
    for (_folder, path) in files(SIZE) {
        let file = BufferedFile::open(&path).await?;
        assert_eq!(file.splice_offset_alignment(), 1);
        for (offset, len) in [
            (0, SIZE),
            (0, usize::MAX),
            (7, 100),
            (7, 262_144),
            (4095, 600_000),
            (SIZE as u64 - 1, 10),
            (SIZE as u64, 10),
            (1 << 40, 10),
            (0, 0),
        ] {
            check(&file, SIZE, offset, len).await?;
        }
        file.close().await?;
    }
}

#[run_test]
async fn a_direct_file_is_sent_from_aligned_offsets() {
    for (_folder, path) in files(SIZE) {
        let file = DmaFile::open(&path).await?;
        let alignment = file.splice_offset_alignment();
        for (offset, len) in [
            (0, SIZE),
            (0, usize::MAX),
            (alignment, 100),
            (8192, 262_144 + 1),
            (4096 * 244, SIZE),
            (1 << 20, 10),
        ] {
            check(&file, SIZE, offset, len).await?;
        }
        if alignment > 1 {
            assert!(alignment.is_power_of_two());
            let error = send(&file, alignment + 1, 10).await.unwrap_err();
            let GlommioError::IoError(error) = error else {
                panic!("not an I/O error: {error:?}");
            };
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        } else {
            check(&file, SIZE, 77, 100).await?;
        }
        file.close().await?;
    }
}

/// Where the file ends is seen by what the kernel gives, which ends with a whole block, with a part
/// of one, or with a whole pipe.
#[run_test]
async fn sending_ends_where_the_file_does() {
    const PIPE: usize = 256 << 10;
    let sizes = [
        1,
        511,
        512,
        4096,
        4097,
        PIPE - 4096,
        PIPE,
        PIPE + 1,
        3 * PIPE,
    ];
    for size in sizes {
        for (_folder, path) in files(size) {
            let buffered = BufferedFile::open(&path).await?;
            let direct = DmaFile::open(&path).await?;
            for len in [size - 1, size, size + 1, size + PIPE, usize::MAX] {
                check(&buffered, size, 0, len).await?;
                check(&buffered, size, size as u64 / 2, len).await?;
                check(&direct, size, 0, len).await?;
                let middle = size as u64 / 2 / 4096 * 4096;
                check(&direct, size, middle, len).await?;
            }
            buffered.close().await?;
            direct.close().await?;
        }
    }
}

#[run_test]
async fn a_pipe_that_is_filled_in_part_is_not_the_end() {
    for (_folder, path) in files(3 << 20) {
        let file = BufferedFile::open(&path).await?;
        // A page that the range takes a part of takes a whole place in the pipe.
        for offset in [1, 2049, 4095] {
            check(&file, 3 << 20, offset, 2 << 20).await?;
        }
        file.close().await?;
    }
}

fn files_of_path(path: &Path) -> OpenOptions {
    assert!(path.exists());
    let mut options = OpenOptions::new();
    options.write(true);
    options
}

#[run_test]
async fn what_cannot_be_read_or_sent_is_an_error() {
    for (_folder, path) in files(SIZE) {
        let (mut sender, _receiver) = pair().await?;
        let file = files_of_path(&path).buffered_open(&path).await?;
        let error = sender.send_file(&file, 0, 10).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        file.close().await?;
        let file = BufferedFile::open(&path).await?;
        let error = sender.send_file(&file, u64::MAX, 10).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        // Nothing of that has harmed the connection.
        assert_eq!(sender.send_file(&file, 0, 10).await?, 10);
        file.close().await?;
    }
}

/// A process that does not ignore the signal would be ended by it.
#[run_test(in_child)]
fn a_peer_that_is_gone_is_an_error_and_no_signal() {
    // SAFETY: the default action takes no function.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    run(async {
        for (_folder, path) in files(SIZE) {
            let file = BufferedFile::open(&path).await?;
            let (mut sender, receiver) = pair().await?;
            drop(receiver);
            let error = loop {
                match sender.send_file(&file, 0, SIZE).await {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            let errno = error.raw_os_error();
            assert!(
                [Some(libc::EPIPE), Some(libc::ECONNRESET)].contains(&errno),
                "{error}"
            );
            let error = sender.send_file(&file, 0, SIZE).await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
            file.close().await?;
        }
        Ok(())
    });
}

/// The peer takes nothing: this thread goes on, and the write's time ends.
#[run_test]
async fn a_slow_peer_blocks_no_thread_and_runs_into_the_time_limit() {
    for (_folder, path) in files(16 << 20) {
        let file = BufferedFile::open(&path).await?;
        let (mut sender, mut peer) = pair_with_std().await?;
        sender.set_write_timeout(Some(Duration::from_millis(50)))?;
        let ticks = glommio::spawn_local(async {
            for _ in 0..10 {
                sleep(Duration::from_millis(1)).await;
            }
        });
        let error = sender.send_file(&file, 0, 16 << 20).await.unwrap_err();
        let GlommioError::IoError(error) = error else {
            panic!("not an I/O error: {error:?}");
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        ticks.await;
        // The descriptor is in the mode in which it was: a peer that shares it would see.
        let flags = nix::fcntl::fcntl(&sender, nix::fcntl::FcntlArg::F_GETFL);
        let flags = nix::fcntl::OFlag::from_bits_retain(flags.expect("it is open"));
        assert!(!flags.contains(nix::fcntl::OFlag::O_NONBLOCK));
        drop(sender);
        let mut received = Vec::new();
        peer.read_to_end(&mut received)?;
        assert!(received == pattern(16 << 20)[..received.len()]);
        file.close().await?;
    }
}

#[run_test(run_in_child)]
async fn sending_that_is_given_up_at_any_moment_leaves_no_descriptor() {
    for (_folder, path) in files(4 << 20) {
        let before = descriptors();
        let mut numbers = Numbers::new(3);
        for _ in 0..200 {
            let file = BufferedFile::open(&path).await?;
            let (mut sender, _receiver) = pair().await?;
            let mut sending = Box::pin(sender.send_file(&file, 0, 4 << 20));
            for _ in 0..numbers.below(5) {
                assert!(poll_once(&mut sending).await.is_none());
                sleep(Duration::from_micros(numbers.below(100))).await;
            }
        }
        while descriptors() > before {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

#[run_test(run_in_child)]
async fn a_process_without_descriptors_is_told() {
    for (_folder, path) in files(100) {
        let file = BufferedFile::open(&path).await?;
        let (mut sender, _receiver): (TcpStream, TcpStream) = pair().await?;
        let taken: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok())
            .take(1 << 20)
            .collect();
        let error = sender.send_file(&file, 0, 10).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        drop(taken);
        assert_eq!(sender.send_file(&file, 0, 10).await?, 10);
        file.close().await?;
    }
}
