//! What sysfs says of the block device below a file.
//!
//! A partition has no request queue of its own: the disk that it is on has, one folder up. Devices
//! without a name in `/sys/dev/block` (tmpfs, btrfs, overlayfs, NFS) and attributes that are
//! missing or cannot be understood are taken for the plainest device.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::sysfs;

/// How large requests to a device are, at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockDevice {
    /// What requests are multiples of.
    pub(crate) logical_block_bytes: u64,
    /// The kernel splits what is longer.
    pub(crate) max_request_bytes: usize,
    /// The longest piece of memory in a request.
    pub(crate) max_segment_bytes: usize,
}

/// One entry for each block device on which a file was opened.
static KNOWN: Mutex<BTreeMap<(u32, u32), BlockDevice>> = Mutex::new(BTreeMap::new());

/// Where the kernel lists block devices by their numbers.
const DEVICES: &str = "/sys/dev/block";

/// From a partition to the folder of its queue it is one step; more are for what is stacked in
/// other ways.
const MAX_STEPS_UP: usize = 4;

impl BlockDevice {
    /// Where nothing is known.
    pub(crate) const PLAINEST: BlockDevice = BlockDevice {
        logical_block_bytes: 512,
        max_request_bytes: 128 << 10,
        max_segment_bytes: u32::MAX as usize - 1,
    };

    /// That of these numbers. Looked up once for the process.
    pub(crate) fn of(major: u32, minor: u32) -> Self {
        // Filesystems without a device, whose numbers go from one to the next.
        if major == 0 {
            return Self::PLAINEST;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known
            .entry((major, minor))
            .or_insert_with(|| Self::listed(Path::new(DEVICES), major, minor))
    }

    fn listed(devices: &Path, major: u32, minor: u32) -> Self {
        let Some(queue) = queue_of(&devices.join(format!("{major}:{minor}"))) else {
            return Self::PLAINEST;
        };
        let attribute = |name: &str| {
            let value = sysfs::read_number(&queue.join(name)).ok()?;
            u64::try_from(value).ok().filter(|value| *value > 0)
        };
        let bytes = |name: &str, unit: u64| {
            let bytes = attribute(name)?.checked_mul(unit)?;
            usize::try_from(bytes).ok()
        };
        BlockDevice {
            logical_block_bytes: attribute("logical_block_size")
                .filter(|bytes| bytes.is_power_of_two())
                .unwrap_or(Self::PLAINEST.logical_block_bytes),
            max_request_bytes: bytes("max_sectors_kb", 1024)
                .unwrap_or(Self::PLAINEST.max_request_bytes),
            max_segment_bytes: bytes("max_segment_size", 1)
                .unwrap_or(Self::PLAINEST.max_segment_bytes),
        }
    }
}

/// The folder that describes the request queue of the device, or of the disk that it is a part of.
fn queue_of(device: &Path) -> Option<PathBuf> {
    // An entry is a link into the tree of devices, in which partitions are below their disks.
    let mut folder = fs::canonicalize(device).ok()?;
    for _ in 0..=MAX_STEPS_UP {
        let queue = folder.join("queue");
        if queue.is_dir() {
            return Some(queue);
        }
        if !folder.pop() {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A made-up sysfs with a disk `8:0` and its partition `8:1`.
    fn made_up(attributes: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let queue = root.path().join("devices/pci0/sda/queue");
        fs::create_dir_all(&queue).unwrap();
        fs::create_dir_all(root.path().join("devices/pci0/sda/sda1")).unwrap();
        for (name, text) in attributes {
            fs::write(queue.join(name), text).unwrap();
        }
        let devices = root.path().join("dev/block");
        fs::create_dir_all(&devices).unwrap();
        symlink("../../devices/pci0/sda", devices.join("8:0")).unwrap();
        symlink("../../devices/pci0/sda/sda1", devices.join("8:1")).unwrap();
        (root, devices)
    }

    #[test]
    fn a_partition_has_the_queue_of_its_disk() {
        let (_root, devices) = made_up(&[
            ("logical_block_size", "4096\n"),
            ("max_sectors_kb", "1280\n"),
            ("max_segment_size", "65536\n"),
        ]);
        let disk = BlockDevice {
            logical_block_bytes: 4096,
            max_request_bytes: 1280 << 10,
            max_segment_bytes: 65536,
        };
        assert_eq!(BlockDevice::listed(&devices, 8, 0), disk);
        assert_eq!(BlockDevice::listed(&devices, 8, 1), disk);
        assert_eq!(
            BlockDevice::listed(&devices, 259, 0),
            BlockDevice::PLAINEST,
            "not listed"
        );
    }

    #[test]
    fn what_is_missing_or_makes_no_sense_is_the_plainest() {
        for attributes in [
            &[] as &[_],
            &[("logical_block_size", "many\n"), ("max_sectors_kb", "")],
            &[("logical_block_size", "0\n"), ("max_segment_size", "-1\n")],
            &[("logical_block_size", "1000\n")],
            &[("max_sectors_kb", "9223372036854775807\n")],
        ] {
            let (_root, devices) = made_up(attributes);
            let device = BlockDevice::listed(&devices, 8, 1);
            assert_eq!(device, BlockDevice::PLAINEST, "{attributes:?}");
        }
    }
}
