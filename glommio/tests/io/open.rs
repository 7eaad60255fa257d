//! Opening, closing, and the names of files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};

use glommio::io::{remove, rename, stat};
use nix::unistd::mkfifo;

use super::*;
use crate::common::seccomp::deny_all;

#[run_test(in_folder)]
async fn what_cannot_be_opened_says_what_was_attempted_on_what(folder: TempDir) {
    let missing = folder.path().join("missing");
    let enoent = Some(libc::ENOENT);
    let expected = ("Opening", Some(missing.clone()), enoent);
    assert_eq!(told(DmaFile::open(&missing).await), expected);
    assert_eq!(told(BufferedFile::open(&missing).await), expected);
    let nowhere = missing.join("file");
    let expected = ("Creating", Some(nowhere.clone()), enoent);
    assert_eq!(told(DmaFile::create(&nowhere).await), expected);
    assert_eq!(told(BufferedFile::create(&nowhere).await), expected);
    filled(&missing, 1);
    let mut new = OpenOptions::new();
    new.write(true).create_new(true);
    let eexist = Some(libc::EEXIST);
    let (op, _, errno) = told(new.dma_open(&missing).await);
    assert_eq!((op, errno), ("Creating", eexist));
    Ok(())
}

#[run_test(in_place)]
async fn options_that_contradict_each_other_are_refused_before_anything_happens(path: PathBuf) {
    let mut nothing = OpenOptions::new();
    nothing.create(true);
    let error = plain(nothing.dma_open(&path).await);
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    let mut unwritten = OpenOptions::new();
    unwritten.read(true).create(true);
    let error = plain(unwritten.buffered_open(&path).await);
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(!path.exists());
    Ok(())
}

#[run_test(in_place)]
async fn nothing_happens_before_the_first_poll(path: PathBuf) {
    drop(DmaFile::create(&path));
    sleep(Duration::from_millis(5)).await;
    assert!(!path.exists());
    Ok(())
}

#[test]
fn files_need_an_executor() {
    let message = panic_of(|| futures_lite::future::block_on(BufferedFile::open("/dev/null")));
    assert!(message.contains("no LocalExecutor"), "{message}");
}

#[run_test]
async fn a_path_with_a_zero_byte_is_invalid_wherever_it_is() {
    let bad = PathBuf::from("a\0b");
    let kind = |result: Result<()>| io::Error::from(result.unwrap_err()).kind();
    let invalid = io::ErrorKind::InvalidInput;
    assert_eq!(kind(DmaFile::open(&bad).await.map(drop)), invalid);
    assert_eq!(kind(BufferedFile::create(&bad).await.map(drop)), invalid);
    assert_eq!(kind(rename(&bad, "c").await), invalid);
    assert_eq!(kind(rename("c", &bad).await), invalid);
    assert_eq!(kind(remove(&bad).await), invalid);
    assert_eq!(kind(stat(&bad).await.map(drop)), invalid);
    Ok(())
}

#[run_test(in_folder)]
async fn names_may_have_any_other_byte_and_paths_their_greatest_length(folder: TempDir) {
    let odd = OsStr::from_bytes(b"line\nbreak \xff and \"quotes\"");
    let path = folder.path().join(odd);
    BufferedFile::create(&path).await?.close().await?;
    assert_eq!(stat(&path).await?.file_size, 0);
    remove(&path).await?;

    // 4095 bytes at most, of names with up to 255.
    let mut deep = folder.path().to_path_buf();
    while deep.as_os_str().len() < 3640 {
        deep.push("d".repeat(50));
    }
    fs::create_dir_all(&deep)?;
    let room = 4095 - deep.as_os_str().len() - 1;
    let middle = "m".repeat(room - 201);
    deep.push(&middle);
    fs::create_dir(&deep)?;
    deep.push("f".repeat(200));
    assert_eq!(deep.as_os_str().len(), 4095);
    let file = DmaFile::create(&deep).await?;
    assert_eq!(file.path().as_deref(), Some(&*deep));
    file.remove().await?;
    file.close().await?;
    deep.set_extension("g");
    let (_, _, errno) = told(DmaFile::create(&deep).await);
    assert_eq!(errno, Some(libc::ENAMETOOLONG));
}

#[run_test(run_in_child)]
async fn relative_paths_are_of_the_working_directory_and_become_absolute() {
    let folder = folder();
    std::env::set_current_dir(folder.path())?;
    let file = DmaFile::create("file").await?;
    let expected = std::env::current_dir()?.join("file");
    assert_eq!(file.path().as_deref(), Some(&*expected));
    assert!(expected.exists());
    std::env::set_current_dir("/")?;
    file.rename(folder.path().join("other")).await?;
    file.remove().await?;
    assert_eq!(fs::read_dir(folder.path())?.count(), 0);
    file.close().await
}

