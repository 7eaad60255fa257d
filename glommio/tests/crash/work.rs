//! The process that is killed: it writes files in each of the ways that there are, and says after
//! each step what is confirmed.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::common::prelude::*;
use crate::truth::{PAGE, bytes_at, manifest_bytes, page_bytes};

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

/// It ends by itself after as much, so that it needs no more room than a small device has.
const STREAMS: u64 = 30;
const STREAM_STEPS: u64 = 8;
const PAGES: u64 = 64;
const PAGE_ROUNDS: u64 = 1000;
const LOG_BYTES: u64 = 4 << 20;
const MANIFESTS: u64 = 1000;

/// Where it writes, to whom it speaks, and its own random numbers.
#[derive(Clone)]
struct Work {
    folder: PathBuf,
    listener: Rc<RefCell<UnixStream>>,
    numbers: Rc<RefCell<Numbers>>,
    /// It says that data is durable when it was only written.
    lies: bool,
}

impl Work {
    fn say(&self, what: &str, file: &str, number: u64) {
        let line = format!("{what} {file} {number}\n");
        let said = self.listener.borrow_mut().write_all(line.as_bytes());
        said.expect("the test listens until the end");
    }

    fn failed(&self, what: &str, error: &GlommioError<()>) {
        let line = format!("failed {what}: {error}\n").replace('\n', " ");
        let said = writeln!(self.listener.borrow_mut(), "{}", line.trim());
        said.expect("the test listens until the end");
    }

