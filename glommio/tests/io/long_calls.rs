//! Calls of which there is much to do, none of which keeps the thread: what is copied, listed or handed
//! on is cut into pieces, or done by others.

use std::fs::File;

use futures_lite::{Stream, stream};
use glommio::io::{MergedBufferLimit, ReadAmplificationLimit};
use nix::sys::statvfs::statvfs;
use nix::time::ClockId;

use super::budget::is_refused;
use super::*;

const MIB: usize = 1 << 20;
const LONG: usize = 192 * MIB;

/// Processor time of this thread, and of all threads of the process: those of the kernel that work
/// for it are among these.
fn cpu() -> (Duration, Duration) {
    let spent = |clock: ClockId| Duration::from(clock.now().expect("there is such a clock"));
    (
        spent(ClockId::CLOCK_THREAD_CPUTIME_ID),
        spent(ClockId::CLOCK_PROCESS_CPUTIME_ID),
    )
}

/// Whether processor time is measured, rather than added up in ticks of 10 ms as in gVisor.
fn is_exact() -> bool {
    let before = cpu().0;
    loop {
        let passed = cpu().0 - before;
        if !passed.is_zero() {
            return passed < Duration::from_millis(1);
        }
    }
}

/// Does `call`, which has to move many bytes, and asserts that another thread moves them. However
/// fast the machine is, that takes most of the time, or next to none.
async fn is_done_elsewhere<T>(what: &str, call: impl Future<Output = Result<T>>) -> Result<T> {
    let before = cpu();
    let result = call.await;
    let after = cpu();
    let (own, all) = (after.0 - before.0, after.1 - before.1);
    let is_little = own < all / 4 || own < Duration::from_millis(10);
    assert!(
        is_little || !is_exact(),
        "{what}: {own:?} of {all:?} on this thread"
    );
    result
}

/// A file of [`LONG`] zeros, which takes no space. Reading it copies them.
fn long_file(path: &Path) {
    let file = File::create(path).expect("the disk has room");
    file.set_len(LONG as u64).expect("there are sparse files");
}

#[run_test(run_in_child)]
async fn a_long_read_leaves_the_thread_to_others() {
    for (_folder, path) in places(folders()) {
        long_file(&path);
        let file = BufferedFile::open(&path).await?;
        for what in ["buffered", "buffered, from the page cache"] {
            let read = is_done_elsewhere(what, file.read_at(5, LONG)).await?;
            assert_eq!(read.len(), LONG - 5);
        }
        let exact = is_done_elsewhere("exact", file.read_exact_at(0, LONG)).await?;
        assert_eq!(exact.len(), LONG);
        let mut reader = StreamReaderBuilder::new(file)
            .with_buffer_size(LONG)
            .build();
        is_done_elsewhere("stream", async {
            assert_eq!(reader.read(&mut [1]).await?, 1);
            Ok(())
        })
        .await?;
        reader.close().await?;

        let file = Rc::new(DmaFile::open(&path).await?);
        let read = is_done_elsewhere("direct", file.read_at(0, LONG)).await?;
        assert_eq!(read.len(), LONG);
        drop(read);
        let (limit, amplification) = Default::default();
        let mut many = file.read_many(stream::iter([(5, LONG)]), limit, amplification);
        let read = is_done_elsewhere("one of many", async {
            many.next().await.expect("there is one")
        });
        assert_eq!(read.await?.1.len(), LONG - 5);
        drop(many);
        file.close_rc().await?;
    }
}

#[run_test(run_in_child)]
async fn a_long_write_leaves_the_thread_to_others() {
    for folder in folders() {
        let free = statvfs(folder.path()).expect("it is there");
        if free.blocks_available() * free.fragment_size() < 2 * LONG as u64 {
            // As /dev/shm in containers, which has 64 MiB.
            skipped(format_args!("no room in {}", folder.path().display()));
            continue;
        }
        let path = folder.path().join("file");
        let file = DmaFile::create(&path).await?;
        // It stays: freeing it takes time, too.
        let bytes = Rc::new(file.alloc_dma_buffer(LONG));
        let write = file.write_rc_at(Rc::clone(&bytes), 0);
        assert_eq!(is_done_elsewhere("write", write).await?, LONG);
        file.close().await?;
    }
}

#[run_test(in_folder)]
async fn a_directory_of_many_names_is_listed_with_turns_between_them(folder: TempDir) {
    for number in 0..100 {
        File::create(folder.path().join(number.to_string()))?;
    }
    let directory = Directory::open(folder.path()).await?;
    let mut entries = directory.read_dir()?;
    entries.next().await.expect("there are many")?;
    is_refused(|cx| Pin::new(&mut entries).poll_next(cx)).await;
    let mut left = 0;
    while let Some(entry) = entries.next().await {
        entry?;
        left += 1;
    }
    assert_eq!(left, 99);
    drop(entries);
    directory.close().await
}

#[run_test(in_place)]
async fn reads_of_a_block_that_is_in_memory_are_refused_when_the_budget_is_spent(path: PathBuf) {
    filled(&path, 8192);
    let file = Rc::new(DmaFile::open(&path).await?);
    let requests = stream::iter((0..100).map(|at| (at, 10)));
    let everything = ReadAmplificationLimit::NoLimit;
    let mut many = file.read_many(requests, MergedBufferLimit::default(), everything);
    many.next().await.expect("there are many")?;
    is_refused(|cx| Pin::new(&mut many).poll_next(cx)).await;
    let mut left = 0;
    while let Some(read) = many.next().await {
        let ((at, _), data) = read?;
        assert_eq!(*data, pattern(at as usize, 10));
        left += 1;
    }
    assert_eq!(left, 99);
    drop(many);
    file.close_rc().await?;

    let file = ImmutableFileBuilder::new(&path).build_existing().await?;
    let looked_at = file.read_at(0, 4096).await?;
    let mut again = Box::pin(file.read_at(100, 10));
    is_refused(|cx| again.as_mut().poll(cx)).await;
    assert_eq!(*again.as_mut().await?, looked_at[100..110]);
    drop(again);
    // It is not asked of the device.
    let at_once = poll_fn(|cx| Poll::Ready(pin!(file.read_at(0, 10)).poll(cx).is_ready()));
    assert!(at_once.await);
    file.close().await.map(drop)
}
