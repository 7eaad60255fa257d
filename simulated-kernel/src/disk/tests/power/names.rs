//! Random operations on names, and power cuts: names are what they were at some time since their
//! directory was synced, and nothing is lost that always had a name.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::super::inode::Ino;
use super::super::super::state::ROOT;
use super::*;

#[derive(Clone, Debug)]
enum Change {
    Create(String),
    MakeDirectory(String),
    Rename(String, String),
    Link(String, String),
    Unlink(String),
    RemoveDirectory(String),
    Sync(String),
    PowerCut,
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => path().prop_map(Change::Create),
        4 => path().prop_map(Change::MakeDirectory),
        8 => (path(), path()).prop_map(|(from, to)| Change::Rename(from, to)),
        3 => (path(), path()).prop_map(|(from, to)| Change::Link(from, to)),
        2 => path().prop_map(Change::Unlink),
        2 => path().prop_map(Change::RemoveDirectory),
        1 => prop_oneof![Just("/".to_string()), path()].prop_map(Change::Sync),
        1 => Just(Change::PowerCut),
    ]
}

/// Some that are synced before it begins.
fn first_changes() -> impl Iterator<Item = Change> {
    let directories = ["a", "b", "a/b", "a/c"].map(|path| Change::MakeDirectory(path.into()));
    let files = ["c", "a/a", "b/a", "a/b/a"].map(|path| Change::Create(path.into()));
    let syncs = ["/", "a", "b", "a/b", "a/c"].map(|path| Change::Sync(path.into()));
    directories.into_iter().chain(files).chain(syncs)
}

/// What each name in each directory stands for.
type Names = BTreeMap<(Ino, Vec<u8>), Ino>;

struct Model {
    disk: Disk,
    /// What was there after each change since the last power cut.
    states: Vec<Names>,
    /// The state in which each directory was synced; else the first.
    synced: BTreeMap<Ino, usize>,
}

impl Model {
    fn ino(&self, path: &str) -> Result<Ino> {
        self.disk
            .stat_at(None, path.as_bytes(), true)
            .map(|stat| stat.ino)
    }

