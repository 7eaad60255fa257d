//! Checkpoints: the visible rows of a stretch of operations, in time order, and its deletes.
//!
//! ```text
//!   header 4 KiB │ pages of deletes, of up to 1 MiB │ pages of rows, of up to 1 MiB
//!
//!   page:   0       4      8       12         16     20          28         32
//!          ┌───────┬──────┬───────┬──────────┬──────┬───────────┬──────────┬──────────────────────┐
//!          │ magic │ kind │ items │ checksum │ page │ last      │ checksum │ rows: all timestamps,│
//!          │       │      │       │ payload  │ no.  │ operation │ head     │ then all values      │
//!          └───────┴──────┴───────┴──────────┴──────┴───────────┴──────────┴──────────────────────┘
//! ```
//!
//! It gets into the manifest when all of it is durable. So one that is there is whole, and whatever is
//! wrong in it is damage.

use std::ops::Range;
use std::rc::Rc;

use glommio::executor;

use super::disk::{File, Folder};
use super::error::Error;
use super::format::{
    CHECKPOINT_MAGIC, PAGE_BYTES, PAGE_HEAD, ROW_PAGE_BYTES, UNIT, file_head, round_up, ts_at,
    u32_at, u64_at,
};
use super::manifest::{CheckpointFile, Kind, Manifest, unique};
use super::read_ahead::ReadAhead;
use super::replay::Replay;
use crate::{Record, Snapshot, Ts};

const PAGE_MAGIC: u32 = u32::from_le_bytes(*b"TPAG");
const DELETES: u32 = 1;
const ROWS: u32 = 2;
const DELETE_BYTES: usize = 2 * size_of::<Ts>();

/// What a checkpoint is to have, besides rows.
pub(super) struct Content<'a, V> {
    pub from: u64,
    pub to: u64,
    pub snapshot: &'a Snapshot<V>,
    pub deletes: Vec<(Ts, Ts)>,
    pub floor: Option<Ts>,
}

/// Rows of a page: as a page is written in one go, it is small enough not to delay others.
fn row_page(row_bytes: usize) -> usize {
    const WRITTEN_BYTES: usize = 128 << 10;
    let rows = (WRITTEN_BYTES - PAGE_HEAD) / row_bytes;
    rows.max(1)
}

/// Writes a checkpoint, and makes it durable. It has to be listed before it counts. Gives up before
/// the next page once `is_stopped`.
pub(super) async fn write<V: Record>(
    folder: &Folder,
    manifest: &Manifest,
    content: Content<'_, V>,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<CheckpointFile>, Error> {
    let mut written = CheckpointFile {
        from: content.from,
        to: content.to,
        salt: unique(),
        bytes: 0,
        rows: 0,
    };
    let name = written.name();
    let file = folder.make(&name, async |file| {
        write_pages(file, manifest, &content, &mut written, is_stopped).await
    });
    let Some(file) = file.await? else {
        return Ok(None);
    };
    file.close().await?;
    Ok(Some(written))
}

