//! Random writes to a file, and a power cut: what was synced is there, and what is there was
//! written once.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Change {
    Write(u64, usize),
    DurableWrite(u64, usize),
    Truncate(u64),
    Punch(u64, u64),
    Allocate(u64, u64),
    Sync,
    /// Begins one; a second one may begin before it ends.
    BeginSync,
    /// Ends the one that began first, or last.
    EndSync(bool),
}

fn change() -> impl Strategy<Value = Change> {
    let at = || {
        prop_oneof![
            0..3 * PAGE_BYTES,
            (0..24_u64).prop_map(|sector| sector * 512)
        ]
    };
    let len = || prop_oneof![1..700_usize, 1..6000_usize, Just(512), Just(PAGE)];
    prop_oneof![
        8 => (at(), len()).prop_map(|(at, len)| Change::Write(at, len)),
        1 => (at(), len()).prop_map(|(at, len)| Change::DurableWrite(at, len)),
        2 => at().prop_map(Change::Truncate),
        1 => (at(), at()).prop_map(|(at, len)| Change::Punch(at, len + 1)),
        1 => (at(), at()).prop_map(|(at, len)| Change::Allocate(at, len + 1)),
        1 => Just(Change::Sync),
        1 => Just(Change::BeginSync),
        1 => any::<bool>().prop_map(Change::EndSync),
    ]
}

/// What the file may be after a power cut.
#[derive(Default)]
struct Model {
    /// What it was after each change; those before `synced` are history.
    states: Vec<Vec<u8>>,
    /// The last state that is on the medium for sure.
    synced: usize,
    /// To which sizes it was shortened, and which state that made.
    cuts: Vec<(usize, usize)>,
    /// Ranges that were written durably, with the state from which on they are.
    durable: Vec<(std::ops::Range<usize>, usize)>,
}

impl Model {
    fn now(&self) -> &Vec<u8> {
        self.states.last().expect("it begins with one")
    }

    fn change(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut next = self.now().clone();
        change(&mut next);
        self.states.push(next);
    }

    fn write(&mut self, at: usize, len: usize, value: u8) {
        self.change(|bytes| {
            let end = at + len;
            bytes.resize(bytes.len().max(end), 0);
            bytes[at..end].fill(value);
        });
    }

    /// Fails unless a power cut may leave `found`, in sectors of 512 bytes.
    fn allows(&self, found: &[u8]) -> std::result::Result<(), TestCaseError> {
        let states = &self.states[self.synced..];
        let sizes = states.iter().map(Vec::len);
        let (least, most) = (sizes.clone().min(), sizes.max());
        prop_assert!(
            (least..=most).contains(&Some(found.len())),
            "size {}",
            found.len()
        );
        for (range, from) in &self.durable {
            let later = self.states[*from..].iter().map(Vec::len).min();
            let kept = later.map_or(0, |least| least.min(range.end));
            prop_assert!(found.len() >= kept, "{} bytes of {kept}", found.len());
        }
        for (number, sector) in found.chunks(512).enumerate() {
            let at = number * 512;
            let range = at..at + sector.len();
            let is_there = |(number, state): (usize, &Vec<u8>)| {
                let number = number + self.synced;
                let within =
                    |range: &std::ops::Range<usize>| range.start < at + 512 && at < range.end;
                let is_old = |(durable, from): &(_, usize)| *from > number && within(durable);
                if self.durable.iter().any(is_old) {
                    return false;
                }
                let mut cuts = self.cuts.iter().filter(|(from, _)| *from > self.synced);
                padded(state, usize::MAX, range.clone()) == sector
                    || cuts.any(|(_, cut)| padded(state, *cut, range.clone()) == sector)
            };
            prop_assert!(
                states.iter().enumerate().any(is_there),
                "sector {number} was never {:?}",
                sector.first().zip(sector.last())
            );
        }
        Ok(())
    }
}

/// A range of the bytes, with zeros from `cut` on and where there are none.
fn padded(bytes: &[u8], cut: usize, range: std::ops::Range<usize>) -> Vec<u8> {
    let cut = cut.min(bytes.len());
    range
        .map(|at| if at < cut { bytes[at] } else { 0 })
        .collect()
}

