//! `ImmutableFile`: written once, and equal reads are done once.

use futures_lite::stream;
use glommio::io::{ImmutableFile, MergedBufferLimit, ReadAmplificationLimit};

use super::*;

/// Reads that went to the device, and those that did not.
fn reads() -> ((u64, u64), (u64, u64)) {
    let stats = executor().io_stats().all_rings();
    (stats.file_reads(), stats.file_deduped_reads())
}

async fn existing(path: &Path) -> Result<ImmutableFile> {
    ImmutableFileBuilder::new(path).build_existing().await
}

#[run_test(in_each_folder)]
async fn what_is_written_is_sealed_and_read(folder: TempDir) {
    for len in [0, 1, 4096, 5000, 300_000] {
        let path = folder.path().join(format!("file {len}"));
        let mut sink = ImmutableFileBuilder::new(&path)
            .with_buffer_size(4096)
            .with_sequential_concurrency(3)
            .with_pre_allocation(Some(1 << 20))
            .with_hint_extent_size(Some(1 << 20))
            .build_sink()
            .await?;
        sink.write_all(&pattern(0, len)).await?;
        assert_eq!(sink.current_pos(), len as u64);
        let aligned = sink.flush_aligned().await?;
        assert_eq!(aligned, len as u64 / 4096 * 4096);
        assert_eq!(sink.sync_aligned().await?, aligned);
        assert_eq!(sink.sync().await?, len as u64);
        assert_eq!(sink.current_flushed_pos(), len as u64);
        let file = sink.seal().await?;
        assert_eq!(file.file_size(), len as u64);
        assert_eq!(file.path().as_deref(), Some(&*path));
        assert_eq!(*file.read_at(0, 1 << 20).await?, pattern(0, len));
        assert_eq!(fs::read(&path)?, pattern(0, len));
        file.close().await?;
    }
}

#[run_test(in_place)]
async fn a_file_that_is_there_is_not_written_again(path: PathBuf) {
    filled(&path, 10);
    let sink = ImmutableFileBuilder::new(&path).build_sink().await;
    assert_eq!(told(sink), ("Creating", Some(path), Some(libc::EEXIST)));
    Ok(())
}

#[run_test(in_place)]
async fn a_sink_that_was_closed_cannot_be_sealed(path: PathBuf) {
    let mut sink = ImmutableFileBuilder::new(&path)
        .with_sync_on_close_disabled(true)
        .build_sink()
        .await?;
    sink.write_all(b"content").await?;
    sink.close().await?;
    assert_eq!(fs::read(&path)?, b"content");
    assert_closed(sink.seal().await.map_err(io::Error::from));
}

#[run_test(in_each_folder)]
async fn a_read_within_another_takes_part_in_it_also_from_another_open(folder: TempDir) {
    let [path, hard] = ["file", "hard"].map(|name| folder.path().join(name));
    filled(&path, 10_000);
    fs::hard_link(&path, &hard)?;
    let file = existing(&path).await?;
    let other = existing(&hard).await?;
    assert!(file.is_same(&other));
    reads();
    let whole = file.read_at(0, 10_000).await?;
    assert_eq!(reads(), ((1, 10_000), (0, 0)));
    let part = other.read_at(5000, 10).await?;
    assert_eq!(*part, pattern(5000, 10));
    let beyond = file.read_at(9_990, 1000).await?;
    assert_eq!(*beyond, pattern(9_990, 10));
    let (device, shared) = reads();
    assert_eq!((device.0, shared.0), (0, 2));
    // Beyond what the first has read.
    assert!(file.read_at(10_240, 10).await?.is_empty());
    assert_eq!(reads().0.0, 1);
    drop((whole, beyond));
    // A part keeps all of it.
    file.read_at(100, 10).await?;
    assert_eq!(reads().1.0, 1);
    drop(part);
    file.read_at(100, 10).await?;
    assert_eq!(
        reads(),
        ((1, 512.max(alignment(&path).await? as u64)), (0, 0))
    );
    other.close().await?;
    file.close().await?;
}

async fn alignment(path: &Path) -> Result<u64> {
    let file = DmaFile::open(path).await?;
    let alignment = file.alignment();
    file.close().await?;
    Ok(alignment)
}

#[run_test(in_place)]
async fn reads_at_the_same_time_are_one_and_each_waiter_is_woken(path: PathBuf) {
    filled(&path, 1 << 20);
    let file = existing(&path).await?;
    reads();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let file = file.clone();
            glommio::spawn_local(async move { file.read_at(4096, 100_000).await })
        })
        .collect();
    // Some are not interested any more.
    let mut tasks: Vec<_> = tasks.into_iter().map(Some).collect();
    for at in [0, 7, 19] {
        tasks[at] = None;
    }
    for task in tasks.into_iter().flatten() {
        assert_eq!(*task.await?, pattern(4096, 100_000));
    }
    let (device, shared) = reads();
    assert_eq!(device.0, 1);
    assert_eq!(shared.0, 19);
    file.close().await
}

