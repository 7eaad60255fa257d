//! Reads and writes of more than the kernel moves at once, and of all that was asked for.

use std::fs::File;
use std::os::unix::fs::FileExt;

use futures_lite::stream;
use glommio::io::{MergedBufferLimit, ReadAmplificationLimit};

use super::*;

const GIB: u64 = 1 << 30;

/// A file of `len` bytes, of which there are only `marks`, at their places.
fn sparse(path: &Path, len: u64, marks: &[(u64, &[u8])]) {
    let file = File::create(path).expect("the disk has room");
    file.set_len(len).expect("the filesystem has sparse files");
    for (position, mark) in marks {
        file.write_all_at(mark, *position)
            .expect("the disk has room");
    }
}

/// Whether the machine has `bytes` to spare for a test.
fn has_memory(bytes: u64) -> bool {
    let about = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = about.lines().find(|line| line.starts_with("MemAvailable:"));
    let free = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    let has = free.is_some_and(|free| free * 1024 > 2 * bytes);
    if !has {
        skipped("there is not so much memory");
    }
    has
}

#[run_test(in_place)]
async fn requests_that_are_gigabytes_apart_each_get_their_bytes(path: PathBuf) {
    let far = 5 * GIB / 2;
    sparse(&path, 3 * GIB, &[(0, b"first"), (far, b"second")]);
    let file = Rc::new(DmaFile::open(&path).await?);
    executor().io_stats();
    let requests = stream::iter([(0, 5), (far, 6), (far + 100, 10)]);
    let everything = MergedBufferLimit::Custom(usize::MAX);
    let mut reads = file.read_many(requests, everything, ReadAmplificationLimit::NoLimit);
    for expected in [&b"first"[..], b"second", &[0; 10]] {
        let (_, data) = reads.next().await.expect("one for each")?;
        assert_eq!(*data, *expected);
    }
    drop(reads);
    let (count, bytes) = executor().io_stats().all_rings().file_reads();
    assert!(
        count == 2 && bytes < 1 << 20,
        "{count} reads of {bytes} bytes"
    );
    file.close_rc().await.map(drop)
}

