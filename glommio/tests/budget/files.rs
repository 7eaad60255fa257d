use std::io::{SeekFrom, pipe};
use std::os::unix::fs::PermissionsExt;

use futures_lite::{AsyncSeekExt, stream};
use glommio::io::{self, *};
use tempfile::TempDir;

use super::*;

/// A folder with a file, which has some bytes.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("the disk has room");
    let path = folder.path().join("file");
    fs::write(&path, [7; 8192]).expect("the disk has room");
    (folder, path)
}

/// A path that no file can have, as operations find out before they begin.
fn impossible() -> &'static Path {
    Path::new("a\0b")
}

async fn direct(path: &Path) -> DmaFile {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.dma_open(path).await.expect("it is there")
}

async fn buffered(path: &Path) -> BufferedFile {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.buffered_open(path).await.expect("it is there")
}

#[run_test]
async fn opening() {
    let (folder, _path) = folder();
    let none = impossible();
    counts!(
        "DmaFile::open",
        drop(DmaFile::open(none).await.unwrap_err())
    );
    counts!(
        "DmaFile::create",
        drop(DmaFile::create(none).await.unwrap_err())
    );
    counts!(
        "BufferedFile::open",
        BufferedFile::open(none).await.unwrap_err()
    );
    counts!(
        "BufferedFile::create",
        BufferedFile::create(none).await.unwrap_err()
    );
    let options = OpenOptions::new();
    counts!(
        "OpenOptions::dma_open",
        options
            .dma_open("file")
            .await
            .expect_err("neither to read nor to write")
    );
    counts!(
        "OpenOptions::buffered_open",
        options
            .buffered_open("file")
            .await
            .expect_err("neither to read nor to write")
    );
    counts!("Directory::open", Directory::open(none).await.unwrap_err());
    counts!(
        "Directory::create",
        Directory::create(none).await.unwrap_err()
    );
    let directory = Directory::open(folder.path()).await.unwrap();
    counts!(
        "Directory::open_file",
        directory.open_file("no/name").await.unwrap_err()
    );
    counts!(
        "Directory::create_file",
        directory.create_file("no/name").await.unwrap_err()
    );
    is_refused("Directory::sync", directory.sync()).await;
    is_refused("Directory::close", directory.close()).await;
    counts!("ImmutableFileBuilder::build_sink", {
        let built = ImmutableFileBuilder::new(none).build_sink().await;
        built.unwrap_err();
    });
    counts!("ImmutableFileBuilder::build_existing", {
        let built = ImmutableFileBuilder::new(none).build_existing().await;
        built.unwrap_err();
    });
}

#[run_test]
async fn direct_files() {
    let (_folder, path) = folder();
    let file = direct(&path).await;
    counts!(
        "DmaFile::read_at",
        assert!(file.read_at(0, 0).await.unwrap().is_empty())
    );
    counts!(
        "DmaFile::read_exact_at",
        assert!(file.read_exact_at(0, 0).await.unwrap().is_empty())
    );
    let nowhere = u64::MAX / 4096 * 4096;
    counts!(
        "DmaFile::read_at_aligned",
        file.read_at_aligned(nowhere, 4096).await.unwrap_err()
    );
    counts!("DmaFile::read_at_into", {
        let buffer = file.alloc_dma_buffer(4096);
        file.read_at_into(buffer, nowhere).await.0.unwrap_err();
    });
    counts!("DmaFile::write_at", {
        let buffer = file.alloc_dma_buffer(4096);
        file.write_at(buffer, nowhere).await.unwrap_err();
    });
    counts!("DmaFile::write_rc_at", {
        let buffer = Rc::new(file.alloc_dma_buffer(4096));
        file.write_rc_at(buffer, nowhere).await.unwrap_err();
    });
    counts!("DmaFile::write_all_at", {
        let buffer = file.alloc_dma_buffer(0);
        file.write_all_at(buffer, 0).await.unwrap();
    });
    counts!(
        "DmaFile::truncate",
        file.truncate(u64::MAX).await.unwrap_err()
    );
    counts!(
        "DmaFile::hint_extent_size",
        drop(file.hint_extent_size(1 << 20).await)
    );
    is_refused("DmaFile::stat", file.stat()).await;
    is_refused("DmaFile::file_size", file.file_size()).await;
    is_refused("DmaFile::fdatasync", file.fdatasync()).await;
    is_refused("DmaFile::fsync", file.fsync()).await;
    is_refused("DmaFile::pre_allocate", file.pre_allocate(1, true)).await;
    is_refused("DmaFile::deallocate", file.deallocate(0, 1)).await;
    is_refused("DmaFile::rename", file.rename(impossible())).await;
    is_refused("DmaFile::link", file.link(impossible())).await;
    is_refused("DmaFile::remove", file.remove()).await;
    let copy = file.copy_file_range_aligned(&file, 0, 1, 4096);
    is_refused("DmaFile::copy_file_range_aligned", copy).await;
    let lock = file.try_lock_exclusive().await.unwrap();
    counts!(
        "DmaFile::try_lock_shared",
        file.try_lock_shared().await.expect_err("it is locked")
    );
    counts!(
        "DmaFile::try_lock_exclusive",
        file.try_lock_exclusive().await.expect_err("it is locked")
    );
    let clone = lock.clone();
    counts!(
        "AdvisoryLockGuard::unlock",
        clone
            .clone()
            .unlock()
            .await
            .expect_err("there is another clone")
    );
    let taken = file.clone().try_take_last_clone_unlocking_guard(lock);
    is_refused("DmaFile::try_take_last_clone_unlocking_guard", taken).await;
    is_refused("DmaFile::close", file.clone().close()).await;
    let file = Rc::new(file);
    counts!("DmaFile::close_rc", {
        let closed = file.clone().close_rc().await.unwrap();
        assert_eq!(closed, CloseResult::Unreferenced);
    });
    let limits = (
        MergedBufferLimit::NoMerging,
        ReadAmplificationLimit::NoAmplification,
    );
    let mut reads = file.read_many(stream::empty::<(u64, usize)>(), limits.0, limits.1);
    counts!("ReadManyResult", assert!(reads.next().await.is_none()));
    let block = stream::repeat((0, 1)).take(1000);
    let mut reads = file.read_many(block, MergedBufferLimit::DeviceMaxSingleRequest, limits.1);
    reads.next().await.unwrap().unwrap();
    counts!(
        "DmaFile::read_many",
        assert_eq!(*reads.next().await.unwrap().unwrap().1, [7])
    );
}

