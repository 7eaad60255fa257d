//! A file system in memory that loses what was not synced, served through `/dev/fuse`.
//!
//! Of each file it keeps what readers see, what is stable, and the changes in between. A sync makes
//! the file stable. When the power fails, any of the other changes may be lost, or be there in
//! part, in sectors; so may any when a sync fails, which a later sync does not bring back. Names
//! are stable at once.
//!
//! It has one folder, and calls as in `linux/fuse.h`, of version 7.31.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use crate::common::prelude::*;

const SECTOR: usize = 512;
const ROOT: u64 = 1;
const MAX_WRITE: usize = 128 << 10;

enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

#[derive(Default)]
struct Node {
    name: Option<String>,
    seen: Vec<u8>,
    stable: Vec<u8>,
    pending: Vec<Change>,
}

enum Power {
    On,
    /// One write or sync in so many fails. With a sync that fails may get lost what it was for.
    Failing(u64),
    /// As `Off`, after one in so many.
    Dying(u64),
    Off,
}

struct Disk {
    nodes: Vec<Node>,
    power: Power,
    numbers: Numbers,
    kept: usize,
    lost: usize,
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Resize(len) => content.resize(*len, 0),
        Change::Write(at, bytes) => {
            let end = at + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*at..end].copy_from_slice(bytes);
        }
    }
}

impl Node {
    fn change(&mut self, change: Change) {
        apply(&mut self.seen, &change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            apply(&mut self.stable, &change);
        }
    }
}

impl Disk {
    /// Any of what was not synced gets lost: all of it, any of it, or the last of it.
    fn lose(&mut self, node: usize) {
        let numbers = &mut self.numbers;
        let manner = numbers.below(3);
        let node = &mut self.nodes[node];
        let pending = std::mem::take(&mut node.pending);
        let some = numbers.below(pending.len() as u64 + 1) as usize;
        for (number, change) in pending.into_iter().enumerate() {
            let stays = match manner {
                0 => false,
                1 => numbers.below(2) == 0,
                _ => number < some,
            };
            let is_torn = manner == 1 && numbers.below(4) == 0;
            self.kept += usize::from(stays);
            self.lost += usize::from(!stays);
            match change {
                _ if !stays => {}
                Change::Write(at, bytes) if is_torn => {
                    for (sector, bytes) in bytes.chunks(SECTOR).enumerate() {
                        if numbers.below(2) == 0 {
                            let at = at + sector * SECTOR;
                            apply(&mut node.stable, &Change::Write(at, bytes.to_vec()));
                        }
                    }
                }
                change => apply(&mut node.stable, &change),
            }
        }
    }

    /// The power fails, and is there again.
    fn fail_power(&mut self, seed: u64) -> String {
        self.numbers = Numbers::new(seed);
        (self.kept, self.lost) = (0, 0);
        for node in 0..self.nodes.len() {
            self.lose(node);
            let node = &mut self.nodes[node];
            node.seen.clone_from(&node.stable);
        }
        self.power = Power::On;
        format!("{} {}", self.kept, self.lost)
    }

    fn command(&mut self, line: &str) -> String {
        let (word, number) = line.split_once(' ').expect("a word and a number");
        let number: u64 = number.parse().expect("a number");
        match word {
            "off" => self.power = Power::Off,
            "failing" => self.power = Power::Failing(number),
            "dying" => self.power = Power::Dying(number),
            "on" => return self.fail_power(number),
            _ => panic!("{line} is no command"),
        }
        String::new()
    }

    fn is_refused(&mut self) -> bool {
        match self.power {
            Power::On => false,
            Power::Off => true,
            Power::Failing(one_in) => self.numbers.below(one_in) == 0,
            Power::Dying(one_in) => {
                let dies = self.numbers.below(one_in) == 0;
                if dies {
                    self.power = Power::Off;
                }
                dies
            }
        }
    }

    fn find(&self, name: &[u8]) -> Option<u64> {
        let name = std::str::from_utf8(name).ok()?;
        let found = (self.nodes.iter()).position(|node| node.name.as_deref() == Some(name))?;
        Some(found as u64 + 2)
    }

