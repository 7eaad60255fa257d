//! A replica: registers in memory, and a log of all that it has confirmed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::channels::local_channel::{self, LocalReceiver, LocalSender};
use glommio::channels::oneshot;
use glommio::io::{BufferedFile, Directory, OpenOptions, rename};
use glommio::net::{TcpListener, TcpStream};
use glommio::spawn_local;
use glommio::timer::sleep;

use crate::MILLISECOND;
use crate::client::{PORT, QUERY, REQUEST_BYTES};
use crate::entry::{Entry, RECORD_BYTES};
use crate::planted::{Defect, Planted};

type Entries = BTreeMap<u64, Entry>;

/// An entry to store, and whom to tell that it is on the device.
type Arrival = (Entry, oneshot::Sender<()>);

struct Replica {
    planted: Planted,
    entries: RefCell<Entries>,
    arrivals: LocalSender<Arrival>,
}

/// Runs until the process ends.
pub(crate) async fn run(planted: Planted) -> io::Result<()> {
    let (log, entries) = loop {
        match Log::recover(planted).await {
            Ok(recovered) => break recovered,
            Err(_) => sleep(10 * MILLISECOND).await,
        }
    };
    let (arrivals, arrived) = local_channel::new_unbounded();
    let replica = Rc::new(Replica {
        planted,
        entries: RefCell::new(entries),
        arrivals,
    });
    spawn_local(write_groups(Rc::clone(&replica), log, arrived)).detach();
    let listener = TcpListener::bind(("0.0.0.0", PORT))?;
    loop {
        let Ok(stream) = listener.accept().await else {
            // Out of descriptors, most likely.
            sleep(50 * MILLISECOND).await;
            continue;
        };
        let serving = serve(stream, Rc::clone(&replica));
        match planted.is(Defect::OneAtATime) {
            true => drop(serving.await),
            false => drop(spawn_local(serving).detach()),
        }
    }
}

async fn serve(mut stream: TcpStream, replica: Rc<Replica>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut request = [0; REQUEST_BYTES];
        if replica.planted.is(Defect::PartialRead) {
            if stream.read(&mut request).await? == 0 {
                return Ok(());
            }
        } else {
            stream.read_exact(&mut request).await?;
        }
        let entry = Entry::from_bytes(&request[1..]);
        let answer = match request[0] {
            QUERY => {
                let entries = replica.entries.borrow();
                let found = entries.get(&entry.key()).copied();
                found.unwrap_or(Entry::none(entry.key()))
            }
            _ => {
                let (sender, stored) = oneshot::oneshot();
                let gone = io::ErrorKind::ConnectionAborted;
                let sent = replica.arrivals.try_send((entry, sender));
                sent.map_err(|_| gone)?;
                stored.await.map_err(|_| gone)?;
                entry
            }
        };
        stream.write_all(&answer.to_bytes()).await?;
    }
}

/// Writes a group, tells its clients, and goes on with what has come meanwhile.
async fn write_groups(replica: Rc<Replica>, mut log: Log, arrived: LocalReceiver<Arrival>) {
    let planted = replica.planted;
    let mut group = Vec::new();
    let most = if glommio::buggify!() { 1 } else { 1024 };
    while arrived.recv_many(&mut group, most).await > 0 {
        let before = replica.entries.borrow().clone();
        for (entry, _) in &group {
            take(
                &mut replica.entries.borrow_mut(),
                *entry,
                planted.is(Defect::TakesOlder),
            );
        }
        let records = group
            .iter()
            .flat_map(|(entry, _)| entry.to_record())
            .collect();
        if planted.is(Defect::EarlyAnswer) {
            tell(&mut group);
        }
        let appended = log.append(records).await;
        glommio::sometimes!(appended.is_err(), "an append has failed");
        if appended.is_err() || log.position > LARGEST_LOG {
            // After an error it is unknown what the device has.
            let is_lacking = planted.is(Defect::LostInNewLog) && appended.is_ok();
            let entries = match is_lacking {
                true => before,
                false => replica.entries.borrow().clone(),
            };
            log = loop {
                match Log::begin(planted, &entries).await {
                    Ok(log) => break log,
                    Err(_) => sleep(10 * MILLISECOND).await,
                }
            };
        }
        tell(&mut group);
    }
}

