//! The lives of many files at random: opened, written, dropped, forgotten and closed, while others
//! get the numbers of their descriptors. Every word in a file says whose it is, so whatever goes to
//! the wrong file, too late, or not at all, is seen.
//!
//! 10,000 operations, or as many as `GLOMMIO_OPERATIONS` says, from the seed `GLOMMIO_SEED`, which
//! a failure prints.

use std::collections::VecDeque;
use std::io::Write;

use glommio::io::OwnedDmaFile;

use super::*;
use crate::common::polled::{number, operations_or};

const BLOCK: usize = 4096;
const BLOCKS: usize = 8;
/// Operations of one executor, which ends with whatever is under way then.
const OF_ONE_EXECUTOR: u64 = 1000;

/// The words of a block: whose it is, and which write it was. Zero belongs to no file.
fn block(owner: u32, version: u32) -> Vec<u8> {
    let word = u64::from(owner) << 32 | u64::from(version);
    word.to_le_bytes().repeat(BLOCK / 8)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    bytes.chunks(8).map(|word| {
        let mut whole = [0; 8];
        whole[..word.len()].copy_from_slice(word);
        let word = u64::from_le_bytes(whole);
        ((word >> 32) as u32, word as u32)
    })
}

/// What a block may contain.
#[derive(Clone, Debug, Default)]
struct Block {
    /// That of the last write that was waited for; 0 before any.
    version: u32,
    /// Those of operations that were given up, which may happen until the file is closed.
    given_up: Vec<u32>,
}

impl Block {
    fn allows(&self, version: u32) -> bool {
        self.version == version || self.given_up.contains(&version)
    }
}

enum Handle {
    Direct(DmaFile),
    Buffered(BufferedFile),
}

impl Handle {
    async fn write(&self, bytes: Vec<u8>, at: u64) -> Result<usize> {
        match self {
            Handle::Direct(file) => {
                let mut buffer = file.alloc_dma_buffer(bytes.len());
                buffer.as_bytes_mut().copy_from_slice(&bytes);
                file.write_at(buffer, at).await
            }
            Handle::Buffered(file) => file.write_at(bytes, at).await,
        }
    }

    async fn read(&self, at: u64) -> Result<Vec<u8>> {
        Ok(match self {
            Handle::Direct(file) => file.read_at(at, BLOCK).await?.to_vec(),
            Handle::Buffered(file) => file.read_at(at, BLOCK).await?.to_vec(),
        })
    }

    async fn truncate(&self, size: u64) -> Result {
        match self {
            Handle::Direct(file) => file.truncate(size).await,
            Handle::Buffered(file) => file.truncate(size).await,
        }
    }

    async fn fdatasync(&self) -> Result {
        match self {
            Handle::Direct(file) => file.fdatasync().await,
            Handle::Buffered(file) => file.fdatasync().await,
        }
    }

    async fn close(self) -> Result {
        match self {
            Handle::Direct(file) => file.close().await,
            Handle::Buffered(file) => file.close().await,
        }
    }
}

/// A file that is open.
struct Life {
    owner: u32,
    path: PathBuf,
    handle: Handle,
    blocks: Vec<Block>,
}

/// What is known of a file that is not open any more.
enum Past {
    /// It was closed: it stays as it was then.
    Closed(u32, Vec<Block>, Vec<u8>),
    /// Something of it may still go on.
    Dropped(u32, Vec<Block>),
    /// A stream: so many bytes are surely there, so many were accepted; if it was closed that is
    /// where it ends.
    Stream(u32, usize, usize, bool),
    /// A file of others, which has this content.
    Other(Vec<u8>),
}

struct World {
    folder: PathBuf,
    numbers: Numbers,
    next: u32,
    lives: Vec<Life>,
    past: VecDeque<(PathBuf, Past)>,
    /// Files of others, which keep their descriptors for a while.
    others: VecDeque<fs::File>,
}

impl World {
    fn new(folder: PathBuf, seed: u64) -> Self {
        World {
            folder,
            numbers: Numbers::new(seed),
            next: 1,
            lives: Vec::new(),
            past: VecDeque::new(),
            others: VecDeque::new(),
        }
    }