    /// The directory and the name.
    fn key(&self, path: &str) -> Result<(Ino, Vec<u8>)> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("/", path));
        Ok((self.ino(parent)?, name.as_bytes().to_vec()))
    }

    /// Makes the change in the disk and, as far as that can, in a new state.
    fn make(&mut self, change: &Change) -> Result<()> {
        let mut next = self.states.last().expect("it begins with one").clone();
        match change {
            Change::Create(path) => {
                let flags = CREATE | libc::O_EXCL;
                let file = self.disk.open(None, path.as_bytes(), flags, 0o600)?;
                let ino = self.disk.stat(file)?.ino;
                self.disk.close(file)?;
                next.insert(self.key(path)?, ino);
            }
            Change::MakeDirectory(path) => {
                self.disk.make_directory(None, path.as_bytes(), 0o700)?;
                next.insert(self.key(path)?, self.ino(path)?);
            }
            Change::Rename(from, to) => {
                let (old, new) = (self.key(from)?, self.key(to)?);
                self.disk
                    .rename(None, from.as_bytes(), None, to.as_bytes())?;
                let moved = next[&old];
                if next.get(&new) != Some(&moved) {
                    next.remove(&old);
                    next.insert(new, moved);
                }
            }
            Change::Link(from, to) => {
                let ino = self.ino(from)?;
                self.disk.link(None, from.as_bytes(), None, to.as_bytes())?;
                next.insert(self.key(to)?, ino);
            }
            Change::Unlink(path) => {
                self.disk.unlink(None, path.as_bytes())?;
                next.remove(&self.key(path)?);
            }
            Change::RemoveDirectory(path) => {
                self.disk.remove_directory(None, path.as_bytes())?;
                next.remove(&self.key(path)?);
            }
            Change::Sync(path) => {
                let flags = READ | libc::O_DIRECTORY;
                let directory = self.disk.open(None, path.as_bytes(), flags, 0)?;
                let ino = self.disk.stat(directory)?.ino;
                self.disk.sync(directory)?;
                self.disk.close(directory)?;
                self.synced.insert(ino, self.states.len() - 1);
            }
            Change::PowerCut => self.disk.power_cut(),
        }
        self.states.push(next);
        Ok(())
    }

    /// All that is there.
    fn found(&mut self) -> std::result::Result<Names, TestCaseError> {
        let mut found = Names::new();
        let mut left = vec![(b"/".to_vec(), ROOT, ROOT)];
        while let Some((path, ino, parent)) = left.pop() {
            let directory = self
                .disk
                .open(None, &path, READ | libc::O_DIRECTORY, 0)
                .unwrap();
            let entries = self.disk.read_directory(directory, 1 << 20).unwrap();
            self.disk.close(directory).unwrap();
            prop_assert_eq!((entries[0].ino, entries[1].ino), (ino, parent));
            for entry in entries.into_iter().skip(2) {
                let path = [&path[..], b"/", &entry.name].concat();
                if entry.kind == libc::DT_DIR {
                    left.push((path, entry.ino, ino));
                }
                found.insert((ino, entry.name), entry.ino);
            }
        }
        Ok(found)
    }

    /// Fails unless what is `found` is all that there is, and as often as it is said to be.
    fn check_inodes(&self, found: &Names) -> std::result::Result<(), TestCaseError> {
        let mut all: Vec<_> = found.values().copied().collect();
        all.sort();
        for (ino, inode) in &self.disk.inodes {
            let names = all.iter().filter(|it| *it == ino).count() as u32;
            let stat = inode.stat(*ino, 512);
            match stat.mode & libc::S_IFMT {
                libc::S_IFDIR => {
                    let within = found.iter().filter(|((at, _), _)| at == ino);
                    let within = within.filter(|(_, it)| self.disk.inode(**it).is_directory());
                    prop_assert_eq!(stat.links as usize, 2 + within.count());
                }
                _ => prop_assert_eq!(stat.links, names),
            }
        }
        all.dedup();
        prop_assert_eq!(self.disk.inodes.len(), all.len() + 1);
        prop_assert_eq!(self.disk.open.len(), 0);
        Ok(())
    }

    /// Fails unless a power cut may leave `found`.
    fn check(&self, found: &Names) -> std::result::Result<(), TestCaseError> {
        let all = self.states.iter().flat_map(BTreeMap::keys);
        let mut directories: BTreeSet<_> = found.values().collect();
        directories.insert(&ROOT);
        for key in all
            .chain(found.keys())
            .filter(|(ino, _)| directories.contains(ino))
        {
            let since = self.synced.get(&key.0).copied().unwrap_or(0);
            let mut values = self.states[since..].iter().map(|state| state.get(key));
            prop_assert!(values.any(|value| value == found.get(key)), "{key:?}");
        }
        let count = |state: &Names, ino| state.values().filter(|it| **it == ino).count();
        for ino in self.states[0].values() {
            let counts = self.states.iter().map(|state| count(state, *ino));
            let (least, most) = (counts.clone().min(), counts.max());
            let left = count(found, *ino);
            prop_assert!(least == Some(0) || left > 0, "{ino} is lost");
            prop_assert!(most != Some(1) || left <= 1, "{ino} has {left} names");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn names_are_what_they_were_at_some_time_since_the_sync(
        changes in prop::collection::vec(change(), 1..40),
        seed in any::<u64>(),
    ) {
        let mut model = Model {
            disk: forgetful(seed),
            states: vec![Names::new()],
            synced: BTreeMap::new(),
        };
        for change in first_changes() {
            prop_assert_eq!(model.make(&change), Ok(()));
        }
        model.states = vec![model.found()?];
        model.synced.clear();
        for change in changes.iter().chain([&Change::PowerCut]) {
            // One that fails changes nothing.
            let _ = model.make(change);
            let found = model.found()?;
            if matches!(change, Change::PowerCut) {
                model.check_inodes(&found)?;
                model.check(&found)?;
                model.states = vec![found.clone()];
                model.synced.clear();
            }
            prop_assert_eq!(Some(&found), model.states.last());
        }
    }
}

/// Makes the changes, after each of which the file has a name, and checks that it has one whatever
/// of them is lost.
fn check_never_lost(file: &str, changes: &[Change]) {
    let mut found = BTreeSet::new();
    for seed in 0..300 {
        let mut model = Model {
            disk: forgetful(seed),
            states: vec![Names::new()],
            synced: BTreeMap::new(),
        };
        for change in first_changes() {
            model.make(&change).unwrap();
        }
        let ino = model.ino(file).unwrap();
        for change in changes {
            model.make(change).unwrap();
        }
        model.disk.power_cut();
        let left = model.found().unwrap();
        assert!(left.values().any(|it| *it == ino), "seed {seed}");
        model.check_inodes(&left).unwrap();
        found.insert(left);
    }
    assert!(found.len() > 2, "something is lost");
}

fn rename(from: &str, to: &str) -> Change {
    Change::Rename(from.into(), to.into())
}

#[test]
fn a_file_that_moves_is_never_without_a_name() {
    let make = |path: &str| Change::MakeDirectory(path.into());
    let create = |path: &str| Change::Create(path.into());
    let link = |from: &str, to: &str| Change::Link(from.into(), to.into());
    let unlink = |path: &str| Change::Unlink(path.into());
    let remove = |path: &str| Change::RemoveDirectory(path.into());
    // Out of a directory that is removed, or replaced.
    check_never_lost("b/a", &[rename("b/a", "f"), remove("b")]);
    check_never_lost("b/a", &[rename("b/a", "f"), rename("a/c", "b")]);
    // Into a directory that is new, or in one that is.
    check_never_lost("c", &[make("n"), rename("c", "n/f")]);
    check_never_lost("c", &[make("n"), make("n/m"), rename("c", "n/m/f")]);
    check_never_lost("c", &[make("n"), link("c", "n/f"), unlink("c")]);
    // To another name, before the first one is taken from it.
    check_never_lost("c", &[link("c", "f"), unlink("c")]);
    check_never_lost("c", &[link("c", "f"), create("g"), rename("g", "c")]);
    check_never_lost("c", &[rename("c", "f"), create("c"), rename("f", "a/f")]);
    // In a directory that moves, above which others move into it.
    check_never_lost("a/b/a", &[rename("a/b", "n"), rename("a", "n/m")]);
}