#[run_test]
async fn files_in_the_page_cache() {
    let (_folder, path) = folder();
    let mut file = buffered(&path).await;
    counts!(
        "BufferedFile::read_at",
        assert!(file.read_at(0, 0).await.unwrap().is_empty())
    );
    counts!(
        "BufferedFile::read_exact_at",
        assert!(file.read_exact_at(0, 0).await.unwrap().is_empty())
    );
    counts!("BufferedFile::read_at_into", {
        let buffer = glommio::allocate_dma_buffer(1);
        file.read_at_into(buffer, u64::MAX).await.0.unwrap_err();
    });
    counts!(
        "BufferedFile::write_at",
        file.write_at(vec![7], u64::MAX).await.unwrap_err()
    );
    counts!(
        "BufferedFile::write_all_at",
        file.write_all_at(Vec::new(), 0).await.unwrap()
    );
    counts!(
        "BufferedFile::truncate",
        file.truncate(u64::MAX).await.unwrap_err()
    );
    is_refused("BufferedFile::stat", file.stat()).await;
    is_refused("BufferedFile::file_size", file.file_size()).await;
    is_refused("BufferedFile::fdatasync", file.fdatasync()).await;
    is_refused("BufferedFile::pre_allocate", file.pre_allocate(1, true)).await;
    is_refused("BufferedFile::deallocate", file.deallocate(0, 1)).await;
    is_refused("BufferedFile::rename", file.rename(impossible())).await;
    is_refused("BufferedFile::link", file.link(impossible())).await;
    is_refused("BufferedFile::remove", file.remove()).await;
    is_refused("BufferedFile::close", file.close()).await;
}

#[run_test]
async fn the_attributes_of_an_open_file_do_not_keep_the_thread() {
    let (_folder, path) = folder();
    let (file, direct) = (buffered(&path).await, direct(&path).await);
    // Where the filesystem is local they are there at once.
    let asking = async {
        loop {
            file.stat().await.unwrap();
            direct.file_size().await.unwrap();
        }
    };
    let limited = glommio::future::timeout(Duration::from_millis(2), asking).await;
    let _: glommio::GlommioError<()> = Result::<(), _>::unwrap_err(limited);
}

#[run_test]
async fn immutable_files() {
    let (folder, path) = folder();
    let new = folder.path().join("new");
    let mut sink = ImmutableFileBuilder::new(new).build_sink().await.unwrap();
    counts!(
        "ImmutableFilePreSealSink",
        assert_eq!(sink.write(&[]).await.unwrap(), 0)
    );
    is_refused("ImmutableFilePreSealSink::sync", sink.sync()).await;
    counts!(
        "ImmutableFilePreSealSink::flush_aligned",
        sink.flush_aligned().await.unwrap()
    );
    is_refused(
        "ImmutableFilePreSealSink::sync_aligned",
        sink.sync_aligned(),
    )
    .await;
    is_refused("ImmutableFilePreSealSink::seal", sink.seal()).await;
    let file = ImmutableFileBuilder::new(path)
        .build_existing()
        .await
        .unwrap();
    counts!(
        "ImmutableFile::read_at",
        assert!(file.read_at(0, 0).await.unwrap().is_empty())
    );
    let limits = (
        MergedBufferLimit::NoMerging,
        ReadAmplificationLimit::NoAmplification,
    );
    let mut reads = file.read_many(stream::empty::<(u64, usize)>(), limits.0, limits.1);
    counts!(
        "ImmutableFile::read_many",
        assert!(reads.next().await.is_none())
    );
    is_refused("ImmutableFile::rename", file.rename(impossible())).await;
    is_refused("ImmutableFile::remove", file.remove()).await;
    is_refused("ImmutableFile::close", file.close()).await;
}

