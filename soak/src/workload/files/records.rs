//! The records that a process appends until it is killed.
//!
//! Each is as long as the others, and all of it follows from its number: one that is half written,
//! or in the place of another, is found by making it again.

use support::generator::stream;

/// The records of one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records {
    pub(super) seed: u64,
    /// Of each.
    pub(super) bytes: usize,
}

impl Records {
    /// Makes the record of that number in `place`, which is as long as it.
    pub(super) fn make(self, number: u64, place: &mut [u8]) {
        stream(self.seed, number).fill(place);
    }

    /// How many whole records there are at the beginning of `file`, where the first one of `file`
    /// has that number.
    pub(super) fn count_whole(self, first: u64, file: &[u8]) -> u64 {
        let mut expected = vec![0; self.bytes];
        let whole = file.chunks_exact(self.bytes).zip(first..);
        let whole = whole.take_while(|&(found, number)| {
            self.make(number, &mut expected);
            found == expected
        });
        whole.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_that_is_not_whole_ends_the_count() {
        let records = Records {
            seed: 5,
            bytes: 100,
        };
        let mut file = vec![0; 1_050];
        for (number, place) in file.chunks_exact_mut(100).enumerate() {
            records.make(number as u64, place);
        }
        assert_eq!(records.count_whole(0, &file), 10, "half a record is none");
        assert_eq!(records.count_whole(3, &file[300..]), 7);
        assert_eq!(records.count_whole(1, &file), 0, "each has its place");
        file[457] ^= 1;
        assert_eq!(records.count_whole(0, &file), 4);
        assert_eq!(records.count_whole(0, &[]), 0);
    }
}