    fn below(&self, bound: u64) -> u64 {
        self.numbers.borrow_mut().below(bound)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes the name of a new file durable.
    async fn name(&self, name: &str) -> Result {
        let folder = Directory::open(&self.folder).await?;
        folder.sync().await?;
        folder.close().await?;
        self.say("named", name, 0);
        Ok(())
    }
}

/// Does it until it is killed.
pub fn process(folder: &Path, seed: u64, lies: bool, listener: UnixStream) {
    let work = Work {
        folder: folder.to_owned(),
        listener: Rc::new(RefCell::new(listener)),
        numbers: Rc::new(RefCell::new(Numbers::new(seed))),
        lies,
    };
    LocalExecutor::default().run(async {
        let tasks = [
            spawn_local(streams(work.clone())),
            spawn_local(pages(work.clone())),
            spawn_local(log(work.clone())),
            spawn_local(manifests(work.clone())),
        ];
        join_all(tasks).await;
        work.say("done", "all", 0);
        // Until it is killed, or the test has ended.
        let _ = work.listener.borrow_mut().read(&mut [0]);
    });
}

/// Polls it a few times, and drops it.
async fn give_up<F: Future>(future: F, polls: u64) {
    let mut future = pin!(future);
    for _ in 0..polls {
        if poll_once(&mut future).await.is_some() {
            return;
        }
        sleep(Duration::from_micros(50)).await;
    }
}

async fn streams(work: Work) {
    for number in 0..STREAMS {
        let name = format!("stream-{number}");
        if let Err(error) = stream(&work, &name).await {
            work.failed(&name, &error);
        }
    }
}

/// A `DmaStreamWriter` of one file.
async fn stream(work: &Work, name: &str) -> Result {
    let file = DmaFile::create(work.path(name)).await?;
    work.name(name).await?;
    let syncs_on_close = work.below(3) > 0;
    let mut writer = DmaStreamWriterBuilder::new(file)
        .with_buffer_size(1 << (10 + work.below(7)))
        .with_write_behind(1 + work.below(4) as usize)
        .with_sync_on_close_disabled(!syncs_on_close)
        .build();
    for _ in 0..1 + work.below(STREAM_STEPS) {
        let bytes = work.below(40_000) as usize;
        let content = bytes_at(name, writer.current_pos(), bytes);
        writer.write_all(&content).await?;
        let position = writer.current_pos();
        work.say("accepted", name, position);
        match work.below(8) {
            0 | 1 => {
                let safe = writer.sync().await?;
                work.say("durable", name, safe);
            }
            2 => {
                let safe = writer.sync_aligned().await?;
                work.say("durable", name, safe);
            }
            3 => {
                writer.flush().await?;
                work.say("written", name, position);
                if work.lies {
                    work.say("durable", name, position);
                }
            }
            4 => {
                let written = writer.flush_aligned().await?;
                work.say("written", name, written);
            }
            5 => give_up(writer.sync(), work.below(3)).await,
            6 => give_up(writer.flush(), work.below(3)).await,
            _ => work.say("written", name, writer.current_flushed_pos()),
        }
    }
    let end = writer.current_pos();
    match work.below(6) {
        // What was confirmed before stays.
        0 => drop(writer),
        1 => give_up(writer.close(), work.below(3)).await,
        _ => {
            writer.close().await?;
            work.say("closed", name, end);
            work.say("written", name, end);
            if syncs_on_close || work.lies {
                work.say("durable", name, end);
                work.say("durably-closed", name, end);
            }
        }
    }
    Ok(())
}

/// A `DmaFile` whose pages are written again and again.
async fn pages(work: Work) {
    let opened = async {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = options.dma_open(work.path("pages")).await?;
        work.name("pages").await?;
        Ok(Rc::new(file))
    };
    let file = match opened.await {
        Ok(file) => file,
        Err(error) => return work.failed("pages", &error),
    };
    // What was written and not synced. A write that was given up may happen later, so such a page
    // is not written again.
    let mut unsynced: Vec<(u64, u64)> = Vec::new();
    let mut frozen = vec![false; PAGES as usize];
    for version in 1..=PAGE_ROUNDS {
        let mut writes = Vec::new();
        for _ in 0..1 + work.below(6) {
            let page = work.below(PAGES);
            if std::mem::replace(&mut frozen[page as usize], true) {
                continue;
            }
            let mut buffer = file.alloc_dma_buffer(PAGE);
            buffer
                .as_bytes_mut()
                .copy_from_slice(&page_bytes(page, version));
            if work.below(200) == 0 {
                let polls = work.below(3);
                give_up(file.write_at(buffer, page * PAGE as u64), polls).await;
                continue;
            }
            let writer = Rc::clone(&file);
            let is_shared = work.below(2) == 0;
            let write = spawn_local(async move {
                if is_shared {
                    writer
                        .write_rc_at(Rc::new(buffer), page * PAGE as u64)
                        .await
                } else {
                    writer.write_at(buffer, page * PAGE as u64).await
                }
            });
            writes.push((page, write));
        }
        for (page, write) in writes {
            frozen[page as usize] = false;
            match write.await {
                Ok(PAGE) => {
                    work.say("written", &format!("page-{page}"), version);
                    unsynced.retain(|&(other, _)| other != page);
                    unsynced.push((page, version));
                }
                Ok(_) => {}
                Err(error) => {
                    unsynced.retain(|&(other, _)| other != page);
                    work.failed(&format!("page-{page}"), &error);
                }
            }
        }
        let synced = match work.below(3) {
            0 if work.lies => Ok(()),
            0 => file.fdatasync().await,
            1 if !work.lies => file.fsync().await,
            _ => continue,
        };
        match synced {
            Ok(()) => {
                for (page, version) in unsynced.drain(..) {
                    work.say("durable", &format!("page-{page}"), version);
                }
            }
            // It is not known what of it is there: it is to be written again.
            Err(error) => {
                unsynced.clear();
                work.failed("pages", &error);
            }
        }
    }
}

/// A `BufferedFile` that records are appended to.
async fn log(work: Work) {
    let opened = async {
        let file = BufferedFile::create(work.path("log")).await?;
        work.name("log").await?;
        Ok(file)
    };
    let file = match opened.await {
        Ok(file) => file,
        Err(error) => return work.failed("log", &error),
    };
    let (mut position, mut durable, mut failures) = (0, 0, 0);
    while position < LOG_BYTES && failures < 1000 {
        let step = async {
            for _ in 0..1 + work.below(5) {
                let record = bytes_at("log", position, 1 + work.below(9000) as usize);
                position += file.write_at(record, position).await? as u64;
                work.say("written", "log", position);
            }
            if !work.lies {
                file.fdatasync().await?;
            }
            durable = position;
            work.say("durable", "log", durable);
            Ok(())
        };
        if let Err(error) = step.await {
            // What was not confirmed is to be written again.
            position = durable;
            failures += 1;
            work.failed("log", &error);
        }
    }
}

/// A file that is replaced: written beside it, synced and renamed.
async fn manifests(work: Work) {
    for version in 1..=MANIFESTS {
        let replaced = async {
            let mut file = BufferedFile::create(work.path("manifest.new")).await?;
            let content = manifest_bytes(version);
            let len = content.len();
            let written = file.write_at(content, 0).await?;
            if !work.lies {
                file.fdatasync().await?;
            }
            if written == len {
                file.rename(work.path("manifest")).await?;
                work.say("written", "manifest", version);
            }
            file.close().await?;
            let folder = Directory::open(&work.folder).await?;
            folder.sync().await?;
            folder.close().await?;
            if written == len {
                work.say("durable", "manifest", version);
            }
            Ok(())
        };
        if let Err(error) = replaced.await {
            work.failed("manifest", &error);
        }
    }
}