/// A file with content where its pieces meet.
struct Long {
    len: u64,
    marks: [(u64, &'static [u8]); 3],
}

impl Long {
    fn new(path: &Path, len: u64) -> Self {
        let marks: [(u64, &[u8]); 3] = [
            (GIB - 2, b"over the first edge"),
            (len / 2, b"the middle"),
            (len - 7, b"the end"),
        ];
        sparse(path, len, &marks);
        Long { len, marks }
    }

    #[track_caller]
    fn check(&self, data: &[u8], start: u64) {
        assert_eq!(data.len() as u64, self.len - start);
        for (position, mark) in self.marks {
            let at = (position - start) as usize;
            assert_eq!(&data[at..at + mark.len()], mark);
        }
    }
}

#[test]
fn a_read_of_two_gigabytes_and_more_is_complete() {
    if !has_memory(3 * GIB) {
        return;
    }
    run(async {
        let (_folder, path) = place();
        let long = Long::new(&path, 2 * GIB + 10_000);
        let file = DmaFile::open(&path).await?;
        // Memory is taken for what there is, not for what was asked for.
        long.check(&file.read_at(3, usize::MAX).await?, 3);
        file.close().await
    });
}

#[test]
fn a_read_of_several_pieces_is_complete() {
    if !has_memory(2 * GIB) {
        return;
    }
    run(async {
        let folder = folder();
        let path = folder.path().join("file");
        let long = Long::new(&path, GIB + 10_000);
        let all = long.len as usize;
        let file = Rc::new(DmaFile::open(&path).await?);
        long.check(&file.read_exact_at(1, all - 1).await?, 1);
        let error = kind(file.read_exact_at(1, all).await);
        assert_eq!(error, io::ErrorKind::UnexpectedEof);
        let requests = stream::iter([(7, usize::MAX)]);
        let (limit, amplification) = Default::default();
        let mut reads = file.read_many(requests, limit, amplification);
        long.check(&reads.next().await.expect("there is one")?.1, 7);
        drop(reads);
        let buffer = file.alloc_dma_buffer(all.next_multiple_of(4096));
        let (read, buffer) = file.read_at_into(buffer, 0).await;
        long.check(&buffer.as_bytes()[..read?], 0);
        file.close_rc().await?;

        // A hole costs no memory there.
        let Some(folder) = folder_in_memory() else {
            return Ok(());
        };
        let path = folder.path().join("file");
        let long = Long::new(&path, GIB + 10_000);
        let file = BufferedFile::open(&path).await?;
        long.check(&file.read_at(9, usize::MAX).await?, 9);
        file.close().await
    });
}

#[run_test]
async fn more_than_there_is_memory_is_an_error_and_not_the_end() {
    // A device says nothing of its size.
    let file = BufferedFile::open("/dev/zero").await?;
    assert_eq!(
        told(file.read_at(0, usize::MAX).await),
        ("Reading", Some("/dev/zero".into()), Some(libc::ENOMEM))
    );
    assert_eq!(file.read_at(0, 100).await?.len(), 100);
    file.close().await
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> io::ErrorKind {
    match result.expect_err("this was to fail") {
        GlommioError::EnhancedIoError { source, .. } => source.kind(),
        other => panic!("not an error of a file: {other:?}"),
    }
}

#[run_test(in_each_place)]
async fn exactly_what_was_asked_for_or_an_error(path: PathBuf) {
    const LEN: usize = 20_000;
    filled(&path, LEN);
    let (dma, buffered) = (
        DmaFile::open(&path).await?,
        BufferedFile::open(&path).await?,
    );
    for position in [0, 1, 4096, 8191, 19_999, 20_000, 30_000] {
        for size in [0, 1, 100, 4096, 12_288, 20_000, 30_000] {
            let is_there = size == 0 || position + size <= LEN;
            let at = position as u64;
            let reads = [
                dma.read_exact_at(at, size).await,
                buffered.read_exact_at(at, size).await,
            ];
            for read in reads {
                if is_there {
                    assert_eq!(*read?, pattern(position, size))
                } else {
                    assert_eq!(kind(read), io::ErrorKind::UnexpectedEof);
                }
            }
        }
    }
    dma.close().await?;
    buffered.close().await?;
}

#[run_test]
async fn all_is_written_or_an_error_says_why() {
    for (_folder, path) in places(folders()) {
        let dma = DmaFile::create(&path).await?;
        let mut buffer = dma.alloc_dma_buffer(1 << 20);
        buffer
            .as_bytes_mut()
            .copy_from_slice(&pattern(4096, 1 << 20));
        dma.write_all_at(buffer, 4096).await?;
        dma.write_all_at(dma.alloc_dma_buffer(0), 0).await?;
        dma.close().await?;
        let buffered = OpenOptions::new().write(true).buffered_open(&path).await?;
        buffered.write_all_at(pattern(0, 4096), 0).await?;
        buffered.write_all_at(Vec::new(), u64::MAX).await?;
        let error = told(buffered.write_all_at(vec![0], u64::MAX).await);
        assert_eq!(error.2, Some(libc::EINVAL));
        buffered.close().await?;
        assert_eq!(fs::read(&path)?, pattern(0, 4096 + (1 << 20)));
    }
    let full = OpenOptions::new()
        .write(true)
        .buffered_open("/dev/full")
        .await?;
    assert_eq!(
        told(full.write_all_at(vec![0; 10], 0).await).2,
        Some(libc::ENOSPC)
    );
    full.close().await
}

/// A limit of the process cuts the write in the middle: what follows is attempted, and its error is
/// the answer.
#[test]
fn a_write_that_is_cut_short_is_gone_on_with() {
    crate::common::in_child(|| {
        use nix::sys::resource::{Resource, setrlimit};
        // SAFETY: ignoring a signal runs no code.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        setrlimit(Resource::RLIMIT_FSIZE, 10_000, 10_000).expect("it is lowered");
        run(async {
            let (_folder, path) = place();
            let file = BufferedFile::create(&path).await?;
            assert_eq!(file.write_at(vec![1; 20_000], 0).await?, 10_000);
            let cut = file.write_all_at(pattern(0, 20_000), 0).await;
            assert_eq!(told(cut).2, Some(libc::EFBIG));
            assert_eq!(fs::read(&path)?, pattern(0, 10_000));
            file.close().await
        });
    });
}

#[run_test(in_each_place)]
async fn a_buffer_of_the_callers_is_read_into_and_comes_back(path: PathBuf) {
    filled(&path, 10_000);
    let dma = DmaFile::open(&path).await?;
    let mut frame = dma.alloc_dma_buffer(4096);
    let address = frame.as_ptr();
    for (position, count) in [(0, 4096), (4096, 4096), (8192, 1808), (12_288, 0)] {
        frame.as_bytes_mut().fill(0xEE);
        let (read, back) = dma.read_at_into(frame, position as u64).await;
        frame = back;
        assert_eq!(read?, count);
        assert_eq!(frame.as_bytes()[..count], pattern(position, count));
        assert_eq!((frame.len(), frame.as_ptr()), (4096, address));
    }
    // Errors give it back, too.
    let (read, back) = dma.read_at_into(frame, u64::MAX).await;
    assert_eq!(told(read).2, Some(libc::EINVAL));
    assert_eq!(back.as_ptr(), address);
    dma.close().await?;
    let unreadable = OpenOptions::new().write(true).dma_open(&path).await?;
    let (read, back) = unreadable.read_at_into(back, 0).await;
    assert_eq!(told(read).2, Some(libc::EBADF));
    assert_eq!((back.len(), back.as_ptr()), (4096, address));
    unreadable.close().await?;

    let buffered = BufferedFile::open(&path).await?;
    let (read, back) = buffered.read_at_into(back, 9000).await;
    assert_eq!(read?, 1000);
    assert_eq!(back.as_bytes()[..1000], pattern(9000, 1000));
    assert_eq!((back.len(), back.as_ptr()), (4096, address));
    let (read, none) = buffered
        .read_at_into(glommio::allocate_dma_buffer(0), 0)
        .await;
    assert_eq!((read?, none.len()), (0, 0));
    buffered.close().await?;
}

#[run_test(in_each_place)]
async fn reads_into_buffers_that_are_given_up_harm_nothing(path: PathBuf) {
    filled(&path, 100_000);
    let file = DmaFile::open(&path).await?;
    for polls in 0..3 {
        for _ in 0..20 {
            let buffer = file.alloc_dma_buffer(8192);
            give_up(file.read_at_into(buffer, 4096), polls).await;
        }
    }
    let (read, back) = file.read_at_into(file.alloc_dma_buffer(4096), 8192).await;
    assert_eq!((read?, back.as_bytes()), (4096, &pattern(8192, 4096)[..]));
    file.close().await?;
}
