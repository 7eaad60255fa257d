//! `DmaFile`: what is read is what was written, no more and no less.

use std::os::unix::fs::FileExt;

use glommio::allocate_dma_buffer_global;
use glommio::io::{CloseResult, DmaBuffer};

use super::*;

fn buffer(file: &DmaFile, start: usize, len: usize) -> DmaBuffer {
    let mut buffer = file.alloc_dma_buffer(len);
    buffer.as_bytes_mut().copy_from_slice(&pattern(start, len));
    buffer
}

fn for_both(options: &mut OpenOptions) -> &mut OpenOptions {
    options.read(true).write(true).create(true)
}

/// Every position and size around blocks and the end, of a file that ends in the middle of a block.
#[run_test(in_each_place)]
async fn a_read_brings_the_bytes_that_the_file_has_and_no_others(path: PathBuf) {
    const LEN: usize = 9_777;
    filled(&path, LEN);
    let file = DmaFile::open(&path).await?;
    let places = [
        0,
        1,
        511,
        512,
        513,
        4095,
        4096,
        9_000,
        9_215,
        9_776,
        9_777,
        9_778,
        10_240,
        1 << 40,
    ];
    for start in places {
        for size in [0, 1, 2, 511, 512, 513, 777, 4096, 9_777, 20_000] {
            let read = file.read_at(start as u64, size).await?;
            let end = LEN.min(start + size);
            let expected = pattern(start.min(end), end.saturating_sub(start));
            assert_eq!(*read, expected, "{size} bytes at {start}");
        }
    }
    file.close().await?;
}

#[run_test(in_each_place)]
async fn an_aligned_read_ends_where_the_file_does(path: PathBuf) {
    filled(&path, 5000);
    let file = DmaFile::open(&path).await?;
    let align = file.alignment();
    assert!(align.is_power_of_two() && align >= 512);
    assert_eq!(file.align_up(1), align);
    assert_eq!(file.align_up(align), align);
    assert_eq!(file.align_down(2 * align - 1), align);
    assert_eq!(*file.read_at_aligned(4096, 4096).await?, pattern(4096, 904));
    assert!(file.read_at_aligned(8192, 4096).await?.is_empty());
    assert!(file.read_at_aligned(0, 0).await?.is_empty());
    file.close().await?;
}

#[run_test(in_each_place)]
async fn buffers_are_written_whole_trimmed_and_shared(path: PathBuf) {
    let file = for_both(&mut OpenOptions::new()).dma_open(&path).await?;
    assert_eq!(file.write_at(buffer(&file, 0, 8192), 0).await?, 8192);
    let mut long = buffer(&file, 8192, 65_536);
    long.trim_to_size(4096);
    assert_eq!(file.write_at(long, 8192).await?, 4096);
    let shared = Rc::new(buffer(&file, 12_288, 4096));
    let (one, other) = futures_lite::future::zip(
        file.write_rc_at(Rc::clone(&shared), 12_288),
        file.write_rc_at(Rc::clone(&shared), 16_384),
    )
    .await;
    assert_eq!((one?, other?), (4096, 4096));
    assert_eq!(shared.as_bytes(), pattern(12_288, 4096));
    let mut global = allocate_dma_buffer_global(4096);
    global.as_bytes_mut().copy_from_slice(&pattern(0, 4096));
    assert_eq!(file.write_at(global, 20_480).await?, 4096);
    file.fdatasync().await?;
    file.fsync().await?;
    file.close().await?;
    let mut expected = pattern(0, 16_384);
    expected.extend_from_within(12_288..16_384);
    expected.extend(pattern(0, 4096));
    assert_eq!(fs::read(&path)?, expected);
}

#[run_test(in_place)]
async fn what_was_read_is_written_again_without_a_copy(path: PathBuf) {
    filled(&path, 8192);
    let file = for_both(&mut OpenOptions::new()).dma_open(&path).await?;
    let read = file.read_at(0, 4096).await?;
    let address = read.as_ptr();
    let again = DmaBuffer::from(read);
    assert_eq!(again.as_ptr(), address);
    assert_eq!(file.write_at(again, 4096).await?, 4096);
    file.close().await?;
    assert_eq!(fs::read(&path)?[4096..], pattern(0, 4096));
}