/// Makes the changes, and returns the disk and what it may be.
fn make(mut disk: Disk, changes: &[Change]) -> (Disk, Model) {
    durable(&mut disk, b"f", b"");
    let file = disk.open(None, b"f", READ_WRITE, 0).unwrap();
    let durable = disk
        .open(None, b"f", READ_WRITE | libc::O_DSYNC, 0)
        .unwrap();
    let mut model = Model {
        states: vec![Vec::new()],
        ..Model::default()
    };
    let mut pending = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let value = (number % 250) as u8 + 1;
        match *change {
            Change::Write(at, len) | Change::DurableWrite(at, len) => {
                let is_durable = matches!(change, Change::DurableWrite(..));
                let bytes = vec![value; len];
                let to = if is_durable { durable } else { file };
                assert_eq!(disk.write(to, Some(at), &bytes), Ok(len));
                let range = at as usize..at as usize + len;
                model.write(range.start, len, value);
                if is_durable {
                    model.durable.push((range, model.states.len() - 1));
                }
            }
            Change::Truncate(size) => {
                disk.truncate(file, size).unwrap();
                model.change(|bytes| bytes.resize(size as usize, 0));
                model.cuts.push((model.states.len() - 1, size as usize));
            }
            Change::Punch(at, len) => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                disk.allocate(file, mode, at, len).unwrap();
                model.change(|bytes| {
                    let range = at as usize..(at + len) as usize;
                    let end = range.end.min(bytes.len());
                    bytes[range.start.min(end)..end].fill(0);
                });
            }
            Change::Allocate(at, len) => {
                disk.allocate(file, 0, at, len).unwrap();
                model.change(|bytes| bytes.resize(bytes.len().max((at + len) as usize), 0));
            }
            Change::Sync => {
                disk.sync(file).unwrap();
                model.synced = model.states.len() - 1;
            }
            Change::BeginSync => {
                let state = model.states.len() - 1;
                pending.push((disk.begin_sync(file).unwrap(), state));
            }
            Change::EndSync(is_last) if !pending.is_empty() => {
                let at = if is_last { pending.len() - 1 } else { 0 };
                let (sync, state) = pending.remove(at);
                disk.end_sync(sync).unwrap();
                model.synced = model.synced.max(state);
            }
            Change::EndSync(_) => {}
        }
        let mut bytes = vec![9; model.now().len() + 1];
        let read = disk.read(file, Some(0), &mut bytes).unwrap();
        assert_eq!(&bytes[..read], model.now());
        assert_eq!(disk.stat(file).unwrap().size, read as u64);
    }
    (disk, model)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sectors_are_what_they_were_at_some_time_since_the_sync(
        changes in prop::collection::vec(change(), 1..30),
        seed in any::<u64>(),
    ) {
        let (mut disk, model) = make(forgetful(seed), &changes);
        disk.power_cut();
        let found = super::super::content(&mut disk, b"f").unwrap();
        model.allows(&found)?;
        // What is there after the cut is on the medium, and nothing behind it.
        disk.power_cut();
        prop_assert_eq!(&super::super::content(&mut disk, b"f").unwrap(), &found);
        let file = disk.open(None, b"f", READ_WRITE, 0).unwrap();
        disk.truncate(file, found.len() as u64 + 3 * PAGE_BYTES).unwrap();
        let longer = super::super::content(&mut disk, b"f").unwrap();
        prop_assert!(longer[found.len()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn whole_writes_are_lost_from_the_last_one_on(
        changes in prop::collection::vec(change(), 1..30),
        seed in any::<u64>(),
    ) {
        let disk = disk(seed, |settings| settings.lost_unsynced = true);
        let changes: Vec<_> = changes.into_iter().filter(|it| !matches!(it, Change::DurableWrite(..))).collect();
        let (mut disk, model) = make(disk, &changes);
        disk.power_cut();
        let found = super::super::content(&mut disk, b"f").unwrap();
        prop_assert!(model.states[model.synced..].contains(&found));
    }

    #[test]
    fn nothing_is_lost_unless_it_may_be(
        changes in prop::collection::vec(change(), 1..30),
        seed in any::<u64>(),
    ) {
        let (mut disk, model) = make(disk(seed, |_| {}), &changes);
        disk.power_cut();
        prop_assert_eq!(&super::super::content(&mut disk, b"f").unwrap(), model.now());
    }

    #[test]
    fn the_same_seed_has_the_same_result(
        changes in prop::collection::vec(change(), 1..30),
        seed in any::<u64>(),
    ) {
        let results = [(); 2].map(|()| {
            let (mut disk, _) = make(forgetful(seed), &changes);
            disk.power_cut();
            (super::super::content(&mut disk, b"f"), disk.rng.u64(..))
        });
        prop_assert_eq!(&results[0], &results[1]);
    }
}
