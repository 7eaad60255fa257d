//! What a process said of its files before it was killed, and whether that is so.

use std::fmt::Display;

use crate::common::prelude::*;

pub const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// What happened after the last word of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was killed. What the kernel has taken is there.
    Killed,
    /// The machine lost its power, or its device failed: what was brought to the device is there.
    PowerFailed,
}

/// What was said of a file that is written from its beginning.
#[derive(Clone, Debug, Default)]
struct Grown {
    accepted: u64,
    written: u64,
    durable: u64,
    /// Where it ends, and where it ends after the power failed.
    closed: Option<u64>,
    durably_closed: Option<u64>,
}

/// What was said of the versions of a page, or of a file that is replaced.
#[derive(Clone, Debug, Default)]
struct Replaced {
    written: u64,
    durable: u64,
}

/// All that was said.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    grown: BTreeMap<String, Grown>,
    pages: BTreeMap<u64, Replaced>,
    manifest: Replaced,
    /// What failed.
    pub failed: Vec<String>,
    /// Every file whose name is stable.
    named: Vec<String>,
}

/// How much was said, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    pub accepted: u64,
    pub written: u64,
    pub durable: u64,
    pub failures: u64,
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.accepted += other.accepted;
        self.written += other.written;
        self.durable += other.durable;
        self.failures += other.failures;
    }
}

impl Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Sum {
            accepted,
            written,
            durable,
            failures,
        } = self;
        write!(
            f,
            "{accepted} bytes accepted, of which {written} were confirmed as written and {durable} as durable; \
             {failures} operations failed"
        )
    }
}

impl Truth {
    /// Takes in a line: what is the case, of which file, and a number.
    pub fn hear(&mut self, line: &str) {
        if let Some(what) = line.strip_prefix("failed ") {
            self.failed.push(what.to_owned());
            return;
        }
        let words: Vec<_> = line.split(' ').collect();
        let [what, file, number] = words[..] else {
            panic!("{line:?} is not understood")
        };
        let number: u64 = number.parse().expect("a number");
        if what == "named" {
            self.named.push(file.to_owned());
            return;
        }
        let replaced = match file {
            "manifest" => Some(&mut self.manifest),
            _ => (file.strip_prefix("page-")).map(|page| {
                self.pages
                    .entry(page.parse().expect("a number"))
                    .or_default()
            }),
        };
        match (what, replaced) {
            ("written", Some(it)) => it.written = number,
            ("durable", Some(it)) => it.durable = number,
            (_, Some(_)) => panic!("{line:?} is not understood"),
            (_, None) => {
                let it = self.grown.entry(file.to_owned()).or_default();
                match what {
                    "accepted" => it.accepted = number,
                    "written" => it.written = it.written.max(number),
                    "durable" => it.durable = it.durable.max(number),
                    "closed" => it.closed = Some(number),
                    "durably-closed" => it.durably_closed = Some(number),
                    _ => panic!("{line:?} is not understood"),
                }
            }
        }
    }

    pub fn sum(&self) -> Sum {
        let mut sum = Sum {
            failures: self.failed.len() as u64,
            ..Sum::default()
        };
        for it in self.grown.values() {
            sum.accepted += it.accepted.max(it.written).max(it.durable);
            sum.written += it.written.max(it.durable);
            sum.durable += it.durable;
        }
        for it in self.pages.values() {
            let page = PAGE as u64;
            sum.accepted += page;
            sum.written += page * u64::from(it.written > 0);
            sum.durable += page * u64::from(it.durable > 0);
        }
        sum
    }

