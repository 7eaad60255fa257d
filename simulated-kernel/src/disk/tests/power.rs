//! What power cuts leave of the usual ways to write files.

mod content;
mod names;

use std::collections::BTreeSet;

use super::*;

const PAGE: usize = PAGE_BYTES as usize;

/// What is there after a power cut, over many seeds.
fn outcomes(work: impl Fn(&mut Disk)) -> BTreeSet<Option<Vec<u8>>> {
    outcomes_of(forgetful, work)
}

fn outcomes_of(disk: impl Fn(u64) -> Disk, work: impl Fn(&mut Disk)) -> BTreeSet<Option<Vec<u8>>> {
    let outcomes = (0..300).map(|seed| {
        let mut disk = disk(seed);
        work(&mut disk);
        disk.power_cut();
        assert_eq!(disk.open.len(), 0);
        content(&mut disk, b"f").ok()
    });
    outcomes.collect()
}

fn write(disk: &mut Disk, path: &[u8], flags: i32, offset: u64, bytes: &[u8]) -> FileId {
    let file = disk.open(None, path, flags, 0o600).unwrap();
    assert_eq!(disk.write(file, Some(offset), bytes), Ok(bytes.len()));
    file
}

fn only<const N: usize>(expected: [Option<Vec<u8>>; N]) -> BTreeSet<Option<Vec<u8>>> {
    BTreeSet::from(expected)
}

#[test]
fn what_was_synced_is_there() {
    let found = outcomes(|disk| durable(disk, b"f", &[7; 5000]));
    assert_eq!(found, only([Some(vec![7; 5000])]));
}

#[test]
fn a_disk_that_loses_nothing_keeps_all() {
    let keeps = |seed| disk(seed, |settings| settings.torn_writes = true);
    let found = outcomes_of(keeps, |disk| {
        write(disk, b"g", CREATE, 0, &[7; 5000]);
        disk.rename(None, b"g", None, b"f").unwrap();
    });
    assert_eq!(found, only([Some(vec![7; 5000])]));
}

#[test]
fn the_name_of_a_synced_file_may_be_lost() {
    let found = outcomes(|disk| {
        let file = write(disk, b"f", CREATE, 0, &[7; 10]);
        disk.sync(file).unwrap();
    });
    assert_eq!(found, only([None, Some(vec![7; 10])]));
}

#[test]
fn a_synced_directory_may_be_lost_with_all_that_is_in_it() {
    let mut found = BTreeSet::new();
    for seed in 0..100 {
        let mut disk = forgetful(seed);
        disk.make_directory(None, b"d", 0o700).unwrap();
        let file = write(&mut disk, b"d/f", CREATE, 0, &[7]);
        disk.sync(file).unwrap();
        let directory = disk.open(None, b"d", READ, 0).unwrap();
        disk.sync(directory).unwrap();
        disk.power_cut();
        let is_there = disk.stat_at(None, b"d", true).is_ok();
        assert_eq!(content(&mut disk, b"d/f").is_ok(), is_there);
        found.insert(is_there);
    }
    assert_eq!(found.len(), 2);
}

#[test]
fn sectors_are_torn_apart_and_whole() {
    let old_or_new = |bytes: &[u8]| bytes.iter().all(|byte| *byte == bytes[0]);
    for sector in [512, 4096] {
        let with_sectors = |seed| {
            let mut disk = forgetful(seed);
            let mut settings = disk.settings().clone();
            settings.sector_bytes = sector;
            disk.set_settings(settings);
            disk
        };
        let found = outcomes_of(with_sectors, |disk| {
            durable(disk, b"f", &[1; 4 * PAGE]);
            write(disk, b"f", READ_WRITE, 0, &[2; 4 * PAGE]);
        });
        for bytes in &found {
            let bytes = bytes.as_ref().expect("its name is synced");
            assert_eq!(bytes.len(), 4 * PAGE);
            assert!(bytes.chunks(sector as usize).all(old_or_new));
        }
        assert!(found.contains(&Some(vec![1; 4 * PAGE])));
        assert!(found.contains(&Some(vec![2; 4 * PAGE])));
        assert!(found.len() > 10, "{}", found.len());
    }
}

