//! Which logs are the shards: the manifest of the directory that they share.

use std::path::Path;

use super::super::disk::Folder;
use super::super::error::Error;
use super::super::format::{MANIFEST, is_of_log};
use super::super::manifest::{Kind, Manifest};
use crate::{Record, TimeUnit};

/// The directory of a shard.
pub(in crate::durable) fn directory(shard: usize) -> String {
    format!("shard-{shard}")
}

/// The directory while the shards are opened, by the first of them alone.
pub(super) struct Group {
    folder: Folder,
    manifest: Manifest,
}

impl Group {
    /// Opens the directory of so many shards, or makes it one.
    pub async fn open<V: Record>(
        path: &Path,
        shards: usize,
        unit: TimeUnit,
    ) -> Result<Self, Error> {
        let folder = Folder::open(path).await?;
        let name = path.join(MANIFEST);
        let manifest = match Manifest::read(&folder).await? {
            Some(manifest) => manifest,
            None => {
                let names = folder.names().await?;
                if names.iter().any(|it| is_of_log(it)) {
                    let what = "it is missing, and there was a log";
                    return Err(Error::corrupt(&name, 0, what));
                }
                Self::write::<V>(&folder, unit, vec![0; shards]).await?
            }
        };
        manifest.check::<V>(unit, path)?;
        let found = manifest.shards.len();
        if found != shards {
            let what = match found {
                0 => "it is a log without shards".to_owned(),
                _ => format!("the log has {found} shards, not {shards}"),
            };
            return Err(Error::Format { path: name, what });
        }
        Ok(Self { folder, manifest })
    }

    /// Writes the manifest of shards that were copied to its directories: without it they are no log.
    pub async fn write<V: Record>(
        folder: &Folder,
        unit: TimeUnit,
        identities: Vec<u64>,
    ) -> Result<Manifest, Error> {
        let mut manifest = Manifest::new(Kind::of::<V>(unit));
        manifest.shards = identities;
        manifest.write(folder).await?;
        Ok(manifest)
    }

    /// The identities of the shards, 0 of those that are to be made.
    pub fn identities(&self) -> Vec<u64> {
        self.manifest.shards.clone()
    }

    /// Writes down the shards, if all were opened: from then on none of them may be missing.
    pub async fn close(mut self, identities: Option<Vec<u64>>) -> Result<(), Error> {
        let mut written = Ok(());
        if let Some(new) = identities.filter(|it| *it != self.manifest.shards) {
            self.manifest.shards = new;
            self.manifest.edition += 1;
            written = self.manifest.write(&self.folder).await;
        }
        self.folder.unlock().await?;
        written
    }
}
