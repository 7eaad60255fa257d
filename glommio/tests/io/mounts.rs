//! Filesystems that are mounted for a test, each in a process with mounts of its own: full ones,
//! one that cannot be written, one with direct I/O on a device with blocks of its own, and
//! overlays. Where the machine does not let the test mount, a line of the output says so, and the
//! test is left out.

use std::ffi::OsStr;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use futures_lite::stream;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CloneFlags, unshare};

use super::*;
use crate::common::log::hearing;

/// Runs `test` in a process whose mounts end with it. It gets a folder.
fn with_mounts(test: impl FnOnce(&Path)) {
    in_child(|| {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
            return left_out(format_args!(
                "a process may not have its own mounts: {error}"
            ));
        }
        if !works("mount", ["--make-rprivate", "/"]) {
            return;
        }
        let folder = folder();
        test(folder.path());
        // A folder cannot be removed as long as something is mounted there.
        for entry in fs::read_dir(folder.path()).expect("it is there").flatten() {
            if entry.path().is_dir() {
                let mut umount = Command::new("umount");
                let _ = umount.arg("--lazy").arg(entry.path()).output();
            }
        }
    });
}

fn works(command: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> bool {
    let output = Command::new(command).args(arguments).output();
    let works = output.as_ref().is_ok_and(|output| output.status.success());
    if !works {
        let reason = output.map_or_else(
            |error| error.to_string(),
            |output| {
                String::from_utf8_lossy(&output.stderr)
                    .trim()
                    .replace('\n', "; ")
            },
        );
        left_out(format_args!("{command} does not work: {reason}"));
    }
    works
}

/// Mounts in a new folder below `folder`.
fn mounted(folder: &Path, name: &str, kind: &str, source: &str, options: &str) -> Option<PathBuf> {
    let at = folder.join(name);
    fs::create_dir(&at).expect("it is new");
    let [place, kind, source, options] = [
        at.as_os_str(),
        kind.as_ref(),
        source.as_ref(),
        options.as_ref(),
    ];
    let t = OsStr::new("-t");
    let o = OsStr::new("-o");
    works("mount", [t, kind, o, options, source, place]).then_some(at)
}

fn tmpfs(folder: &Path, name: &str, bytes: usize) -> Option<PathBuf> {
    mounted(folder, name, "tmpfs", "none", &format!("size={bytes}"))
}

/// An ext4 in a file.
fn ext4(folder: &Path, name: &str, bytes: u64) -> Option<PathBuf> {
    let image = folder.join(format!("{name}.image"));
    let file = fs::File::create(&image).expect("the disk has room");
    file.set_len(bytes).expect("the disk has room");
    let image = image.to_str().expect("a path of letters");
    if !works("mkfs.ext4", ["-q", image]) {
        return None;
    }
    mounted(folder, name, "ext4", image, "loop")
}

fn overlay(folder: &Path, name: &str, lower: &Path, upper: &Path) -> Option<PathBuf> {
    let [over, work] = ["over", "work"].map(|name| upper.join(name));
    fs::create_dir(&over).expect("it is new");
    fs::create_dir(&work).expect("it is new");
    let [lower, over, work] =
        [lower, &over, &work].map(|path| path.to_str().expect("a path of letters").to_owned());
    let options = format!("lowerdir={lower},upperdir={over},workdir={work}");
    mounted(folder, name, "overlay", "overlay", &options)
}

fn is_direct(file: &DmaFile) -> bool {
    let flags = fcntl(file, FcntlArg::F_GETFL).expect("it is open");
    OFlag::from_bits_retain(flags).contains(OFlag::O_DIRECT)
}

const BYTES: usize = 300_001;

/// All that files can do, whatever they are on.
async fn works_on(folder: &Path) -> Result {
    let path = folder.join("file");
    let mut writer = DmaStreamWriterBuilder::new(DmaFile::create(&path).await?)
        .with_buffer_size(65_536)
        .build();
    writer.write_all(&pattern(0, BYTES)).await?;
    writer.close().await?;
    assert!(fs::read(&path)? == pattern(0, BYTES));
    let file = DmaFile::open(&path).await?;
    assert_eq!(file.file_size().await?, BYTES as u64);
    assert!(*file.read_at(1000, 5000).await? == pattern(1000, 5000));
    let mut reader = DmaStreamReaderBuilder::new(file).build();
    let mut read = Vec::new();
    reader.read_to_end(&mut read).await?;
    assert!(read == pattern(0, BYTES));
    reader.close().await?;

    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let file = options.dma_open(&path).await?;
    let mut buffer = file.alloc_dma_buffer(file.alignment() as usize);
    buffer.as_bytes_mut().fill(1);
    let written = buffer.len();
    assert_eq!(file.write_at(buffer, 0).await?, written);
    file.fdatasync().await?;
    assert!(
        file.read_at(0, written)
            .await?
            .iter()
            .all(|byte| *byte == 1)
    );
    file.truncate(10).await?;
    assert_eq!(file.read_at(0, 100).await?.len(), 10);
    file.rename(folder.join("other")).await?;
    file.remove().await?;
    file.close().await?;

    let sealed = folder.join("sealed");
    let mut sink = ImmutableFileBuilder::new(&sealed).build_sink().await?;
    sink.write_all(&pattern(0, BYTES)).await?;
    let sealed = sink.seal().await?;
    assert!(*sealed.read_at(77, 10_000).await? == pattern(77, 10_000));
    sealed.remove().await?;
    sealed.close().await?;

    let directory = Directory::open(folder).await?;
    directory.create_file("named").await?.close().await?;
    directory.sync().await?;
    directory.close().await
}

/// A filesystem in memory without direct I/O.
fn ramfs(folder: &Path, name: &str) -> Option<PathBuf> {
    mounted(folder, name, "ramfs", "none", "size=16777216")
}

/// Whether the kernel has direct I/O for the file at `path`: asked when it is opened, an overlay
/// asks the filesystem below.
fn has_direct_io(path: &Path) -> bool {
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path);
    match opened {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
            false
        }
    }
}