#[test]
fn a_write_within_a_sector_is_never_torn() {
    let found = outcomes(|disk| {
        durable(disk, b"f", &[1; 512]);
        write(disk, b"f", READ_WRITE, 10, &[2; 100]);
        write(disk, b"f", READ_WRITE, 50, &[3; 100]);
    });
    let one = [vec![1; 10], vec![2; 100], vec![1; 402]].concat();
    let both = [vec![1; 10], vec![2; 40], vec![3; 100], vec![1; 362]].concat();
    // That the kernel has written back what was there in between is rarer.
    assert_eq!(found, only([Some(vec![1; 512]), Some(one), Some(both)]));
}

#[test]
fn without_torn_writes_the_last_ones_are_lost_as_a_whole() {
    let whole = |seed| disk(seed, |settings| settings.lost_unsynced = true);
    let found = outcomes_of(whole, |disk| {
        durable(disk, b"f", &[1; PAGE]);
        write(disk, b"f", READ_WRITE, 100, &[2; 2 * PAGE]);
        let file = write(disk, b"f", READ_WRITE, 0, &[3; 1000]);
        disk.truncate(file, 2000).unwrap();
    });
    let first = [vec![1; 100], vec![2; 2 * PAGE]].concat();
    let second = [vec![3; 1000], first[1000..].to_vec()].concat();
    let last = second[..2000].to_vec();
    assert_eq!(found, only([vec![1; PAGE], first, second, last].map(Some)));
}

#[test]
fn an_extended_file_may_have_zeros_in_place_of_data() {
    let found = outcomes(|disk| {
        durable(disk, b"f", &[1; 100]);
        write(disk, b"f", READ_WRITE, 100, &[2; 2 * PAGE]);
    });
    let mut zeros = 0;
    for bytes in found.iter().flatten() {
        assert!((100..=100 + 2 * PAGE).contains(&bytes.len()));
        assert_eq!(bytes[..100], [1; 100]);
        assert!(bytes[100..].iter().all(|byte| matches!(byte, 0 | 2)));
        zeros += usize::from(bytes[100..].contains(&0));
    }
    assert!(zeros > 0);
    assert!(found.contains(&Some(vec![1; 100])));
    assert!(
        found.iter().flatten().any(|bytes| bytes.len() == PAGE),
        "the size grows by pages"
    );
}

#[test]
fn a_lost_truncation_takes_what_was_written_after_it_along() {
    check_lost_truncation(outcomes(|disk| {
        durable(disk, b"f", &[1; 2 * PAGE]);
        write(disk, b"f", READ_WRITE | libc::O_TRUNC, 0, &[2; PAGE]);
    }));
    // Also if a sync ends meanwhile that began before.
    check_lost_truncation(outcomes(|disk| {
        durable(disk, b"f", &[1; PAGE]);
        let file = write(disk, b"f", READ_WRITE, PAGE_BYTES, &[1; PAGE]);
        let sync = disk.begin_sync(file).unwrap();
        disk.truncate(file, 0).unwrap();
        disk.write(file, Some(0), &[2; PAGE]).unwrap();
        disk.end_sync(sync).unwrap();
    }));
}

fn check_lost_truncation(found: BTreeSet<Option<Vec<u8>>>) {
    for bytes in found.iter().flatten() {
        match bytes.contains(&1) {
            true => assert_eq!(*bytes, [1; 2 * PAGE]),
            false => assert!(bytes.len() <= PAGE),
        }
    }
    assert!(found.contains(&Some(vec![1; 2 * PAGE])));
    assert!(found.contains(&Some(vec![])));
    assert!(found.contains(&Some(vec![2; PAGE])));
}

#[test]
fn nothing_is_left_of_what_a_durable_truncation_cut_off() {
    let found = outcomes(|disk| {
        durable(disk, b"f", &[1; 3 * PAGE]);
        write(disk, b"f", READ_WRITE | libc::O_TRUNC, 0, &[2; 3 * PAGE]);
        // Brings along the size, but not the other pages.
        write(disk, b"f", READ_WRITE | libc::O_DSYNC, 0, &[3; 10]);
    });
    for bytes in found.iter().flatten() {
        assert_eq!(bytes.len(), 3 * PAGE);
        assert_eq!(bytes[..10], [3; 10]);
        assert!(bytes[PAGE..].iter().all(|byte| matches!(byte, 0 | 2)));
    }
    assert!(found.len() > 10);
}

