use std::fs::File;
use std::os::fd::AsFd;

use super::*;

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
