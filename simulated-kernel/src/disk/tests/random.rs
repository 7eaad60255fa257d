//! Random operations: against the file system of this machine, and whether all is taken down again.

use proptest::prelude::*;

use super::real::{Real, is_ext4};
use super::system::{Outcome, Simulated, Step, System};
use super::*;

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "d", "e", ".", ".."]);
    let names = prop::collection::vec(name, 1..4);
    (names, prop::bool::weighted(0.1)).prop_map(|(names, has_slash)| {
        let path = names.join("/");
        // What is above belongs to others.
        let path = path.replace("..", "a/..");
        if has_slash { path + "/" } else { path }
    })
}

fn open_flags() -> impl Strategy<Value = i32> {
    let access = prop::sample::select(vec![READ, libc::O_WRONLY, READ_WRITE, READ_WRITE]);
    let flag = prop::sample::select(vec![
        libc::O_CREAT,
        libc::O_CREAT,
        libc::O_CREAT,
        libc::O_EXCL | libc::O_CREAT,
        libc::O_TRUNC,
        libc::O_APPEND,
        libc::O_DIRECTORY,
        libc::O_NOFOLLOW,
        libc::O_DIRECT,
        libc::O_PATH,
        libc::O_TMPFILE,
    ]);
    let flags = prop::collection::vec(flag, 0..3);
    (access, flags).prop_map(|(access, flags)| flags.into_iter().fold(access, |all, it| all | it))
}

/// Around the bounds of pages more often than elsewhere.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..20_000_u64,
        (0..5_u64, 0..3_u64).prop_map(|(page, more)| (page * 4096 + more).saturating_sub(1)),
        (0..40_u64).prop_map(|sector| sector * 512),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let file = || 0..4_usize;
    let at = || prop::option::of(offset());
    let sectors = || (0..20_usize).prop_map(|sectors| sectors * 512);
    let len = || prop_oneof![0..600_usize, 0..10_000_usize, sectors()];
    let mode = prop::sample::select(vec![
        0,
        libc::FALLOC_FL_KEEP_SIZE,
        libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
    ]);
    let lock = prop::sample::select(vec![None, Some(Lock::Shared), Some(Lock::Exclusive)]);
    prop_oneof![
        8 => (file(), prop::option::weighted(0.2, file()), path(), open_flags())
            .prop_map(|(file, from, path, flags)| Step::Open(file, from, path, flags)),
        1 => file().prop_map(Step::Close),
        4 => (file(), at(), len()).prop_map(|(file, at, len)| Step::Read(file, at, len)),
        6 => (file(), at(), len(), 1..=255_u8)
            .prop_map(|(file, at, len, value)| Step::Write(file, at, len, value)),
        2 => (file(), offset()).prop_map(|(file, size)| Step::Truncate(file, size)),
        2 => (file(), mode, offset(), offset())
            .prop_map(|(file, mode, at, len)| Step::Allocate(file, mode, at, len)),
        1 => (file(), offset(), file(), offset(), len())
            .prop_map(|(from, at, to, to_at, len)| Step::Copy(from, at, to, to_at, len)),
        1 => (file(), offset()).prop_map(|(file, at)| Step::Seek(file, at)),
        2 => file().prop_map(Step::Stat),
        2 => (path(), any::<bool>()).prop_map(|(path, follows)| Step::StatAt(path, follows)),
        1 => (file(), any::<bool>()).prop_map(|(file, direct)| Step::SetDirect(file, direct)),
        1 => (file(), lock).prop_map(|(file, lock)| Step::Lock(file, lock)),
        3 => path().prop_map(Step::MakeDirectory),
        2 => path().prop_map(Step::RemoveDirectory),
        2 => path().prop_map(Step::Unlink),
        4 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => (file(), path()).prop_map(|(file, to)| Step::LinkOpen(file, to)),
        2 => (path(), path()).prop_map(|(target, path)| Step::Symlink(target, path)),
        1 => path().prop_map(Step::ReadLink),
        1 => path().prop_map(Step::MakeSocket),
    ]
}

/// Whether kernels differ in what direct I/O does: a read that is not aligned passes an ext4 if it
/// is of a hole, and what is copied comes from anywhere in a page, which some devices refuse.
fn is_unaligned(simulated: &Simulated, step: &Step) -> bool {
    let disk = &simulated.disk;
    let open = |number| {
        let file = simulated.files.get(number);
        file.map(|file| disk.open_file(*file).expect("it is open"))
    };
    let is_direct = |number| open(number).is_some_and(|file| file.is_direct());
    let is_odd = |bytes: u64| !bytes.is_multiple_of(512);
    match step {
        Step::Read(number, offset, len) => {
            let position = || open(number).map_or(0, |file| file.position);
            let at = offset.unwrap_or_else(position);
            is_direct(number) && (is_odd(at) || is_odd(*len as u64))
        }
        Step::Copy(from, at, to, _, len) => {
            let size = || disk.stat(simulated.files[from]).expect("it is open").size;
            let ends_odd = || is_odd((*len as u64).min(size().saturating_sub(*at)));
            is_odd(*at) && is_direct(to) || is_direct(from) && (is_odd(*at) || ends_odd())
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_do_what_they_do_on_this_machine(
        steps in prop::collection::vec(step(), 1..80),
        seed in any::<u64>(),
    ) {
        if !is_ext4() {
            println!("skipped: temporary files are not on an ext4");
            return Ok(());
        }
        let mut real = Real::new();
        if !real.has_direct_io() {
            println!("skipped: no direct I/O of 512 bytes where temporary files are");
            return Ok(());
        }
        let mut simulated = Simulated::new(forgetful(seed));
        for (number, step) in steps.iter().enumerate() {
            if is_unaligned(&simulated, step) {
                continue;
            }
            let (here, there) = (simulated.take(step), real.take(step));
            prop_assert_eq!(here, there, "step {}", number);
        }
        // All that is left is what is in the directory.
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        for system in [&mut simulated as &mut dyn System, &mut real] {
            for number in 0..4 {
                let _ = system.take(&Step::Close(number));
            }
            let opened = system.take(&Step::Open(0, None, ".".into(), flags));
            prop_assert_eq!(opened, Ok(Outcome::Done));
        }
        prop_assert_eq!(simulated.take(&Step::List(0)), real.take(&Step::List(0)));
        prop_assert_eq!(simulated.disk.open.len(), 2);
    }
}