#[test]
fn a_file_is_replaced_in_whole_if_it_was_synced_before() {
    let replace = |disk: &mut Disk, syncs: bool| {
        durable(disk, b"f", &[1; 1000]);
        let file = write(disk, b"new", CREATE, 0, &[2; 1000]);
        if syncs {
            disk.sync(file).unwrap();
        }
        disk.rename(None, b"new", None, b"f").unwrap();
    };
    let found = outcomes(|disk| replace(disk, true));
    assert_eq!(found, only([Some(vec![1; 1000]), Some(vec![2; 1000])]));
    let found = outcomes(|disk| {
        replace(disk, true);
        sync_root(disk);
    });
    assert_eq!(found, only([Some(vec![2; 1000])]));
    let found = outcomes(|disk| replace(disk, false));
    assert!(found.contains(&Some(vec![])), "the mistake is found");
}

#[test]
fn writes_that_are_to_be_durable_are() {
    for flags in [libc::O_DSYNC, libc::O_SYNC] {
        let found = outcomes(|disk| {
            durable(disk, b"f", &[1; 100]);
            write(disk, b"f", READ_WRITE | flags, 50, &[2; PAGE]);
        });
        let expected = [vec![1; 50], vec![2; PAGE]].concat();
        assert_eq!(found, only([Some(expected)]));
    }
}

#[test]
fn direct_writes_are_not_durable() {
    let found = outcomes(|disk| {
        durable(disk, b"f", &[1; PAGE]);
        let file = disk
            .open(None, b"f", READ_WRITE | libc::O_DIRECT, 0)
            .unwrap();
        let mut buf = vec![2; 2 * PAGE];
        let buf = system::aligned(&mut buf, PAGE);
        assert_eq!(disk.write(file, Some(0), buf), Ok(PAGE));
    });
    assert!(found.contains(&Some(vec![1; PAGE])));
    assert!(found.len() > 2);
}

#[test]
fn a_sync_is_of_what_was_written_before_it_began() {
    let mut found = BTreeSet::new();
    for seed in 0..100 {
        let mut disk = forgetful(seed);
        durable(&mut disk, b"f", b"");
        let file = write(&mut disk, b"f", READ_WRITE, 0, &[1; 100]);
        let sync = disk.begin_sync(file).unwrap();
        disk.write(file, Some(100), &[2; 100]).unwrap();
        let root = disk.open(None, b"/", READ, 0).unwrap();
        let names = disk.begin_sync(root).unwrap();
        disk.rename(None, b"f", None, b"g").unwrap();
        disk.end_sync(names).unwrap();
        disk.end_sync(sync).unwrap();
        disk.power_cut();
        let (f, g) = (content(&mut disk, b"f"), content(&mut disk, b"g"));
        assert!(f.is_ok() != g.is_ok());
        let is_renamed = g.is_ok();
        let bytes = f.or(g).unwrap();
        assert!(bytes.starts_with(&[1; 100]));
        found.insert((is_renamed, bytes.len() == 200 && bytes[199] == 2));
    }
    assert_eq!(found.len(), 4, "what was done later may be lost: {found:?}");
}

#[test]
fn a_sync_that_began_earlier_takes_nothing_back() {
    for seed in 0..100 {
        let mut disk = forgetful(seed);
        durable(&mut disk, b"f", &[1; PAGE]);
        let file = write(&mut disk, b"f", READ_WRITE, 0, &[2; 100]);
        let earlier = disk.begin_sync(file).unwrap();
        disk.truncate(file, 200).unwrap();
        disk.write(file, Some(0), &[3; 150]).unwrap();
        disk.sync(file).unwrap();
        if seed % 2 == 0 {
            disk.write(file, Some(0), &[3; 10]).unwrap();
        }
        disk.end_sync(earlier).unwrap();
        disk.power_cut();
        let expected = [vec![3; 150], vec![1; 50]].concat();
        assert_eq!(content(&mut disk, b"f"), Ok(expected));
    }
}