    fn node(&mut self, id: u64) -> Result<&mut Node, i32> {
        let at = id.checked_sub(2).ok_or(libc::EISDIR)?;
        self.nodes.get_mut(at as usize).ok_or(libc::ENOENT)
    }

    /// `fuse_attr`.
    fn attributes(&self, id: u64, out: &mut Vec<u8>) {
        let (mode, size) = match id {
            ROOT => (libc::S_IFDIR | 0o755, 0),
            _ => {
                let size = self
                    .nodes
                    .get(id as usize - 2)
                    .map_or(0, |it| it.seen.len());
                (libc::S_IFREG | 0o644, size as u64)
            }
        };
        for word in [id, size, size.div_ceil(512), 0, 0, 0] {
            out.extend(word.to_le_bytes());
        }
        for word in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
            out.extend(word.to_le_bytes());
        }
    }

    /// `fuse_entry_out`. Names are not kept by the kernel, nor are attributes.
    fn entry(&self, id: u64, out: &mut Vec<u8>) {
        for word in [id, 0, 0, 0, 0] {
            out.extend(u64::to_le_bytes(word));
        }
        self.attributes(id, out);
    }

    /// What is answered to a call, or the number of an error.
    fn answer(&mut self, call: &Call<'_>) -> Result<Vec<u8>, i32> {
        let mut out = Vec::new();
        match call.code {
            LOOKUP => {
                let id = self.find(call.name(0)).ok_or(libc::ENOENT)?;
                self.entry(id, &mut out);
            }
            GETATTR => {
                out.extend([0; 16]);
                self.attributes(call.node, &mut out);
            }
            SETATTR => {
                const SIZE: u32 = 1 << 3;
                if call.u32(0) & SIZE != 0 {
                    if self.is_refused() {
                        return Err(libc::EIO);
                    }
                    let len = call.u64(16) as usize;
                    self.node(call.node)?.change(Change::Resize(len));
                }
                out.extend([0; 16]);
                self.attributes(call.node, &mut out);
            }
            CREATE => {
                if let Power::Off = self.power {
                    return Err(libc::EIO);
                }
                let name = call.name(16);
                let id = self.find(name).unwrap_or(self.nodes.len() as u64 + 2);
                if id == self.nodes.len() as u64 + 2 {
                    self.nodes.push(Node {
                        name: Some(String::from_utf8_lossy(name).into_owned()),
                        ..Node::default()
                    });
                }
                self.entry(id, &mut out);
                out.extend([0; 16]);
            }
            OPEN | OPENDIR => out.extend([0; 16]),
            READ => {
                let (at, size) = (call.u64(8) as usize, call.u32(16) as usize);
                let seen = &self.node(call.node)?.seen;
                let end = seen.len().min(at.saturating_add(size));
                out.extend_from_slice(seen.get(at..end).unwrap_or_default());
            }
            WRITE => {
                if self.is_refused() {
                    return Err(libc::EIO);
                }
                let (at, size) = (call.u64(8) as usize, call.u32(16));
                let bytes = call.rest[40..][..size as usize].to_vec();
                self.node(call.node)?.change(Change::Write(at, bytes));
                out.extend(size.to_le_bytes());
                out.extend([0; 4]);
            }
            FSYNC => {
                if self.is_refused() {
                    if let Power::Failing(_) = self.power {
                        self.lose(call.node as usize - 2);
                    }
                    return Err(libc::EIO);
                }
                self.node(call.node)?.sync();
            }
            RENAME | RENAME2 => {
                if self.is_refused() {
                    return Err(libc::EIO);
                }
                let start = if call.code == RENAME { 8 } else { 16 };
                let (from, to) = (call.name(start), call.name_after(start));
                let from = self.find(from).ok_or(libc::ENOENT)?;
                if let Some(replaced) = self.find(to) {
                    self.node(replaced)?.name = None;
                }
                self.node(from)?.name = Some(String::from_utf8_lossy(to).into_owned());
            }
            UNLINK => {
                let id = self.find(call.name(0)).ok_or(libc::ENOENT)?;
                self.node(id)?.name = None;
            }
            STATFS => {
                out.extend([0; 80]);
                out[40..44].copy_from_slice(&4096_u32.to_le_bytes());
                out[44..48].copy_from_slice(&255_u32.to_le_bytes());
            }
            INIT => {
                const BIG_WRITES: u32 = 1 << 5;
                const ASYNC_DIRECT_IO: u32 = 1 << 15;
                for word in [7, 31, call.u32(8), BIG_WRITES | ASYNC_DIRECT_IO, 0] {
                    out.extend(u32::to_le_bytes(word));
                }
                out.extend((MAX_WRITE as u32).to_le_bytes());
                out.extend(1_u32.to_le_bytes());
                out.resize(64, 0);
            }
            RELEASE | RELEASEDIR | FLUSH | FSYNCDIR | DESTROY | ACCESS => {}
            _ => return Err(libc::ENOSYS),
        }
        Ok(out)
    }
}

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const UNLINK: u32 = 10;
const RENAME: u32 = 12;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const RELEASEDIR: u32 = 29;
const FSYNCDIR: u32 = 30;
const ACCESS: u32 = 34;
const CREATE: u32 = 35;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;
const RENAME2: u32 = 45;