#[run_test(run_in_child)]
async fn a_file_that_is_created_has_the_mode_less_the_mask_and_is_not_inherited() {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_retain(0o027));
    let folder = folder();
    let mode = |path: &Path| fs::metadata(path).map(|it| it.permissions().mode() & 0o777);
    let plain = folder.path().join("plain");
    DmaFile::create(&plain).await?.close().await?;
    assert_eq!(mode(&plain)?, 0o640);
    let secret = folder.path().join("secret");
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    let file = options.buffered_open(&secret).await?;
    assert_eq!(mode(&secret)?, 0o600);
    let flags = nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_GETFD);
    assert_eq!(flags.unwrap() & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    file.close().await
}

#[run_test(in_place)]
async fn truncating_empties_and_appending_goes_to_the_end(path: PathBuf) {
    filled(&path, 100);
    let mut append = OpenOptions::new();
    append.append(true);
    let file = append.buffered_open(&path).await?;
    assert_eq!(file.write_at(b"end".to_vec(), 0).await?, 3);
    file.close().await?;
    assert_eq!(fs::read(&path)?, [&pattern(0, 100)[..], b"end"].concat());
    let mut truncate = OpenOptions::new();
    truncate.write(true).truncate(true);
    truncate.buffered_open(&path).await?.close().await?;
    assert_eq!(fs::metadata(&path)?.len(), 0);
}

#[run_test(in_each_place)]
async fn flags_survive_the_switch_to_direct_io(path: PathBuf) {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .create(true)
        .custom_flags(libc::O_NOATIME);
    let file = options.dma_open(&path).await?;
    let flags = nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_GETFL).unwrap();
    assert_ne!(flags & libc::O_APPEND, 0);
    assert_ne!(flags & libc::O_NOATIME, 0);
    file.close().await?;
}

#[run_test]
async fn a_file_without_a_name_is_a_file_of_its_own() {
    for folder in with_unnamed_files(folders()) {
        let mut options = OpenOptions::new();
        options.read(true).write(true).tmpfile(true);
        let file = options.dma_open(folder.path()).await?;
        let mut buffer = file.alloc_dma_buffer(4096);
        buffer.as_bytes_mut().fill(1);
        assert_eq!(file.write_at(buffer, 0).await?, 4096);
        assert_eq!(file.file_size().await?, 4096);
        assert_ne!(file.inode(), fs::metadata(folder.path())?.ino());
        assert!(file.path().is_none());
        let (op, _, _) = told(file.remove().await);
        assert_eq!(op, "remove");
        let (op, _, _) = told(file.rename("elsewhere").await);
        assert_eq!(op, "rename");
        assert!(folder.path().exists());
        assert_eq!(fs::read_dir(folder.path())?.count(), 0);
        file.close().await?;
    }
}

#[run_test]
async fn a_linkable_file_gets_a_name_later() {
    let Some(folder) = with_unnamed_files(vec![folder()]).pop() else {
        return Ok(());
    };
    let mut options = OpenOptions::new();
    options.write(true).tmpfile(true).tmpfile_linkable(true);
    let file = options.buffered_open(folder.path()).await?;
    file.write_at(b"content".to_vec(), 0).await?;
    let path = folder.path().join("name");
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    nix::unistd::linkat(
        nix::fcntl::AT_FDCWD,
        own.as_str(),
        nix::fcntl::AT_FDCWD,
        &path,
        nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW,
    )
    .expect("procfs is mounted");
    file.close().await?;
    assert_eq!(fs::read(&path)?, b"content");
}

#[run_test(in_folder)]
async fn the_same_file_by_whichever_path(folder: TempDir) {
    let [a, b, hard, soft] = ["a", "b", "hard", "soft"].map(|name| folder.path().join(name));
    filled(&a, 1);
    filled(&b, 1);
    fs::hard_link(&a, &hard)?;
    std::os::unix::fs::symlink(&a, &soft)?;
    let file = DmaFile::open(&a).await?;
    for (path, is_same) in [(&a, true), (&b, false), (&hard, true), (&soft, true)] {
        let other = DmaFile::open(path).await?;
        assert_eq!(file.is_same(&other), is_same, "{path:?}");
        assert_eq!(file.inode() == other.inode(), is_same);
        other.close().await?;
        let buffered = BufferedFile::open(&a).await?;
        let other = BufferedFile::open(path).await?;
        assert_eq!(buffered.is_same(&other), is_same);
    }
    let metadata = fs::metadata(&a)?;
    assert_eq!(file.inode(), metadata.ino());
    assert_eq!(
        libc::makedev(file.dev_major(), file.dev_minor()),
        metadata.dev()
    );
    file.close().await
}

