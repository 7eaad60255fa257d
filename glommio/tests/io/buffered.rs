//! `BufferedFile`: through the page cache.

use super::*;

#[run_test(in_each_place)]
async fn a_read_brings_the_bytes_that_the_file_has(path: PathBuf) {
    const LEN: usize = 9_777;
    filled(&path, LEN);
    let file = BufferedFile::open(&path).await?;
    for start in [0, 1, 4095, 4096, 9_776, 9_777, 9_778, 1 << 40] {
        for size in [0, 1, 4096, 9_777, 20_000] {
            let read = file.read_at(start as u64, size).await?;
            let end = LEN.min(start + size);
            let expected = pattern(start.min(end), end.saturating_sub(start));
            assert_eq!(*read, expected, "{size} bytes at {start}");
        }
    }
    file.close().await?;
}

/// The cache holds a part of what is asked for, or nothing.
#[run_test(in_each_place)]
async fn what_is_not_in_the_page_cache_is_waited_for(path: PathBuf) {
    const LEN: usize = 1 << 20;
    filled(&path, LEN);
    let file = BufferedFile::open(&path).await?;
    let drop_from_cache = |start: usize, len: usize| {
        let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
        nix::fcntl::posix_fadvise(&file, start as i64, len as i64, advice)
    };
    file.fdatasync().await?;
    for (start, len) in [(0, LEN), (LEN / 2, LEN / 2), (0, LEN / 2), (8192, 4096)] {
        drop_from_cache(start, len).expect("a hint");
        assert_eq!(*file.read_at(0, LEN).await?, pattern(0, LEN));
        drop_from_cache(start, len).expect("a hint");
        assert_eq!(*file.read_at(100, LEN).await?, pattern(100, LEN - 100));
    }
    file.close().await?;
}

#[run_test]
async fn what_is_written_is_seen_by_others_and_grows_the_file() {
    for (_folder, path) in places(with_space_to_manage(folders())) {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = options.buffered_open(&path).await?;
        assert_eq!(file.write_at(pattern(0, 5000), 0).await?, 5000);
        assert_eq!(fs::read(&path)?, pattern(0, 5000));
        assert_eq!(file.write_at(b"end".to_vec(), 6000).await?, 3);
        assert_eq!(file.write_at(Vec::new(), 10_000).await?, 0);
        let mut expected = pattern(0, 5000);
        expected.resize(6000, 0);
        expected.extend(b"end");
        assert_eq!(*file.read_at(0, 10_000).await?, expected);
        file.truncate(5001).await?;
        assert_eq!(file.file_size().await?, 5001);
        file.pre_allocate(10_000, false).await?;
        assert_eq!(file.file_size().await?, 10_000);
        file.deallocate(0, 4096).await?;
        assert_eq!(*file.read_at(0, 10).await?, [0; 10]);
        file.fdatasync().await?;
        file.close().await?;
    }
}

#[run_test(in_folder)]
async fn positions_that_no_file_has_are_errors(folder: TempDir) {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    let file = options.buffered_open(folder.path().join("file")).await?;
    for position in [1 << 63, u64::MAX] {
        assert_eq!(told(file.read_at(position, 1).await).2, Some(libc::EINVAL));
        let write = file.write_at(vec![1], position).await;
        assert_eq!(told(write).2, Some(libc::EINVAL));
    }
    assert_eq!(file.file_size().await?, 0);
    file.close().await
}

#[run_test(in_folder)]
async fn errors_say_what_and_where(folder: TempDir) {
    let path = folder.path().join("file");
    let mut file = BufferedFile::create(&path).await?;
    let expected = ("Reading", Some(path.clone()), Some(libc::EBADF));
    assert_eq!(told(file.read_at(0, 10).await), expected);
    let moved = folder.path().join("moved");
    file.rename(&moved).await?;
    assert_eq!(told(file.read_at(0, 10).await).1, Some(moved));
    file.remove().await?;
    file.close().await?;
    let directory = BufferedFile::open(folder.path()).await?;
    assert_eq!(told(directory.read_at(0, 10).await).2, Some(libc::EISDIR));
    directory.close().await
}

#[run_test(in_place)]
async fn a_descriptor_becomes_a_file(path: PathBuf) {
    filled(&path, 100);
    let fd = fs::File::open(&path)?.into_raw_fd();
    // SAFETY: it was given up above.
    let mut file = unsafe { BufferedFile::from_raw_fd(fd) };
    assert_eq!(file.as_raw_fd(), fd);
    assert!(file.path().is_none());
    assert_eq!(file.file_size().await?, 100);
    assert_eq!(*file.read_at(90, 100).await?, pattern(90, 10));
    assert_eq!(told(file.remove().await).0, "remove");
    assert_eq!(told(file.rename("elsewhere").await).0, "rename");
    file.close().await?;

    let (reader, mut writer) = io::pipe()?;
    // SAFETY: as above.
    let pipe = unsafe { BufferedFile::from_raw_fd(reader.into_raw_fd()) };
    let mut read = Box::pin(pipe.read_at(0, 100));
    assert!(poll_once(&mut read).await.is_none());
    io::Write::write_all(&mut writer, b"through the pipe")?;
    assert_eq!(&*(&mut read).await?, b"through the pipe");
    drop(read);
    drop(writer);
    assert!(pipe.read_at(0, 100).await?.is_empty());
    pipe.close().await
}

#[run_test(in_folder)]
async fn files_made_of_descriptors_are_the_same_only_if_they_are(folder: TempDir) {
    let paths = ["one", "other"].map(|name| folder.path().join(name));
    let of_path = |path| {
        let fd = fs::File::create(path)
            .expect("the disk has room")
            .into_raw_fd();
        // SAFETY: the descriptor was just made, and belongs to nothing else.
        unsafe { BufferedFile::from_raw_fd(fd) }
    };
    let (one, again, other) = (of_path(&paths[0]), of_path(&paths[0]), of_path(&paths[1]));
    assert!(!one.is_same(&other));
    assert!(one.is_same(&again) && one.is_same(&one));
    let opened = BufferedFile::open(&paths[0]).await?;
    assert!(opened.is_same(&one) && !opened.is_same(&other));
}