/// Where there is direct I/O, and only there.
#[run_test]
async fn what_is_not_aligned_is_an_error_of_direct_io_and_none_of_a_tmpfs() {
    for (is_direct, folder) in [(false, folder_in_memory()), (true, Some(folder()))] {
        let Some(folder) = folder else { continue };
        let path = folder.path().join("file");
        filled(&path, 8192);
        let file = for_both(&mut OpenOptions::new()).dma_open(&path).await?;
        let flags = nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_GETFL).unwrap();
        let has_direct = flags & libc::O_DIRECT != 0;
        if !is_direct {
            assert!(!has_direct);
        } else if !has_direct {
            left_out("the temporary folder has no direct I/O");
        }
        let read = file.read_at_aligned(1, 100).await;
        let write = file.write_at(buffer(&file, 0, 100), 1).await;
        if has_direct {
            let einval = Some(libc::EINVAL);
            assert_eq!(told(read), ("Reading", Some(path.clone()), einval));
            assert_eq!(told(write), ("Writing", Some(path.clone()), einval));
        } else {
            assert_eq!(*read?, pattern(1, 100));
            assert_eq!(write?, 100);
        }
        file.close().await?;
    }
}

#[run_test(in_each_place)]
async fn positions_that_no_file_has_are_errors(path: PathBuf) {
    let file = for_both(&mut OpenOptions::new()).dma_open(&path).await?;
    let einval = Some(libc::EINVAL);
    for position in [1 << 63, u64::MAX - 4095, u64::MAX] {
        assert_eq!(told(file.read_at(position, 1).await).2, einval);
        assert_eq!(told(file.read_at_aligned(position, 512).await).2, einval);
        let write = file.write_at(buffer(&file, 0, 4096), position).await;
        assert_eq!(told(write).2, einval);
        assert_eq!(told(file.truncate(position).await).2, einval);
    }
    assert_eq!(file.file_size().await?, 0);
    file.close().await?;
}

#[run_test(in_each_place)]
async fn the_wrong_way_is_an_error_of_the_system(path: PathBuf) {
    let file = DmaFile::create(&path).await?;
    let ebadf = Some(libc::EBADF);
    assert_eq!(
        told(file.read_at(0, 512).await),
        ("Reading", Some(path.clone()), ebadf)
    );
    file.close().await?;
    let file = DmaFile::open(&path).await?;
    let write = file.write_at(buffer(&file, 0, 512), 0).await;
    assert_eq!(told(write), ("Writing", Some(path.clone()), ebadf));
    assert_eq!(
        told(file.pre_allocate(4096, false).await).0,
        "Pre-allocate space"
    );
    assert_eq!(told(file.truncate(1).await).0, "Truncating");
    assert_eq!(told(file.deallocate(0, 4096).await).0, "Deallocate range");
    file.close().await?;
}

#[run_test]
async fn space_is_allocated_and_given_back() {
    for (_folder, path) in places(with_space_to_manage(folders())) {
        let file = for_both(&mut OpenOptions::new()).dma_open(&path).await?;
        file.write_at(buffer(&file, 0, 8192), 0).await?;
        let (op, _, errno) = told(file.pre_allocate(0, true).await);
        assert_eq!((op, errno), ("Pre-allocate space", Some(libc::EINVAL)));
        file.pre_allocate(65_536, true).await?;
        let stat = file.stat().await?;
        assert_eq!(stat.file_size, 8192);
        assert!(stat.allocated_file_size >= 65_536);
        file.pre_allocate(16_384, false).await?;
        assert_eq!(file.file_size().await?, 16_384);
        file.pre_allocate(4096, false).await?;
        assert_eq!(file.file_size().await?, 16_384);
        file.deallocate(4096, 4096).await?;
        file.deallocate(1 << 30, 4096).await?;
        assert_eq!(file.file_size().await?, 16_384);
        let mut expected = pattern(0, 4096);
        expected.resize(16_384, 0);
        assert_eq!(*file.read_at(0, 20_000).await?, expected);
        file.truncate(10).await?;
        assert_eq!(*file.read_at(0, 20_000).await?, pattern(0, 10));
        file.truncate(12).await?;
        assert_eq!(file.file_size().await?, 12);
        file.close().await?;
        assert_eq!(fs::read(&path)?[10..], [0, 0]);
    }
}