    fn a_name(&mut self) -> (u32, PathBuf) {
        let owner = self.next;
        self.next += 1;
        (owner, self.folder.join(owner.to_string()))
    }

    async fn step(&mut self) -> Result {
        if self.past.len() > 40 {
            let (path, past) = self.past.pop_front().expect("there are some");
            past.check(&path);
            fs::remove_file(&path)?;
        }
        let count = self.lives.len() as u64;
        if count == 0 || count < 16 && self.numbers.below(8) == 0 {
            return self.open().await;
        }
        let at = self.numbers.below(count) as usize;
        match self.numbers.below(100) {
            0..35 => self.write(at).await,
            35..50 => self.write_and_give_up(at).await,
            50..51 => self.write_and_forget(at).await,
            51..52 => self.forget_and_replace(at).await,
            52..61 => self.read(at).await,
            61..64 => self.truncate(at).await,
            64..66 => self.lives[at].handle.fdatasync().await,
            66..78 => self.open_another(),
            78..84 => self.stream().await,
            84..89 => self.give_up_an_open().await,
            _ => {
                let life = self.lives.swap_remove(at);
                self.end(life).await
            }
        }
    }

    async fn open(&mut self) -> Result {
        // One of those that were closed before, or a new one.
        let closed = (self.past.iter()).position(|(_, it)| matches!(it, Past::Closed(..)));
        let again = closed.filter(|_| self.numbers.below(2) == 0);
        let (owner, path, blocks) = match again.and_then(|at| self.past.remove(at)) {
            Some((path, past)) => {
                past.check(&path);
                let Past::Closed(owner, blocks, _) = past else {
                    unreachable!("it was chosen as such")
                };
                (owner, path, blocks)
            }
            None => {
                let (owner, path) = self.a_name();
                fs::File::create(&path)?;
                (owner, path, vec![Block::default(); BLOCKS])
            }
        };
        let mut options = glommio::io::OpenOptions::new();
        options.read(true).write(true);
        let handle = match self.numbers.below(3) {
            0 => Handle::Buffered(options.buffered_open(&path).await?),
            1 => Handle::Direct(options.dma_open(&path).await?),
            _ => {
                let owned = OwnedDmaFile::from(options.dma_open(&path).await?);
                Handle::Direct(owned.into())
            }
        };
        let life = Life {
            owner,
            path,
            handle,
            blocks,
        };
        self.lives.push(life);
        Ok(())
    }

    /// Chooses a block of a file and a version that it never had.
    fn choose(&mut self, at: usize) -> (usize, u32, Vec<u8>) {
        let number = self.numbers.below(BLOCKS as u64) as usize;
        let version = self.next;
        self.next += 1;
        (number, version, block(self.lives[at].owner, version))
    }

    async fn write(&mut self, at: usize) -> Result {
        let (number, version, bytes) = self.choose(at);
        let life = &mut self.lives[at];
        let wrote = life.handle.write(bytes, (number * BLOCK) as u64).await?;
        assert_eq!(wrote, BLOCK, "the disk has room");
        life.blocks[number].version = version;
        Ok(())
    }

    async fn write_and_give_up(&mut self, at: usize) -> Result {
        let (number, version, bytes) = self.choose(at);
        let polls = self.numbers.below(3);
        let life = &mut self.lives[at];
        let write = life.handle.write(bytes, (number * BLOCK) as u64);
        give_up(write, polls).await;
        if polls > 0 {
            life.blocks[number].given_up.push(version);
        }
        Ok(())
    }

    async fn write_and_forget(&mut self, at: usize) -> Result {
        let (number, version, bytes) = self.choose(at);
        let life = &mut self.lives[at];
        life.blocks[number].given_up.push(version);
        let Handle::Direct(file) = &life.handle else {
            return Ok(());
        };
        let mut buffer = file.alloc_dma_buffer(BLOCK);
        buffer.as_bytes_mut().copy_from_slice(&bytes);
        let mut write = Box::pin(file.write_at(buffer, (number * BLOCK) as u64));
        if poll_once(&mut write).await.is_none() {
            forget(write);
        }
        Ok(())
    }

