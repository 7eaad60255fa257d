use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::*;

fn temporary(len: usize) -> File {
    let file = tempfile::tempfile().expect("the disk has room");
    file.write_all_at(&vec![7; len], 0).expect("as above");
    file
}

#[test]
fn the_attributes_are_those_of_the_file_and_not_of_a_path() {
    let file = temporary(5000);
    let statx = Statx::now(file.as_fd()).unwrap();
    let expected = file.metadata().unwrap();
    assert_eq!(statx.size(), 5000);
    assert_eq!(statx.inode(), expected.ino());
    assert_eq!(statx.allocated_bytes(), expected.blocks() * 512);
    assert_eq!(u64::from(statx.block_bytes()), expected.blksize());
    let (major, minor) = statx.device();
    assert_eq!(libc::makedev(major, minor), expected.dev());
    assert!(Statx::now(File::open("/proc/self/maps").unwrap().as_fd()).is_ok());
}

#[test]
fn a_size_that_the_kernel_does_not_have_is_refused() {
    let file = temporary(1);
    truncate(&file, 3).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3);
    for size in [1 << 63, u64::MAX] {
        let error = truncate(&file, size).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
    assert_eq!(offset(i64::MAX as u64).unwrap(), i64::MAX);
}

#[test]
fn direct_io_is_added_to_the_flags() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    match set_direct(file.as_fd()) {
        Ok(()) => {
            let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL).unwrap());
            assert!(
                flags.contains(OFlag::O_APPEND | OFlag::O_DIRECT),
                "{flags:?}"
            );
        }
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "not here"),
    }
}

#[test]
fn a_copy_of_a_descriptor_is_not_inherited() {
    let file = temporary(1);
    let copy = duplicate(file.as_fd()).unwrap();
    assert_ne!(copy.as_raw_fd(), file.as_raw_fd());
    let flags = fcntl(&copy, FcntlArg::F_GETFD).unwrap();
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
}

#[test]
fn what_was_just_written_is_cached_or_the_kernel_says_why_not() {
    let file = temporary(100);
    let mut buf = [0; 200];
    match read_cached(file.as_raw_fd(), &mut buf, 90) {
        Ok(read) => {
            assert_eq!(read, 10);
            assert_eq!(buf[..10], [7; 10]);
            assert_eq!(read_cached(file.as_raw_fd(), &mut buf, 100).unwrap(), 0);
        }
        Err(error) => {
            let errno = error.raw_os_error().unwrap();
            assert!([libc::EAGAIN, libc::EOPNOTSUPP].contains(&errno), "{error}");
        }
    }
    let error = read_cached(file.as_raw_fd(), &mut buf, 1 << 63).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn locks_are_of_the_open_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let (one, other) = (File::open(&path).unwrap(), File::open(&path).unwrap());
    let copy = duplicate(one.as_fd()).unwrap();
    flock(one.as_fd(), Flock::Exclusive).unwrap();
    flock(copy.as_fd(), Flock::Exclusive).expect("it is the same open file");
    let error = flock(other.as_fd(), Flock::Shared).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    flock(copy.as_fd(), Flock::Unlocked).unwrap();
    flock(other.as_fd(), Flock::Shared).unwrap();
    flock(one.as_fd(), Flock::Shared).unwrap();
}

#[test]
fn a_range_is_copied_within_the_kernel() {
    let (from, to) = (temporary(10_000), temporary(0));
    assert_eq!(copy_range(&from, 5000, &to, 10, 100).unwrap(), 100);
    assert_eq!(to.metadata().unwrap().len(), 110);
    let error = copy_range(&from, 1 << 63, &to, 0, 1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn a_path_with_a_zero_byte_is_no_path() {
    let error = c_path(Path::new("a\0b")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(c_path(Path::new("a\nb")).unwrap().as_bytes(), b"a\nb");
}

#[test]
fn extent_sizes_have_32_bits() {
    let file = temporary(1);
    let error = hint_extent_size(file.as_fd(), 1 << 32).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn filesystems_are_known_by_their_numbers() {
    let kind = |number: u32| Filesystem::of_type(FsType(number as _));
    assert_eq!(kind(0x0102_1994), Filesystem::InMemory);
    assert_eq!(kind(0x8584_58F6), Filesystem::InMemory);
    assert_eq!(kind(0xEF53), Filesystem::Local);
    assert_eq!(kind(0x794C_7630), Filesystem::Overlay);
    assert_eq!(kind(0x6969), Filesystem::Other, "NFS");
    if let Ok(shm) = File::open("/dev/shm") {
        let statx = Statx::now(shm.as_fd()).unwrap();
        // Asked, and remembered.
        for _ in 0..2 {
            let filesystem = Filesystem::of(shm.as_fd(), &statx);
            assert_eq!(filesystem, Filesystem::InMemory);
        }
        // Of a kernel that does not number its mounts.
        let filesystem = Filesystem::of(shm.as_fd(), &Statx::zeroed());
        assert_eq!(filesystem, Filesystem::InMemory);
    }
}