/// Whether the kernel has reads for the file at `path` that only look into the page cache.
fn has_cached_reads(path: &Path) -> bool {
    let file = fs::File::open(path).expect("it is there");
    let mut buffer = [0; 16];
    let slice = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the kernel writes to `buffer`, which lives until it returns, and no more than there
    // is.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &raw const slice, 1, 0, libc::RWF_NOWAIT) };
    read > 0
}

/// The file `below`, which has [`BYTES`] bytes of the pattern, is read and written the way that the
/// kernel has for it. What could be direct I/O and is not is told in the log, once.
fn takes_the_way_that_there_is(at: &Path, may_be_direct: bool) {
    let path = at.join("below");
    let is_expected = may_be_direct && has_direct_io(&path);
    let ((), heard) = hearing(|| {
        run(async {
            let file = DmaFile::open(&path).await?;
            assert_eq!(is_direct(&file), is_expected, "{}", path.display());
            assert!(*file.read_at(1001, 5000).await? == pattern(1001, 5000));
            assert!(*file.read_at_aligned(0, 4096).await? == pattern(0, 4096));
            file.close().await
        });
    });
    let said = heard
        .iter()
        .filter(|it| it.message.contains("no direct I/O"));
    let expected = usize::from(may_be_direct && !is_expected);
    assert_eq!(said.count(), expected, "{heard:?}");

    // From the page cache in the first poll, or through the ring.
    run(async {
        fs::read(&path)?;
        let file = BufferedFile::open(&path).await?;
        let mut at_once = 0;
        for turn in 0..20 {
            // The slice of a task may be over at any moment; not in all of these.
            glommio::executor().yield_task_queue_now().await;
            let position = turn * 10_000;
            let mut read = Box::pin(file.read_at(position as u64, 5000));
            let read = match poll_once(&mut read).await {
                Some(read) => {
                    at_once += 1;
                    read?
                }
                None => read.await?,
            };
            assert!(*read == pattern(position, 5000));
        }
        assert_eq!(at_once > 0, has_cached_reads(&path), "{}", path.display());
        file.close().await
    });
    run(works_on(at));
}

#[run_test(with_mounts)]
fn a_tmpfs_goes_through_the_page_cache_and_says_nothing(folder: &Path) {
    let memory = [tmpfs(folder, "tmpfs", 16 << 20), ramfs(folder, "ramfs")];
    for at in memory.into_iter().flatten() {
        filled(&at.join("below"), BYTES);
        takes_the_way_that_there_is(&at, false);
    }
}

#[run_test(with_mounts)]
fn a_filesystem_in_an_image_has_direct_io(folder: &Path) {
    let Some(at) = ext4(folder, "ext4", 64 << 20) else {
        return;
    };
    filled(&at.join("below"), BYTES);
    assert!(has_direct_io(&at.join("below")));
    takes_the_way_that_there_is(&at, true);
}

/// Of a filesystem with direct I/O and of one without. An overlay takes the flag for either.
#[run_test(with_mounts)]
fn an_overlay_does_as_the_filesystem_below(folder: &Path) {
    let below = [
        tmpfs(folder, "tmpfs", 16 << 20),
        ramfs(folder, "ramfs"),
        ext4(folder, "ext4", 64 << 20),
    ];
    for (number, below) in below.into_iter().flatten().enumerate() {
        let lower = below.join("lower");
        fs::create_dir(&lower).expect("it is new");
        filled(&lower.join("below"), BYTES);
        let name = format!("overlay{number}");
        let Some(at) = overlay(folder, &name, &lower, &below) else {
            continue;
        };
        if below.ends_with("ramfs") {
            assert!(!has_direct_io(&at.join("below")), "the test sees both");
        }
        takes_the_way_that_there_is(&at, true);
    }
}