    /// Drops a file of which a write is still to be handed over, and opens others.
    async fn forget_and_replace(&mut self, at: usize) -> Result {
        self.write_and_forget(at).await?;
        let life = self.lives.swap_remove(at);
        drop(life.handle);
        let past = Past::Dropped(life.owner, life.blocks);
        self.past.push_back((life.path, past));
        for _ in 0..self.numbers.below(4) {
            self.open_another()?;
        }
        Ok(())
    }

    async fn read(&mut self, at: usize) -> Result {
        let number = self.numbers.below(BLOCKS as u64) as usize;
        let polls = self.numbers.below(4);
        let life = &self.lives[at];
        let position = (number * BLOCK) as u64;
        if polls < 2 {
            give_up(life.handle.read(position), polls).await;
            return Ok(());
        }
        check_block(
            life.owner,
            &life.blocks[number],
            &life.handle.read(position).await?,
        );
        Ok(())
    }

    async fn truncate(&mut self, at: usize) -> Result {
        let number = self.numbers.below(BLOCKS as u64) as usize;
        let polls = self.numbers.below(3);
        let life = &mut self.lives[at];
        let truncate = life.handle.truncate((number * BLOCK) as u64);
        let cut = life.blocks[number..].iter_mut();
        match polls {
            0 => {
                truncate.await?;
                cut.for_each(|block| block.version = 0);
            }
            _ => {
                give_up(truncate, polls).await;
                cut.for_each(|block| block.given_up.push(0));
            }
        }
        Ok(())
    }

    /// A file of others, which gets the lowest number that is free.
    fn open_another(&mut self) -> Result {
        let (owner, path) = self.a_name();
        let content = block(owner, 0);
        let mut file = fs::File::create(&path)?;
        file.write_all(&content)?;
        self.past.push_back((path, Past::Other(content)));
        self.others.push_back(file);
        if self.others.len() > 8 {
            self.others.pop_front();
        }
        Ok(())
    }

    async fn stream(&mut self) -> Result {
        let (owner, path) = self.a_name();
        let file = DmaFile::create(&path).await?;
        let mut writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(BLOCK)
            .with_write_behind(self.numbers.below(3) as usize)
            .with_sync_on_close_disabled(self.numbers.below(4) > 0)
            .build();
        let content = block(owner, 0).repeat(4);
        let mut accepted = 0;
        for _ in 0..1 + self.numbers.below(3) {
            let bytes = self.numbers.below(content.len() as u64 / 3) as usize;
            writer.write_all(&content[accepted..][..bytes]).await?;
            accepted += bytes;
            let polls = self.numbers.below(3);
            match self.numbers.below(5) {
                0 => writer.flush().await?,
                1 => drop(writer.sync().await?),
                2 => give_up(writer.flush(), polls).await,
                3 => give_up(writer.sync(), polls).await,
                _ => drop(writer.flush_aligned().await?),
            }
        }
        let flushed = writer.current_flushed_pos() as usize;
        let polls = self.numbers.below(3);
        let is_closed = match self.numbers.below(3) {
            0 => {
                writer.close().await?;
                true
            }
            1 => {
                give_up(writer.close(), polls).await;
                false
            }
            _ => false,
        };
        let past = Past::Stream(owner, flushed, accepted, is_closed);
        self.past.push_back((path, past));
        Ok(())
    }

    async fn give_up_an_open(&mut self) -> Result {
        let (_, path) = self.a_name();
        // It may still be created after the last look for it.
        fs::File::create(&path)?;
        let polls = self.numbers.below(3);
        match self.numbers.below(3) {
            0 => give_up(DmaFile::create(&path), polls).await,
            1 => give_up(BufferedFile::open(&path), polls).await,
            _ => give_up(Directory::open(&self.folder), polls).await,
        }
        self.past.push_back((path, Past::Other(Vec::new())));
        Ok(())
    }

    async fn end(&mut self, life: Life) -> Result {
        let Life {
            owner,
            path,
            handle,
            mut blocks,
        } = life;
        let past = match (self.numbers.below(6), handle) {
            (0..3, handle) => {
                handle.close().await?;
                // What was given up is over.
                let content = fs::read(&path)?;
                check(owner, &blocks, &content);
                Past::Closed(owner, std::mem::take(&mut blocks), content)
            }
            (3, handle) => {
                let polls = self.numbers.below(3);
                give_up(handle.close(), polls).await;
                Past::Dropped(owner, blocks)
            }
            (4, Handle::Direct(file)) => {
                let owned = OwnedDmaFile::from(file);
                let dropped = std::thread::spawn(|| drop(owned)).join();
                dropped.expect("dropping does not panic");
                Past::Dropped(owner, blocks)
            }
            (_, handle) => {
                drop(handle);
                Past::Dropped(owner, blocks)
            }
        };
        self.past.push_back((path, past));
        Ok(())
    }
}

