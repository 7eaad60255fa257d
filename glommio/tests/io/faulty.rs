//! Devices that fail: whatever it is, it is told, and nothing hangs. The memory of a process is a
//! file that gives `EIO` where nothing is mapped, also for root; devices that lose their
//! end take a loop device.

use std::os::unix::fs::FileExt;
use std::process::Command;

use futures_lite::stream;
use glommio::io::{MergedBufferLimit, ReadAmplificationLimit};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::*;

/// Nothing is mapped at its beginning.
const MEMORY: &str = "/proc/self/mem";

const EIO: Option<i32> = Some(libc::EIO);

#[run_test]
async fn a_read_that_fails_says_so() {
    let expected = ("Reading", Some(PathBuf::from(MEMORY)), EIO);
    let file = BufferedFile::open(MEMORY).await?;
    assert_eq!(told(file.read_at(0, 4096).await), expected);
    let mut reader = StreamReaderBuilder::new(file).build();
    for _ in 0..3 {
        let error = reader.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), EIO);
    }
    reader.close().await?;

    let file = Rc::new(DmaFile::open(MEMORY).await?);
    assert_eq!(told(file.read_at(10, 100).await), expected);
    assert_eq!(told(file.read_at_aligned(0, 4096).await), expected);
    let requests = stream::iter([(0, 10), (4096, 10)]);
    let limit = MergedBufferLimit::NoMerging;
    let mut reads = file.read_many(requests, limit, ReadAmplificationLimit::NoAmplification);
    for _ in 0..2 {
        let read = reads.next().await.expect("one for each request");
        assert_eq!(told(read.map(drop)), expected);
    }
    assert!(reads.next().await.is_none());
    drop(reads);
    let mut reader = DmaStreamReaderBuilder::from_rc(file.clone()).build();
    for _ in 0..3 {
        assert_eq!(told(reader.get_buffer_aligned(10).await), expected);
    }
    drop(reader);
    file.close_rc().await?;

    let immutable = ImmutableFileBuilder::new(MEMORY).build_existing().await?;
    assert_eq!(told(immutable.read_at(0, 10).await), expected);
    immutable.close().await
}

#[run_test]
async fn a_write_that_fails_says_so() {
    let mut options = OpenOptions::new();
    options.write(true);
    // gVisor says EFAULT.
    let plain = fs::OpenOptions::new().write(true).open(MEMORY)?;
    let error = plain.write_at(&[1; 10], 0).expect_err("nothing is there");
    let expected = ("Writing", Some(PathBuf::from(MEMORY)), error.raw_os_error());
    let file = options.buffered_open(MEMORY).await?;
    assert_eq!(told(file.write_at(vec![1; 10], 0).await), expected);

    let file = options.dma_open(MEMORY).await?;
    let buffer = file.alloc_dma_buffer(4096);
    assert_eq!(told(file.write_at(buffer, 0).await), expected);
}