#[run_test(in_each_folder)]
async fn a_hint_at_extents_is_taken_or_refused(folder: TempDir) {
    let file = DmaFile::create(folder.path().join("file")).await?;
    match file.hint_extent_size(1 << 20).await {
        Ok(result) => assert_eq!(result, 0),
        Err(error) => {
            let errno = error.raw_os_error().expect("a system error");
            let refused = [libc::EOPNOTSUPP, libc::ENOTTY, libc::EINVAL];
            assert!(refused.contains(&errno), "{error}");
        }
    }
    let error = plain(file.hint_extent_size(1 << 32).await);
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    file.close().await?;
}

#[run_test(in_each_folder)]
async fn ranges_are_copied_within_the_kernel_and_counted(folder: TempDir) {
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    filled(&from, 20_000);
    let source = DmaFile::open(&from).await?;
    let target = DmaFile::create(&to).await?;
    glommio::executor().io_stats();
    let copied = target
        .copy_file_range_aligned(&source, 4096, 8192, 0)
        .await?;
    assert!((1..=8192).contains(&copied));
    let stats = glommio::executor().io_stats().all_rings();
    assert_eq!(stats.file_reads(), (1, copied as u64));
    assert_eq!(stats.file_writes(), (1, copied as u64));
    let beyond = target
        .copy_file_range_aligned(&source, 1 << 20, 10, 0)
        .await?;
    assert_eq!(beyond, 0);
    let far = target
        .copy_file_range_aligned(&source, 1 << 63, 10, 0)
        .await;
    assert_eq!(
        told(far),
        ("Copying file range", Some(to.clone()), Some(libc::EINVAL))
    );
    source.close().await?;
    target.close().await?;
    assert_eq!(fs::read(&to)?, pattern(4096, copied));
}

#[run_test(in_each_place)]
async fn a_file_that_is_cut_below_a_reader_reads_as_what_is_left(path: PathBuf) {
    filled(&path, 1 << 20);
    let file = DmaFile::open(&path).await?;
    let other = fs::OpenOptions::new().write(true).open(&path)?;
    for len in [1 << 20, 600_000, 4097, 4096, 100, 0] {
        other.set_len(len as u64)?;
        assert_eq!(
            file.read_at(50, 2 << 20).await?.len(),
            usize::saturating_sub(len, 50)
        );
    }
    other.write_all_at(b"more", 0)?;
    assert_eq!(&*file.read_at(0, 100).await?, b"more");
    file.close().await?;
}

#[run_test(in_each_place)]
async fn many_operations_at_once_on_one_file(path: PathBuf) {
    let file = Rc::new(for_both(&mut OpenOptions::new()).dma_open(&path).await?);
    let tasks: Vec<_> = (0..300)
        .map(|at| {
            let file = Rc::clone(&file);
            glommio::spawn_local(async move {
                let position = at * 4096;
                let written = file.write_at(buffer(&file, position, 4096), position as u64);
                assert_eq!(written.await?, 4096);
                file.read_at(position as u64 + 10, 4000).await
            })
        })
        .collect();
    for (at, task) in tasks.into_iter().enumerate() {
        assert_eq!(*task.await?, pattern(at * 4096 + 10, 4000));
    }
    assert_eq!(file.close_rc().await?, CloseResult::Closed);
    assert_eq!(fs::read(&path)?, pattern(0, 300 * 4096));
}

#[test]
fn results_outlive_the_file_and_the_executor() {
    let (_folder, path) = place();
    filled(&path, 8192);
    let read = run(async {
        let file = DmaFile::open(&path).await?;
        let read = file.read_at(100, 5000).await?;
        file.close().await?;
        Ok(read)
    });
    run(async {
        // In another executor's memory.
        let file = DmaFile::open(&path).await?;
        let others = file.read_at(0, 8192).await?;
        assert_eq!(*others, pattern(0, 8192));
        file.close().await
    });
    assert_eq!(*read, pattern(100, 5000));
}

#[test]
fn a_file_whose_executor_is_gone_says_so() {
    let (_folder, path) = place();
    filled(&path, 100);
    let file = run(DmaFile::open(&path));
    let error = run(async { Ok(file.read_at(0, 10).await.unwrap_err()) });
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotConnected);
    // Closed on the spot: no executor comes to it.
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    assert_eq!(fs::read_link(&link).expect("it is open"), path);
    drop(file);
    assert!(fs::read_link(&link).map_or(true, |now| now != path));
}