/// What the kernel asks: `fuse_in_header` and what comes after it.
struct Call<'a> {
    code: u32,
    unique: u64,
    node: u64,
    rest: &'a [u8],
}

impl<'a> Call<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut call = Call {
            code: 0,
            unique: 0,
            node: 0,
            rest: bytes,
        };
        (call.code, call.unique, call.node) = (call.u32(4), call.u64(8), call.u64(16));
        call.rest = &bytes[40..];
        call
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.rest[at..][..4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.rest[at..][..8].try_into().expect("eight bytes"))
    }

    /// The name that begins there, and ends before a zero.
    fn name(&self, at: usize) -> &'a [u8] {
        let mut names = self.rest[at..].split(|&byte| byte == 0);
        names.next().unwrap_or_default()
    }

    /// The name after the one that begins there.
    fn name_after(&self, at: usize) -> &'a [u8] {
        self.name(at + self.name(at).len() + 1)
    }
}

/// Answers the kernel, until the file system is unmounted, and obeys `control`.
pub fn serve(mut kernel: File, control: UnixStream) -> io::Result<()> {
    let disk = Arc::new(Mutex::new(Disk {
        nodes: Vec::new(),
        power: Power::On,
        numbers: Numbers::new(1),
        kept: 0,
        lost: 0,
    }));
    let commanded = Arc::clone(&disk);
    thread::spawn(move || {
        let mut answers = control.try_clone().expect("the system has descriptors");
        for line in BufReader::new(control).lines().map_while(Result::ok) {
            let answer = commanded.lock().expect("no panic").command(&line);
            if writeln!(answers, "{answer}").is_err() {
                break;
            }
        }
        // The test has ended, in whatever way.
        std::process::exit(0);
    });
    let mut bytes = vec![0; MAX_WRITE + (64 << 10)];
    loop {
        let count = match kernel.read(&mut bytes) {
            Ok(count) => count,
            // It was unmounted.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(()),
            // A call was taken back before it was read.
            Err(error)
                if [libc::ENOENT, libc::EINTR, libc::EAGAIN]
                    .contains(&error.raw_os_error().unwrap_or(0)) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        let call = Call::new(&bytes[..count]);
        if [FORGET, BATCH_FORGET, INTERRUPT].contains(&call.code) {
            continue;
        }
        let answer = disk.lock().expect("no panic").answer(&call);
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let mut reply = Vec::with_capacity(16 + body.len());
        reply.extend((16 + body.len() as u32).to_le_bytes());
        reply.extend(i32::to_le_bytes(error));
        reply.extend(call.unique.to_le_bytes());
        reply.extend(body);
        match kernel.write(&reply) {
            // The process that asked was killed.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            other => drop(other?),
        }
    }
}