/// Whether all was written.
async fn write_pages<V: Record>(
    file: &File,
    manifest: &Manifest,
    content: &Content<'_, V>,
    written: &mut CheckpointFile,
    is_stopped: impl Fn() -> bool,
) -> Result<bool, Error> {
    let (row_bytes, value_bytes) = (
        manifest.kind.row_bytes::<V>(),
        manifest.kind.value_bytes::<V>(),
    );
    let page_rows = row_page(row_bytes);
    let mut offset = UNIT as u64;
    let (mut pages, mut rows) = (0, 0);
    let deletes = union(content.deletes.clone());
    for deletes in deletes.chunks(ROW_PAGE_BYTES / DELETE_BYTES) {
        let mut page = vec![0; PAGE_HEAD];
        for (first, last) in deletes {
            page.extend(first.to_le_bytes());
            page.extend(last.to_le_bytes());
        }
        let page = finish_page(page, DELETES, deletes.len(), pages, content.to);
        file.write(&page, offset).await?;
        (offset, pages) = (offset + page.len() as u64, pages + 1);
    }
    let mut source = content.snapshot.range(..);
    loop {
        let (mut spans, mut count) = (Vec::new(), 0);
        while count < page_rows
            && let Some(span) = source.next_slice_of(page_rows - count)
        {
            count += span.len();
            spans.push(span);
        }
        if count == 0 {
            break;
        }
        if is_stopped() {
            return Ok(false);
        }
        let mut page = vec![0; PAGE_HEAD + count * row_bytes];
        let (timestamps, values) = page[PAGE_HEAD..].split_at_mut(count * size_of::<Ts>());
        let mut row = 0;
        for span in spans {
            let places = timestamps[row * size_of::<Ts>()..].chunks_exact_mut(size_of::<Ts>());
            for (place, ts) in places.zip(span.timestamps()) {
                place.copy_from_slice(&ts.to_le_bytes());
            }
            for value in span.values() {
                value.encode(&mut values[row * value_bytes..][..value_bytes]);
                row += 1;
            }
        }
        let page = finish_page(page, ROWS, count, pages, content.to);
        executor().yield_task_queue_now().await;
        file.write(&page, offset).await?;
        (offset, pages, rows) = (offset + page.len() as u64, pages + 1, rows + count as u64);
    }
    let numbers = [
        written.salt,
        content.from,
        content.to,
        content.floor.is_some().into(),
        content.floor.unwrap_or(0) as u64,
        rows,
        pages.into(),
    ];
    let head = file_head(CHECKPOINT_MAGIC, manifest.identity, &numbers);
    file.write(&head, 0).await?;
    (written.bytes, written.rows) = (offset, rows);
    Ok(true)
}

/// Fills in the head of a page, and pads it.
fn finish_page(mut page: Vec<u8>, kind: u32, items: usize, number: u32, to: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(PAGE_HEAD);
    head.extend(PAGE_MAGIC.to_le_bytes());
    head.extend(kind.to_le_bytes());
    head.extend((items as u32).to_le_bytes());
    head.extend(crc32fast::hash(&page[PAGE_HEAD..]).to_le_bytes());
    head.extend(number.to_le_bytes());
    head.extend(to.to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    page[..PAGE_HEAD].copy_from_slice(&head);
    page.resize(round_up(page.len()), 0);
    page
}

/// The same timestamps in disjoint ranges: all of them hide what was there before the stretch.
fn union(mut ranges: Vec<(Ts, Ts)>) -> Vec<(Ts, Ts)> {
    ranges.sort_unstable();
    let mut union: Vec<(Ts, Ts)> = Vec::new();
    for (first, last) in ranges {
        match union.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => union.push((first, last)),
        }
    }
    union
}

/// The numbers of a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub to: u64,
    pub floor: Option<Ts>,
    pub rows: u64,
    pub pages: u64,
}

impl Head {
    pub fn new([_, _, to, has_floor, floor, rows, pages]: [u64; 7]) -> Self {
        Self {
            to,
            floor: (has_floor != 0).then_some(floor as Ts),
            rows,
            pages,
        }
    }
}

/// Adds what a checkpoint has to a log that has everything before it.
pub(super) async fn load<V: Record>(
    file: Rc<File>,
    head: Head,
    replay: &mut Replay<V>,
) -> Result<(), Error> {
    let path = file.path().to_owned();
    let size = file.size().await?;
    let mut reader = ReadAhead::new(file, size, false);
    if let Some(floor) = head.floor {
        replay.raise_floor(floor);
    }
    let (mut loaded, mut offset) = (0, UNIT as u64);
    for number in 0..head.pages {
        let page = page_at::<V>(&mut reader, offset, &replay.kind).await?;
        let page = page.filter(|page| page.number == number && page.to == head.to);
        let damaged = || Error::corrupt(&path, offset, "the checksum of a page");
        let page = page.ok_or_else(damaged)?;
        let start = offset;
        offset += page.len() as u64;
        let added = page.add_to(replay).await?;
        loaded += added.ok_or_else(|| Error::corrupt(&path, start, "a delete of no timestamp"))?;
    }
    if loaded != head.rows {
        let what = format!("it has {loaded} rows, its header says {}", head.rows);
        return Err(Error::corrupt(&path, 24, what));
    }
    replay.applied = head.to;
    Ok(())
}

