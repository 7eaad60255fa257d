//! Defects that the simulation is to find.

/// At most one defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planted(Option<Defect>);

macro_rules! defects {
    ($($(#[doc = $what:literal])* $defect:ident = $name:literal,)*) => {
        /// What may be wrong with the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Defect {
            $($(#[doc = $what])* $defect,)*
        }

        const NAMES: &[(Defect, &str)] = &[$((Defect::$defect, $name),)*];
    };
}

defects! {
    /// Entries are confirmed that were never synced.
    NoSync = "no_sync",
    /// Entries are confirmed before their sync is over.
    EarlyAnswer = "early_answer",
    /// The directory is not synced, so the name of a new log may be lost.
    NoDirectorySync = "no_directory_sync",
    /// A new log takes the place of the old one before it is synced.
    RenamedEarly = "renamed_early",
    /// Records of the log have no checksum.
    NoChecksum = "no_checksum",
    /// Records follow on one that is not whole.
    TailKept = "tail_kept",
    /// Of the records of a register the last one counts, not the newest.
    LastRecordCounts = "last_record_counts",
    /// A sync that has failed is tried again, and then believed.
    SyncedAgain = "synced_again",
    /// A write of a part is taken for one of all.
    ShortWrite = "short_write",
    /// A new log lacks what the old one got last.
    LostInNewLog = "lost_in_new_log",
    /// A request comes with one read.
    PartialRead = "partial_read",
    /// An answer comes with one read.
    PartialAnswer = "partial_answer",
    /// A connection with an answer under way is used again.
    ConnectionUsedAgain = "connection_used_again",
    /// A replica that answers twice is two replicas.
    CountedTwice = "counted_twice",
    /// One replica is a majority.
    OneIsAMajority = "one_is_a_majority",
    /// A read does not store what it has found.
    NoWriteBack = "no_write_back",
    /// Two clients may give the same version to two values.
    SameVersion = "same_version",
    /// A write does not ask for the newest version.
    NoQuery = "no_query",
    /// A replica takes what is older than what it has.
    TakesOlder = "takes_older",
    /// A replica serves one connection, to its end, before the next one.
    OneAtATime = "one_at_a_time",
}

impl Planted {
    pub(crate) const NOTHING: Planted = Planted(None);

    pub(crate) fn all() -> impl Iterator<Item = Planted> {
        NAMES.iter().map(|(defect, _)| Planted(Some(*defect)))
    }

    pub(crate) fn named(name: &str) -> Option<Planted> {
        Self::all().find(|it| it.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(defect, _)| self.is(*defect));
        found.map_or("nothing", |(_, name)| name)
    }

    pub(crate) fn is(self, defect: Defect) -> bool {
        self.0 == Some(defect)
    }
}