/// The number of an inode goes to the next file that is created.
#[run_test(in_place)]
async fn results_of_a_file_that_is_gone_are_not_taken_for_those_of_another(path: PathBuf) {
    let mut kept = Vec::new();
    for round in 0..20_u8 {
        fs::write(&path, vec![round; 4096])?;
        let file = existing(&path).await?;
        let read = file.read_at(0, 4096).await?;
        assert_eq!(*read, vec![round; 4096]);
        kept.push(read);
        file.remove().await?;
        file.close().await?;
    }
    for (round, read) in kept.iter().enumerate() {
        assert_eq!(**read, vec![round as u8; 4096]);
    }
}

#[run_test(in_place)]
async fn a_read_that_failed_is_not_taken_part_in(path: PathBuf) {
    filled(&path, 4096);
    let file = existing(&path).await?;
    for _ in 0..2 {
        let (op, _, errno) = told(file.read_at(u64::MAX - 5000, 10).await);
        assert_eq!((op, errno), ("Reading", Some(libc::EINVAL)));
    }
    assert_eq!(*file.read_at(0, 10).await?, pattern(0, 10));
    file.close().await
}

#[run_test(in_place)]
async fn plain_files_always_read(path: PathBuf) {
    filled(&path, 4096);
    let file = DmaFile::open(&path).await?;
    reads();
    let first = file.read_at(0, 4096).await?;
    let second = file.read_at(0, 4096).await?;
    assert_eq!(reads(), ((2, 8192), (0, 0)));
    drop((first, second));
    file.close().await
}

#[run_test(in_place)]
async fn streams_and_bulk_reads_of_it_share_too(path: PathBuf) {
    filled(&path, 100_000);
    let file = ImmutableFileBuilder::new(&path)
        .with_buffer_size(8192)
        .build_existing()
        .await?;
    let whole = file.read_at(0, 100_000).await?;
    reads();
    let mut stream = file.stream_reader().build();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await?;
    assert_eq!(all, pattern(0, 100_000));
    stream.close().await?;
    let mut again = file
        .stream_reader()
        .with_start_pos(50_001)
        .with_end_pos(60_000)
        .build();
    all.clear();
    again.read_to_end(&mut all).await?;
    assert_eq!(all, pattern(50_001, 9_999));
    drop(again);
    let requests = stream::iter((0..10).map(|at| (at * 7000, 100)));
    let mut many = file.read_many(
        requests,
        MergedBufferLimit::NoMerging,
        ReadAmplificationLimit::default(),
    );
    while let Some(read) = many.next().await {
        let ((position, size), data) = read?;
        assert_eq!(*data, pattern(position as usize, size));
    }
    drop(many);
    let (device, shared) = reads();
    assert!(shared.0 >= 20, "{shared:?}");
    assert!(device.0 <= 2, "what reads ahead of the end: {device:?}");
    drop(whole);
    file.close().await
}

#[run_test(in_place)]
async fn closing_is_for_the_last_of_all_that_use_it(path: PathBuf) {
    filled(&path, 5000);
    let file = existing(&path).await?;
    let clone = file.clone();
    let mut stream = file.stream_reader().build();
    file.close().await?;
    clone.close().await?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await?;
    assert_eq!(all, pattern(0, 5000));
    executor().io_stats();
    stream.close().await?;
    assert_eq!(executor().io_stats().all_rings().files_closed(), 1);
}

#[run_test(in_place)]
async fn readers_of_a_file_that_changes_get_what_there_is(path: PathBuf) {
    filled(&path, 10_000);
    let file = existing(&path).await?;
    fs::OpenOptions::new()
        .write(true)
        .open(&path)?
        .set_len(100)?;
    assert_eq!(file.file_size(), 10_000);
    assert_eq!(*file.read_at(0, 10_000).await?, pattern(0, 100));
    assert!(file.read_at(5000, 10).await?.is_empty());
    file.close().await
}

#[run_test(in_folder)]
async fn renamed_and_removed(folder: TempDir) {
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    filled(&old, 10);
    let file = Rc::new(existing(&old).await?);
    file.rename(&new).await?;
    assert_eq!(file.path().as_deref(), Some(&*new));
    file.remove().await?;
    assert!(!new.exists());
    let missing = existing(&new).await;
    assert!(matches!(
        missing,
        Err(GlommioError::EnhancedIoError { op: "Opening", .. })
    ));
}