/// A page whose checksums are right.
pub(super) struct Page<'b> {
    pub number: u64,
    pub to: u64,
    kind: u32,
    items: usize,
    payload: &'b [u8],
}

/// The page at an offset, if there is a whole one.
pub(super) async fn page_at<'r, V: Record>(
    reader: &'r mut ReadAhead,
    offset: u64,
    kind: &Kind,
) -> Result<Option<Page<'r>>, Error> {
    let head = reader.at(offset, PAGE_HEAD).await?;
    let row_bytes = kind.row_bytes::<V>();
    let Some(bytes) = page_bytes(head, row_bytes) else {
        return Ok(None);
    };
    let page = reader.at(offset, bytes).await?;
    Ok(Page::parse(page, row_bytes))
}

impl<'b> Page<'b> {
    fn parse(page: &'b [u8], row_bytes: usize) -> Option<Self> {
        let head = page.get(..PAGE_HEAD)?;
        let is_right =
            u32_at(head, 0) == PAGE_MAGIC && u32_at(head, 28) == crc32fast::hash(&head[..28]);
        let payload = page.get(PAGE_HEAD..page_bytes(head, row_bytes)?)?;
        let is_whole = is_right && crc32fast::hash(payload) == u32_at(head, 12);
        is_whole.then(|| Self {
            number: u32_at(head, 16).into(),
            to: u64_at(head, 20),
            kind: u32_at(head, 4),
            items: u32_at(head, 8) as usize,
            payload,
        })
    }

    /// What it takes of the file.
    pub fn len(&self) -> usize {
        round_up(PAGE_HEAD + self.payload.len())
    }

    /// Adds what it has, and gives the number of its rows; `None` if a delete is none.
    pub async fn add_to<V: Record>(&self, replay: &mut Replay<V>) -> Result<Option<u64>, Error> {
        if self.kind == DELETES {
            for range in self.payload.chunks_exact(DELETE_BYTES) {
                let (first, last) = (ts_at(range, 0), ts_at(range, size_of::<Ts>()));
                if first > last {
                    return Ok(None);
                }
                replay.delete(first, last);
            }
            return Ok(Some(0));
        }
        let (timestamps, values) = self.payload.split_at(self.items * size_of::<Ts>());
        let value_bytes = replay.kind.value_bytes::<V>();
        let columns = |rows: Range<usize>| {
            let ts = rows.start * size_of::<Ts>()..rows.end * size_of::<Ts>();
            let ts = timestamps[ts].chunks_exact(size_of::<Ts>());
            (
                ts.map(|ts| ts_at(ts, 0)).collect(),
                decode_all(values, value_bytes, rows),
            )
        };
        replay.rows(0..self.items, columns).await?;
        Ok(Some(self.items as u64))
    }
}

/// Values that lie one after the other.
fn decode_all<V: Record>(bytes: &[u8], value_bytes: usize, rows: Range<usize>) -> Vec<V> {
    if value_bytes == 0 {
        return rows.map(|_| V::decode(&[])).collect();
    }
    let bytes = &bytes[rows.start * value_bytes..rows.end * value_bytes];
    bytes.chunks_exact(value_bytes).map(V::decode).collect()
}

/// The size of a page that begins with a head, if it may be one.
fn page_bytes(head: &[u8], row_bytes: usize) -> Option<usize> {
    let head = head.get(..PAGE_HEAD)?;
    let item_bytes = match u32_at(head, 4) {
        DELETES => DELETE_BYTES,
        ROWS => row_bytes,
        _ => return None,
    };
    let payload = (u32_at(head, 8) as usize).checked_mul(item_bytes)?;
    let bytes = payload.checked_add(PAGE_HEAD)?;
    (bytes <= PAGE_BYTES).then_some(bytes)
}