#[run_test(in_folder)]
async fn renaming_replaces_and_removing_leaves_the_handle(folder: TempDir) {
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    filled(&old, 10);
    filled(&new, 20);
    let file = DmaFile::open(&old).await?;
    file.rename(&new).await?;
    assert_eq!(file.path().as_deref(), Some(&*new));
    assert_eq!(fs::metadata(&new)?.len(), 10);
    assert!(!old.exists());
    file.remove().await?;
    assert!(!new.exists());
    let (op, path, errno) = told(file.remove().await);
    assert_eq!(
        (op, path, errno),
        ("Removing", Some(new.clone()), Some(libc::ENOENT))
    );
    assert_eq!(*file.read_at(3, 4).await?, pattern(3, 4));
    assert_eq!(file.stat().await?.file_size, 10);
    assert_eq!(
        plain(file.rename(&old).await).raw_os_error(),
        Some(libc::ENOENT)
    );
    file.close().await?;

    assert_eq!(plain(remove(&new).await).raw_os_error(), Some(libc::ENOENT));
    let error = plain(remove(folder.path()).await);
    assert_eq!(error.raw_os_error(), Some(libc::EISDIR));
}

#[run_test]
async fn sizes_are_those_of_the_open_file() {
    for (_folder, path) in places(folders()) {
        filled(&path, 5000);
        let file = BufferedFile::open(&path).await?;
        // Another file takes the path.
        fs::remove_file(&path)?;
        filled(&path, 7);
        let found = file.stat().await?;
        assert_eq!((found.file_size, file.file_size().await?), (5000, 5000));
        assert!(found.allocated_file_size >= 4096);
        let block_bytes = fs::metadata(&path)?.blksize();
        assert_eq!(u64::from(found.fs_cluster_size), block_bytes);
        assert_eq!(stat(&path).await?.file_size, 7);
        file.close().await?;
    }
    assert_eq!(
        plain(stat("/nowhere").await).raw_os_error(),
        Some(libc::ENOENT)
    );
}

/// Opens a FIFO that has no other end, in a process of its own for each driver. Whatever is given up leaves nothing
/// behind once there is one.
fn with_a_fifo(test: impl Fn(PathBuf, PathBuf)) {
    for driver in ["epoll", "auto"] {
        in_child_with(&[("GLOMMIO_DRIVER", driver)], || {
            // The child has one of them.
            if std::env::var("GLOMMIO_DRIVER").is_ok_and(|it| it != driver) {
                return;
            }
            let folder = folder();
            let [path, fifo] = ["file", "fifo"].map(|name| folder.path().join(name));
            fs::write(&path, "text").expect("the disk has room");
            mkfifo(&fifo, Mode::S_IRWXU).expect("the disk has them");
            let before = (descriptors(), threads());
            test(path, fifo.clone());
            let mut options = fs::OpenOptions::new();
            let options = options.write(true).custom_flags(libc::O_NONBLOCK);
            // With io_uring nothing waits for it any more.
            let other_end = options.open(&fifo).ok();
            wait_until(|| threads() <= before.1);
            drop(other_end);
            assert_eq!(descriptors(), before.0);
        });
    }
}

#[test]
fn an_executor_ends_while_a_fifo_without_another_end_is_opened() {
    with_a_fifo(|_, fifo| {
        let executor = LocalExecutor::default();
        executor.run(async {
            spawn_local(BufferedFile::open(fifo)).detach();
            sleep(Duration::from_millis(5)).await;
        });
        drop(executor);
    });
}

/// The path may be on a server that does not answer.
#[test]
fn an_open_is_given_up_without_a_look_at_its_path_on_the_executors_thread() {
    with_a_fifo(|path, fifo| {
        let executors = thread::spawn(move || {
            let executor = LocalExecutor::default();
            executor.run(async {
                // Threads for files are there before this one may not look at any.
                let file = BufferedFile::open(path).await.expect("it is there");
                file.close().await.expect("it is open");
                deny_all(&[libc::SYS_statx, libc::SYS_newfstatat], libc::EIO);
                spawn_local(BufferedFile::open(fifo)).detach();
                sleep(Duration::from_millis(5)).await;
            });
            drop(executor);
        });
        executors.join().expect("it ends");
    });
}

#[test]
fn fifos_whose_opening_is_given_up_do_not_keep_other_files_waiting() {
    with_a_fifo(|path, fifo| {
        LocalExecutor::default().run(async {
            for _ in 0..3 {
                // More than there are threads.
                let fifos = (0..20).map(|_| spawn_local(BufferedFile::open(fifo.clone())));
                let fifos: Vec<_> = fifos.collect();
                sleep(Duration::from_millis(5)).await;
                let file = spawn_local(BufferedFile::open(path.clone()));
                sleep(Duration::from_millis(1)).await;
                drop(fifos);
                let file = file.await.expect("it is there");
                file.close().await.expect("it is open");
            }
        });
    });
}