#[track_caller]
fn check_block(owner: u32, block: &Block, content: &[u8]) {
    for (whose, version) in words(content) {
        assert!(
            whose == owner || (whose, version) == (0, 0),
            "in a file of {owner} is something of {whose}"
        );
        assert!(
            block.allows(version),
            "{version} is in a block of {owner} that should have {block:?}"
        );
    }
}

#[track_caller]
fn check(owner: u32, blocks: &[Block], content: &[u8]) {
    assert!(content.len() <= BLOCK * BLOCKS, "{}", content.len());
    let mut content = content.to_vec();
    // What is behind the end reads as zeros.
    content.resize(BLOCK * BLOCKS, 0);
    for (block, content) in blocks.iter().zip(content.chunks(BLOCK)) {
        check_block(owner, block, content);
    }
}

impl Past {
    #[track_caller]
    fn check(&self, path: &Path) {
        let content = fs::read(path).expect("it is there");
        match self {
            Past::Closed(owner, _, then) => {
                assert!(content == *then, "{owner} has changed since it was closed");
            }
            Past::Dropped(owner, blocks) => check(*owner, blocks, &content),
            Past::Other(then) => assert!(content == *then, "{} has changed", path.display()),
            Past::Stream(owner, flushed, accepted, is_closed) => {
                let expected = &block(*owner, 0).repeat(4)[..*accepted];
                assert!(
                    content.len() >= *flushed,
                    "{} of {flushed} flushed bytes of {owner}",
                    content.len()
                );
                assert!(
                    content[..*flushed] == expected[..*flushed],
                    "{owner} lacks what was flushed"
                );
                if *is_closed {
                    assert!(content == expected, "{owner} is not what was closed");
                }
                for (at, byte) in content.iter().enumerate().skip(*flushed) {
                    let is_own = expected.get(at).is_some_and(|own| own == byte);
                    assert!(is_own || *byte == 0, "at {at} of {owner} is {byte}");
                }
            }
        }
    }
}

/// Open descriptors of files in `folder`.
fn open_below(folder: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").expect("procfs is mounted");
    let targets = links
        .flatten()
        .filter_map(|it| fs::read_link(it.path()).ok());
    targets.filter(|target| target.starts_with(folder)).count()
}

/// Prints how to get there again.
struct Seed(u64, u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Seed(seed, operations) = self;
            eprintln!("GLOMMIO_SEED={seed} GLOMMIO_OPERATIONS={operations}");
        }
    }
}

#[test]
fn the_lives_of_many_files_at_random() {
    let operations = operations_or(10_000);
    let first = number("GLOMMIO_SEED", 1);
    println!("GLOMMIO_SEED={first} GLOMMIO_OPERATIONS={operations}");
    let rounds = operations.div_ceil(OF_ONE_EXECUTOR);
    for seed in first..first + rounds {
        let _seed = Seed(seed, OF_ONE_EXECUTOR);
        // Most of them in memory, where a disk does not slow it down.
        let folder = match seed % 4 {
            0 => folder(),
            _ => folder_in_memory().unwrap_or_else(folder),
        };
        let mut world = World::new(folder.path().to_owned(), seed);
        let world = run(async move {
            for _ in 0..OF_ONE_EXECUTOR.min(operations) {
                world.step().await?;
            }
            Ok(world)
        });
        // Those that are open still outlive their executor.
        let World {
            lives,
            past,
            others,
            ..
        } = world;
        drop(others);
        for life in lives {
            check(
                life.owner,
                &life.blocks,
                &fs::read(&life.path).expect("it is there"),
            );
        }
        assert_eq!(open_below(folder.path()), 0, "they stay open");
        past.iter().for_each(|(path, past)| past.check(path));
    }
}
