//! How many shards a directory has: the file `SHARDS`, which is written once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use glommio::executor;

use super::super::error::Error;

const NAME: &str = "SHARDS";
const VERSION: &str = "1";

/// The directory of a shard.
pub(super) fn directory(shard: usize) -> String {
    format!("shard-{shard}")
}

/// Stores the number of shards, unless there is one that is the same. All shards do so, at any times.
pub(super) async fn agree(path: &Path, shard: usize, shards: usize) -> Result<(), Error> {
    let path = path.to_owned();
    let agreed = executor().spawn_blocking(move || agree_now(&path, shard, shards));
    agreed.await
}

fn agree_now(path: &Path, shard: usize, shards: usize) -> Result<(), Error> {
    let name = path.join(NAME);
    let mut stored = read(&name)?;
    if stored.is_none() {
        let has_shard = has_shard(path).map_err(Error::io("list", path))?;
        // It is written before the first shard is: if it is not there by now, it is lost.
        stored = read(&name)?;
        if stored.is_none() && has_shard {
            let what = "it is missing, and there are directories of shards";
            return Err(Error::corrupt(&name, 0, what));
        }
    }
    if stored.is_none() {
        let new = path.join(format!("{NAME}.{shard}"));
        write(&new, shards).map_err(Error::io("create", &new))?;
        // With what is in it, or not at all; another shard may be first.
        let linked = match fs::hard_link(&new, &name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        };
        linked.map_err(Error::io("create", &name))?;
        fs::remove_file(&new).map_err(Error::io("remove", &new))?;
        stored = read(&name)?;
    }
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(Error::io("sync", path))?;
    let stored = stored.unwrap_or_default();
    let words: Vec<_> = stored.split_ascii_whitespace().collect();
    let format = |what| {
        let path = name.clone();
        Err(Error::Format { path, what })
    };
    match words[..] {
        ["format", VERSION, "shards", found] if found == shards.to_string() => Ok(()),
        ["format", VERSION, "shards", found] if found.parse::<usize>().is_ok() => {
            format(format!("the log has {found} shards, not {shards}"))
        }
        ["format", version, ..] if version != VERSION => format(format!(
            "its format has version {version}, this program reads {VERSION}"
        )),
        _ => Err(Error::corrupt(&name, 0, "it is no number of shards")),
    }
}

fn read(name: &PathBuf) -> Result<Option<String>, Error> {
    match fs::read(name) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", name)(error)),
    }
}

fn write(new: &Path, shards: usize) -> io::Result<()> {
    // What a process that was killed has left.
    match fs::remove_file(new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(new)?;
    write!(file, "format {VERSION}\nshards {shards}\n")?;
    file.sync_all()
}

fn has_shard(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name().to_string_lossy().starts_with("shard-") {
            return Ok(true);
        }
    }
    Ok(false)
}