#[run_test]
async fn streams() {
    let (_folder, path) = folder();
    let reader = || async { DmaStreamReaderBuilder::new(direct(&path).await).build() };
    let mut empty = [];
    let mut direct_reader = reader().await;
    counts!(
        "DmaStreamReader",
        assert_eq!(direct_reader.read(&mut empty).await.unwrap(), 0)
    );
    counts!(
        "DmaStreamReader::get_buffer_aligned",
        assert!(
            direct_reader
                .get_buffer_aligned(0)
                .await
                .unwrap()
                .is_empty()
        )
    );
    is_refused("DmaStreamReader::close", direct_reader.close()).await;
    let mut writer = DmaStreamWriterBuilder::new(direct(&path).await).build();
    counts!(
        "DmaStreamWriter, writing",
        assert_eq!(writer.write(&[]).await.unwrap(), 0)
    );
    counts!("DmaStreamWriter, flushing", writer.flush().await.unwrap());
    counts!(
        "DmaStreamWriter::flush_aligned",
        writer.flush_aligned().await.unwrap()
    );
    is_refused("DmaStreamWriter::sync_aligned", writer.sync_aligned()).await;
    is_refused("DmaStreamWriter::sync", writer.sync()).await;
    writer.close().await.unwrap();
    counts!("DmaStreamWriter, closed", writer.close().await.unwrap_err());
    let mut reader = StreamReaderBuilder::new(buffered(&path).await).build();
    counts!(
        "StreamReader, into nothing",
        assert_eq!(reader.read(&mut empty).await.unwrap(), 0)
    );
    counts!(
        "StreamReader, seeking",
        reader.seek(SeekFrom::Current(-1)).await.unwrap_err()
    );
    reader.read_exact(&mut [0; 8]).await.unwrap();
    counts!("StreamReader, from its buffer", {
        assert_eq!(reader.fill_buf().await.unwrap()[0], 7);
        reader.consume(1);
    });
    is_refused("StreamReader::close", reader.close()).await;
    let mut writer = StreamWriterBuilder::new(buffered(&path).await).build();
    counts!(
        "StreamWriter, writing",
        assert_eq!(writer.write(&[]).await.unwrap(), 0)
    );
    counts!("StreamWriter, flushing", writer.flush().await.unwrap());
    counts!(
        "StreamWriter, seeking",
        writer.seek(SeekFrom::Current(-1)).await.unwrap_err()
    );
    writer.close().await.unwrap();
    counts!("StreamWriter, closed", writer.close().await.unwrap());
    counts!(
        "StreamWriter, writing after that",
        writer.write(&[7]).await.unwrap_err()
    );
    let mut input = stdin();
    counts!(
        "Stdin",
        assert_eq!(input.read(&mut empty).await.unwrap(), 0)
    );
}

#[run_test]
async fn directories() {
    let (folder, path) = folder();
    for number in 0..500 {
        fs::write(path.with_extension(number.to_string()), "").unwrap();
    }
    let directory = Directory::open(folder.path()).await.unwrap();
    let mut entries = directory.read_dir().unwrap();
    entries.next().await.unwrap().unwrap();
    counts!("ReadDir", drop(entries.next().await.unwrap().unwrap()));
    while entries.next().await.is_some() {}
    counts!(
        "ReadDir, at its end",
        assert!(entries.next().await.is_none())
    );
}

#[run_test]
async fn files_by_their_paths() {
    let none = impossible();
    counts!("rename", drop(io::rename(none, none).await.unwrap_err()));
    counts!("remove", drop(io::remove(none).await.unwrap_err()));
    counts!("stat", drop(io::stat(none).await.unwrap_err()));
    counts!("hard_link", drop(hard_link(none, none).await.unwrap_err()));
    counts!("symlink", drop(symlink(none, none).await.unwrap_err()));
    is_refused("read_link", read_link(none)).await;
    let permissions = fs::Permissions::from_mode(0o600);
    is_refused("set_permissions", set_permissions(none, permissions)).await;
    counts!(
        "create_dir_all",
        drop(create_dir_all(none).await.unwrap_err())
    );
    counts!("remove_dir", drop(remove_dir(none).await.unwrap_err()));
    is_refused("remove_dir_all", remove_dir_all(none)).await;
}

#[run_test]
async fn descriptors() {
    let (reader, writer) = pipe().unwrap();
    let reader = PollableFd::new(reader).unwrap();
    let writer = PollableFd::new(writer).unwrap();
    is_refused("PollableFd::readable", reader.readable()).await;
    is_refused("PollableFd::writable", writer.writable()).await;
}