/// Of a device that takes all and cannot be synced.
#[run_test]
async fn a_sync_that_fails_says_so_and_the_stream_keeps_to_it() {
    const NULL: &str = "/dev/null";
    let expected = ("Syncing", Some(PathBuf::from(NULL)), Some(libc::EINVAL));
    let mut options = OpenOptions::new();
    options.write(true);
    let file = options.dma_open(NULL).await?;
    assert_eq!(told(file.fdatasync().await), expected);
    let mut writer = DmaStreamWriterBuilder::new(file)
        .with_buffer_size(4096)
        .build();
    writer.write_all(&[1; 8192]).await?;
    assert_eq!(writer.flush_aligned().await?, 8192);
    assert_eq!(told(writer.sync_aligned().await), expected);
    assert_eq!(told(writer.sync().await), expected);
    assert!(writer.write(&[1]).await.is_err());
    assert!(writer.close().await.is_err());

    let file = options.buffered_open(NULL).await?;
    assert_eq!(told(file.fdatasync().await), expected);
    let mut writer = StreamWriterBuilder::new(file).build();
    writer.write_all(&[1; 10]).await?;
    let error = writer.close().await.expect_err("it brings the data there");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

/// A block device over a file, taken down when it is dropped.
struct Loop {
    device: PathBuf,
    backing: PathBuf,
}

impl Loop {
    fn new(folder: &Path, bytes: u64, block_bytes: u64) -> Option<Self> {
        let backing = folder.join("backing");
        let file = fs::File::create(&backing).expect("the disk has room");
        file.set_len(bytes).expect("the disk has room");
        let output = Command::new("losetup")
            .args([
                "--find",
                "--show",
                "--sector-size",
                &block_bytes.to_string(),
            ])
            .arg(&backing)
            .output();
        let device = match output {
            Ok(output) if output.status.success() => {
                String::from_utf8(output.stdout).expect("a path of letters")
            }
            other => {
                left_out(format_args!("there is no loop device: {other:?}"));
                return None;
            }
        };
        Some(Loop {
            device: PathBuf::from(device.trim()),
            backing,
        })
    }

    /// Has half of `bytes` from now on. Where it gives zeros for the rest, as on Linux 6.1, that is said.
    fn loses_half_of(&self, bytes: u64) -> bool {
        self.has_bytes(bytes / 2);
        let device = fs::File::open(&self.device).expect("it is there");
        let is_lost = device.read_at(&mut [0], bytes / 2).is_err();
        if !is_lost {
            skipped("loop devices of this kernel give zeros for what they have lost");
        }
        is_lost
    }

    /// What is behind `bytes` is gone, or is there again and zero.
    fn has_bytes(&self, bytes: u64) {
        let file = fs::File::options().write(true).open(&self.backing);
        file.expect("it is there")
            .set_len(bytes)
            .expect("the disk has room");
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup")
            .arg("--detach")
            .arg(&self.device)
            .status();
        if !detached.as_ref().is_ok_and(|status| status.success()) {
            eprintln!("{:?} is left: {detached:?}", self.device);
        }
    }
}

#[test]
fn a_device_that_loses_its_end_is_read_up_to_there() {
    const BYTES: u64 = 1 << 20;
    let folder = folder();
    let Some(device) = Loop::new(folder.path(), BYTES, 512) else {
        return;
    };
    run(async {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = Rc::new(options.dma_open(&device.device).await?);
        let mut buffer = file.alloc_dma_buffer(BYTES as usize);
        let content = pattern(0, BYTES as usize);
        buffer.as_bytes_mut().copy_from_slice(&content);
        assert_eq!(file.write_at(buffer, 0).await?, BYTES as usize);
        file.fdatasync().await?;
        if !device.loses_half_of(BYTES) {
            return Ok(());
        }
        let half = BYTES as usize / 2;

        assert!(*file.read_at(0, half).await? == content[..half]);
        assert_eq!(told(file.read_at(BYTES / 2, 4096).await).2, EIO);
        // What comes before it is delivered first.
        let mut reader = DmaStreamReaderBuilder::from_rc(file.clone())
            .with_buffer_size(65_536)
            .build();
        let mut read = Vec::new();
        let error = loop {
            match reader.get_buffer_aligned(u64::MAX).await {
                Ok(bytes) => read.extend_from_slice(&bytes),
                Err(error) => break error,
            }
        };
        assert_eq!(error.raw_os_error(), EIO);
        assert!(read == content[..half]);
        drop(reader);
        file.close_rc().await?;

        // The kernel gives what is there as a short read, which is not the end of the file.
        let file = BufferedFile::open(&device.device).await?;
        assert_eq!(told(file.read_at(0, BYTES as usize).await).2, EIO);
        assert!(*file.read_at(0, half).await? == content[..half]);
        file.close().await
    });
}

/// Also if others that took part in it have not yet got its error.
#[test]
fn a_read_that_failed_is_tried_again_by_the_next() {
    const BYTES: u64 = 1 << 20;
    let folder = folder();
    let Some(device) = Loop::new(folder.path(), BYTES, 512) else {
        return;
    };
    run(async {
        let builder = ImmutableFileBuilder::new(&device.device);
        let file = builder.build_existing().await?;
        if !device.loses_half_of(BYTES) {
            return Ok(());
        }
        let [mut first, mut second] = [(); 2].map(|()| Box::pin(file.read_at(BYTES / 2, 4096)));
        for read in [&mut first, &mut second] {
            assert!(poll_once(read).await.is_none());
        }
        assert_eq!(told(first.await).2, EIO);
        device.has_bytes(BYTES);
        assert_eq!(*file.read_at(BYTES / 2, 4096).await?, [0; 4096]);
        assert_eq!(told(second.await).2, EIO);
        file.close().await
    });
}

/// Of a descriptor that was closed behind its file's back.
#[run_test(run_in_child)]
async fn a_close_that_fails_says_so() {
    let folder = folder();
    let path = folder.path().join("file");
    filled(&path, 10);
    let expected = ("Closing", Some(path.clone()), Some(libc::EBADF));
    let taken = |file: &dyn AsRawFd| {
        nix::unistd::close(file.as_raw_fd()).expect("it was open");
    };
    let file = BufferedFile::open(&path).await?;
    taken(&file);
    assert_eq!(told(file.close().await), expected);

    let file = DmaFile::open(&path).await?;
    taken(&file);
    assert_eq!(told(file.close().await), expected);

    let file = BufferedFile::open(&path).await?;
    taken(&file);
    let reader = StreamReaderBuilder::new(file).build();
    assert_eq!(told(reader.close().await), expected);

    let directory = Directory::open(folder.path()).await?;
    taken(&directory);
    assert_eq!(told(directory.close().await).2, expected.2);
}

/// The name of a device is on a tmpfs, its data is not: it has direct I/O, in blocks of its own.
#[test]
fn a_device_is_read_and_written_in_its_blocks() {
    for block_bytes in [512, 4096] {
        let folder = folder();
        let Some(device) = Loop::new(folder.path(), 1 << 20, block_bytes) else {
            return;
        };
        run(async {
            let mut options = OpenOptions::new();
            options.read(true).write(true);
            let file = options.dma_open(&device.device).await?;
            let flags = fcntl(&file, FcntlArg::F_GETFL).expect("it is open");
            assert!(OFlag::from_bits_retain(flags).contains(OFlag::O_DIRECT));
            assert_eq!(file.alignment(), block_bytes);
            let mut buffer = file.alloc_dma_buffer(8192);
            buffer.as_bytes_mut().copy_from_slice(&pattern(4096, 8192));
            assert_eq!(file.write_at(buffer, 4096).await?, 8192);
            file.fdatasync().await?;
            assert!(*file.read_at(5000, 100).await? == pattern(5000, 100));
            assert!(fs::read(&device.backing)?[4096..12_288] == pattern(4096, 8192));
            assert_eq!(file.read_at(1 << 20, 100).await?.len(), 0);
            let mut reader = DmaStreamReaderBuilder::new(file).build();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await?;
            assert_eq!(read.len(), 1 << 20);
            reader.close().await
        });
    }
}
