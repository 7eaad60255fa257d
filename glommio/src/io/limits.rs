//! What the kernel and the device say of direct I/O on a file.

use crate::sys::block_device::BlockDevice;

/// What direct I/O on a file has to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// A power of two.
    pub(super) alignment: u64,
    pub(super) max_request_bytes: usize,
    pub(super) max_segment_bytes: usize,
}

impl Limits {
    pub(super) fn of_device(device: BlockDevice) -> Self {
        Limits {
            alignment: device
                .logical_block_bytes
                .max(BlockDevice::PLAINEST.logical_block_bytes),
            max_request_bytes: device.max_request_bytes,
            max_segment_bytes: device.max_segment_bytes,
        }
    }

    /// What the kernel says of the file goes before what it says of the device.
    pub(super) fn align_to(&mut self, bytes: u64) {
        if bytes.is_power_of_two() {
            self.alignment = bytes.max(BlockDevice::PLAINEST.logical_block_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_powers_of_two_and_no_less_than_a_sector() {
        let mut limits = Limits::of_device(BlockDevice::PLAINEST);
        for (said, alignment) in [(4096, 4096), (8, 512), (3000, 512), (1024, 1024)] {
            limits.align_to(said);
            assert_eq!(limits.alignment, alignment);
        }
    }
}