    /// What of it does not hold in `folder`.
    pub fn broken(&self, folder: &Path, end: End) -> Vec<String> {
        let mut broken = Vec::new();
        let read = |name: &str| match fs::read(folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.expect("what is there can be read")),
        };
        let is_named = |name: &str| self.named.iter().any(|it| it == name);
        for (name, said) in &self.grown {
            let Some(content) = read(name) else {
                if is_named(name) || end == End::Killed {
                    broken.push(format!("{name} is not there; {said:?}"));
                }
                continue;
            };
            said.check(name, &content, end, &mut broken);
        }
        let pages = read("pages");
        if pages.is_none() && is_named("pages") {
            broken.push("pages is not there".to_owned());
        }
        let pages = pages.unwrap_or_default();
        for (&page, said) in &self.pages {
            let start = (page as usize * PAGE).min(pages.len());
            let bytes = &pages[start..pages.len().min(start + PAGE)];
            said.check_page(page, bytes, end, &mut broken);
        }
        let manifest = read("manifest").unwrap_or_default();
        let version = manifest_version(&manifest);
        let least = self.manifest.least(end);
        match version {
            Some(version) if version >= least => {}
            None if least == 0 && manifest.is_empty() => {}
            _ => broken.push(format!(
                "the manifest has version {version:?} of {} bytes; {:?}",
                manifest.len(),
                self.manifest
            )),
        }
        broken
    }
}

impl Grown {
    fn check(&self, name: &str, content: &[u8], end: End, broken: &mut Vec<String>) {
        let (safe, closed) = match end {
            End::Killed => (self.written.max(self.durable), self.closed),
            End::PowerFailed => (self.durable, self.durably_closed),
        };
        if (content.len() as u64) < safe {
            let len = content.len();
            broken.push(format!("{name} has {len} bytes of {safe}; {self:?}"));
            return;
        }
        if let Some(closed) = closed
            && content.len() as u64 != closed
        {
            let len = content.len();
            broken.push(format!("{name} has {len} bytes and was closed at {closed}"));
        }
        for (at, &byte) in content.iter().enumerate() {
            // What is not confirmed is there, or not, or a hole; it is not of anything else.
            let is_right = byte == byte_at(name, at as u64);
            if !is_right && ((at as u64) < safe || byte != 0) {
                broken.push(format!("{name} has {byte} at {at}; {self:?}"));
                return;
            }
        }
    }
}

impl Replaced {
    fn least(&self, end: End) -> u64 {
        match end {
            End::Killed => self.written.max(self.durable),
            End::PowerFailed => self.durable,
        }
    }

    fn check_page(&self, page: u64, bytes: &[u8], end: End, broken: &mut Vec<String>) {
        let least = self.least(end);
        if bytes.len() < PAGE && least > 0 {
            broken.push(format!("page {page} has {} bytes; {self:?}", bytes.len()));
        }
        for (number, sector) in bytes.chunks_exact(SECTOR).enumerate() {
            let version = u64::from_le_bytes(sector[..8].try_into().expect("eight bytes"));
            let is_whole = match version {
                0 => sector.iter().all(|&byte| byte == 0),
                _ => sector == &page_bytes(page, version)[number * SECTOR..][..SECTOR],
            };
            if !is_whole || version < least {
                broken.push(format!(
                    "sector {number} of page {page} has version {version}, whole: {is_whole}; {self:?}"
                ));
            }
        }
    }
}

/// The byte that a file has there.
pub fn byte_at(name: &str, at: u64) -> u8 {
    let of_name = name.bytes().fold(7_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mixed = ((at / 8) ^ (of_name << 40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (8 * (at % 8))) as u8 | 1
}

pub fn bytes_at(name: &str, start: u64, len: usize) -> Vec<u8> {
    (start..start + len as u64)
        .map(|at| byte_at(name, at))
        .collect()
}

/// A version of a page. Each sector begins with it.
pub fn page_bytes(page: u64, version: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PAGE);
    for sector in 0..(PAGE / SECTOR) as u64 {
        let of_sector = (page << 32 | sector << 16) ^ version.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bytes.extend(version.to_le_bytes());
        bytes.extend(of_sector.to_le_bytes().repeat(SECTOR / 8 - 1));
    }
    bytes
}

/// A file that is replaced as a whole.
pub fn manifest_bytes(version: u64) -> Vec<u8> {
    version.to_le_bytes().repeat(100 + version as usize % 1000)
}

fn manifest_version(content: &[u8]) -> Option<u64> {
    let version = u64::from_le_bytes(content.get(..8)?.try_into().ok()?);
    (version > 0 && content == manifest_bytes(version)).then_some(version)
}