/// Of a file whose size a server may have to be asked for.
#[run_test(with_mounts)]
fn many_reads_of_a_file_on_an_overlay_take_no_more_memory_than_it_has_bytes(folder: &Path) {
    let Some(below) = tmpfs(folder, "below", 16 << 20) else {
        return;
    };
    let lower = below.join("lower");
    fs::create_dir(&lower).expect("it is new");
    filled(&lower.join("file"), BYTES);
    let Some(at) = overlay(folder, "overlay", &lower, &below) else {
        return;
    };
    run(async {
        let file = Rc::new(DmaFile::open(at.join("file")).await?);
        let (limit, amplification) = Default::default();
        let requests = stream::iter([(0, usize::MAX)]);
        let mut reads = file.read_many(requests, limit, amplification);
        let (_, read) = reads.next().await.expect("one for the request")?;
        assert!(*read == pattern(0, BYTES));
        drop((read, reads));
        file.close_rc().await.map(drop)
    });
}

#[run_test(with_mounts)]
fn what_cannot_be_written_is_read_and_says_so_else(folder: &Path) {
    let Some(at) = tmpfs(folder, "memory", 1 << 20) else {
        return;
    };
    let path = at.join("file");
    filled(&path, 10_000);
    if !works(
        "mount",
        [OsStr::new("-o"), OsStr::new("remount,ro"), at.as_os_str()],
    ) {
        return;
    }
    run(async {
        let erofs = Some(libc::EROFS);
        let file = DmaFile::open(&path).await?;
        assert!(*file.read_at(0, 10_000).await? == pattern(0, 10_000));
        assert_eq!(
            plain(glommio::io::remove(&path).await).raw_os_error(),
            erofs
        );
        assert_eq!(told(file.remove().await).2, erofs);
        file.close().await?;
        assert_eq!(told(DmaFile::create(&path).await).2, erofs);
        assert_eq!(told(BufferedFile::create(at.join("new")).await).2, erofs);
        assert_eq!(told(Directory::create(at.join("folder")).await).2, erofs);
        let renamed = glommio::io::rename(&path, at.join("other")).await;
        assert_eq!(plain(renamed).raw_os_error(), erofs);
        Ok(())
    });
}

/// Fills the filesystem by one stream of each kind: what was told to be safe is.
async fn fill(folder: &Path, room: usize) -> Result {
    let path = folder.join("file");
    for buffer_bytes in [4096, 65_536] {
        let file = DmaFile::create(&path).await?;
        let mut writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(buffer_bytes)
            .build();
        let wrote = writer.write_all(&pattern(0, 2 * room)).await;
        let flushed = writer.flush().await;
        let error = flushed.and(wrote).expect_err("there is not as much room");
        let is_told = [io::ErrorKind::StorageFull, io::ErrorKind::WriteZero];
        assert!(is_told.contains(&error.kind()), "{error:?}");
        let safe = writer.current_flushed_pos() as usize;
        assert!(safe < 2 * room);
        assert!(writer.write(&[1]).await.is_err(), "it stays so");
        assert!(writer.sync().await.is_err());
        assert!(writer.close().await.is_err(), "it tells what was lost");
        let content = fs::read(&path)?;
        assert!(content[..safe] == pattern(0, safe), "{buffer_bytes}");
        fs::remove_file(&path)?;

        let file = BufferedFile::create(&path).await?;
        let mut writer = StreamWriterBuilder::new(file)
            .with_buffer_size(buffer_bytes)
            .build();
        let wrote = writer.write_all(&pattern(0, 2 * room)).await;
        let error = wrote.expect_err("there is not as much room");
        assert!(is_told.contains(&error.kind()), "{error:?}");
        assert!(writer.close().await.is_err(), "it tells what was lost");
        let content = fs::read(&path)?;
        assert!(content == pattern(0, content.len()), "{buffer_bytes}");
        fs::remove_file(&path)?;
    }
    // There is room again.
    works_on(folder).await
}

#[run_test(with_mounts)]
fn a_filesystem_that_fills_up_in_the_middle_of_a_stream(folder: &Path) {
    if let Some(at) = tmpfs(folder, "memory", 2 << 20) {
        run(fill(&at, 2 << 20));
    }
    if let Some(at) = ext4(folder, "ext4", 8 << 20) {
        run(fill(&at, 8 << 20));
    }
}

/// The number of a mount is used again, for another filesystem.
#[run_test(with_mounts)]
fn what_is_mounted_in_place_of_another_is_looked_at_anew(folder: &Path) {
    for round in 0..3 {
        let Some(at) = tmpfs(folder, &format!("memory{round}"), 4 << 20) else {
            return;
        };
        run(async {
            let file = DmaFile::create(at.join("file")).await?;
            assert!(!is_direct(&file));
            file.close().await
        });
        assert!(works("umount", [at.as_os_str()]));
        let Some(at) = ext4(folder, &format!("ext4{round}"), 8 << 20) else {
            return;
        };
        run(async {
            let file = DmaFile::create(at.join("file")).await?;
            assert!(is_direct(&file));
            assert!(file.as_raw_fd() >= 0);
            file.close().await
        });
        assert!(works("umount", [at.as_os_str()]));
    }
}