#[test]
fn what_a_failed_sync_was_to_write_is_lost() {
    let with_errors = |disk: &mut Disk, rate| {
        let mut settings = disk.settings().clone();
        settings.errors.sync = rate;
        disk.set_settings(settings);
    };
    let mut disk = forgetful(1);
    durable(&mut disk, b"f", &[1; PAGE]);
    let file = disk.open(None, b"f", READ_WRITE, 0).unwrap();
    let other = disk.open(None, b"f", READ, 0).unwrap();
    let bytes = [2; PAGE];
    disk.write(file, Some(0), &bytes).unwrap();
    with_errors(&mut disk, 1.0);
    assert_eq!(disk.sync(file), Err(libc::EIO));
    with_errors(&mut disk, 0.0);
    assert_eq!(disk.sync(file), Ok(()), "it is told once");
    assert_eq!(disk.sync(other), Err(libc::EIO), "to each");
    assert_eq!(disk.sync(other), Ok(()));
    let late = disk.open(None, b"f", READ, 0).unwrap();
    assert_eq!(disk.sync(late), Ok(()), "not to those who came later");
    assert_eq!(
        content(&mut disk, b"f"),
        Ok(vec![2; PAGE]),
        "still in the cache"
    );
    // A page that is written again is written as a whole.
    disk.write(file, Some(0), &[3]).unwrap();
    assert_eq!(disk.sync(file), Ok(()));
    let synced = [vec![3], vec![2; PAGE - 1]].concat();
    assert_eq!(content(&mut disk, b"f").as_ref(), Ok(&synced));
    // One that is not, is not.
    let file = write(&mut disk, b"f", READ_WRITE, 0, &[4; PAGE]);
    with_errors(&mut disk, 1.0);
    assert_eq!(disk.sync(file), Err(libc::EIO));
    with_errors(&mut disk, 0.0);
    assert_eq!(disk.sync(file), Ok(()));
    disk.power_cut();
    assert_eq!(content(&mut disk, b"f").as_ref(), Ok(&synced));
}

#[test]
fn a_file_without_a_name_is_gone() {
    let mut disk = forgetful(1);
    durable(&mut disk, b"f", &[1; PAGE]);
    let file = disk.open(None, b"f", READ, 0).unwrap();
    disk.unlink(None, b"f").unwrap();
    sync_root(&mut disk);
    let flags = libc::O_TMPFILE | READ_WRITE;
    let temporary = write(&mut disk, b"/", flags, 0, &[1; PAGE]);
    disk.sync(temporary).unwrap();
    assert_eq!(used_bytes(&disk), 2 * PAGE_BYTES);
    disk.power_cut();
    assert_eq!(used_bytes(&disk), 0);
    assert_eq!(disk.read(file, Some(0), &mut [0]), Err(libc::EBADF));
    assert_eq!(disk.inodes.len(), 1);
}

#[test]
fn operations_on_names_get_to_the_medium_when_there_are_many() {
    let mut disk = forgetful(1);
    for _ in 0..20_000 {
        let file = write(&mut disk, b"f", CREATE, 0, &[1; 10]);
        disk.close(file).unwrap();
        disk.unlink(None, b"f").unwrap();
    }
    assert!(disk.inodes.len() < 5000, "{}", disk.inodes.len());
    assert_eq!(used_bytes(&disk), 0);
    // Or when they are of large files.
    for _ in 0..100 {
        let file = write(&mut disk, b"f", CREATE, 0, &vec![1; 1 << 22]);
        disk.unlink(None, b"f").unwrap();
        disk.close(file).unwrap();
    }
    assert!(disk.inodes.len() < 100, "{}", disk.inodes.len());
    let pages = disk.inodes.values().map(|inode| inode.retained_pages());
    assert_eq!(disk.retained_pages, pages.sum());
    sync_root(&mut disk);
    assert_eq!((disk.inodes.len(), disk.retained_pages), (1, 0));
}