fn tell(group: &mut Vec<Arrival>) {
    for (_, client) in group.drain(..) {
        // A client that has left is not told.
        let _ = client.send(());
    }
}

/// Takes an entry if it is newer than what is there.
fn take(entries: &mut Entries, entry: Entry, takes_older: bool) {
    let known = entries.entry(entry.key()).or_insert(entry);
    if takes_older || known.version() < entry.version() {
        *known = entry;
    }
}

struct Log {
    planted: Planted,
    file: BufferedFile,
    /// Where the next record goes.
    position: u64,
}

impl Log {
    /// What the log of the last start has, in a new log. What is not whole at its end was never confirmed.
    async fn recover(planted: Planted) -> glommio::Result<(Self, Entries), ()> {
        let mut options = OpenOptions::new();
        let options = options.create(true).read(true).write(true);
        let file = options.buffered_open(LOG).await?;
        let mut bytes = Vec::new();
        loop {
            let position = bytes.len() as u64;
            let part = file.read_at(position, 1 << 20).await?;
            if part.is_empty() {
                break;
            }
            bytes.extend_from_slice(&part);
        }
        let records = bytes.chunks_exact(RECORD_BYTES).map(Entry::from_record);
        let is_whole = |(_, is_whole): &(Entry, bool)| *is_whole || planted.is(Defect::NoChecksum);
        let mut entries = Entries::new();
        let mut whole = 0;
        for (entry, _) in records.take_while(is_whole) {
            take(&mut entries, entry, planted.is(Defect::LastRecordCounts));
            whole += RECORD_BYTES;
        }
        glommio::sometimes!(whole < bytes.len(), "a record is not whole");
        if planted.is(Defect::TailKept) && !bytes.is_empty() {
            let position = bytes.len() as u64;
            let log = Log {
                planted,
                file,
                position,
            };
            return Ok((log, entries));
        }
        file.close().await?;
        Ok((Log::begin(planted, &entries).await?, entries))
    }

    /// A new log, which takes the place of the one before as a whole, or not.
    async fn begin(planted: Planted, entries: &Entries) -> glommio::Result<Self, ()> {
        let mut log = Log {
            planted,
            file: BufferedFile::create(NEW_LOG).await?,
            position: 0,
        };
        if planted.is(Defect::RenamedEarly) {
            rename(NEW_LOG, LOG).await?;
        }
        let records = entries.values().flat_map(|entry| entry.to_record());
        log.append(records.collect()).await?;
        if !planted.is(Defect::RenamedEarly) {
            rename(NEW_LOG, LOG).await?;
        }
        if !planted.is(Defect::NoDirectorySync) {
            let directory = Directory::open("/").await?;
            directory.sync().await?;
            directory.close().await?;
        }
        Ok(log)
    }

    /// Writes records, which are on the device if there is no error.
    async fn append(&mut self, records: Vec<u8>) -> glommio::Result<(), ()> {
        let count = records.len() as u64;
        if self.planted.is(Defect::ShortWrite) {
            self.file.write_at(records, self.position).await?;
        } else {
            self.file.write_all_at(records, self.position).await?;
        }
        self.position += count;
        if self.planted.is(Defect::SyncedAgain) {
            while self.file.fdatasync().await.is_err() {}
        } else if !self.planted.is(Defect::NoSync) {
            self.file.fdatasync().await?;
        }
        Ok(())
    }
}

const LOG: &str = "/log";
const NEW_LOG: &str = "/log.new";

/// One that is larger is begun anew.
const LARGEST_LOG: u64 = 20 * RECORD_BYTES as u64;
