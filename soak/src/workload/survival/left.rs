//! What a service has stored in the end, held against what its clients were told.

use std::io;

use super::client::Told;
use super::pools;
use crate::check::checker::Checker;
use crate::check::invariants::{Count, Invariant};

/// What the service says in the end.
pub(super) struct Left {
    /// More than in the beginning.
    pub(super) descriptors: i64,
    /// What was found of pools that are replaced, with the first violation of each promise in words.
    pub(super) pools: Vec<(Invariant, Count, String)>,
    pub(super) stored: Vec<StoredOf>,
}

/// Numbers of one client.
#[derive(Debug)]
pub(super) struct StoredOf {
    pub(super) client: u32,
    pub(super) count: u64,
    /// After the greatest.
    pub(super) next: u64,
}

impl Left {
    pub(super) fn parse(told: &str) -> Option<Left> {
        let mut lines = told.lines();
        let descriptors = lines.next()?.parse().ok()?;
        let pools = lines.by_ref().take(pools::ROWS.len()).map(|line| {
            let mut fields = line.splitn(5, ' ');
            let mut number = || fields.next()?.parse::<u64>().ok();
            let promise = *Invariant::ALL.get(number()? as usize)?;
            let count = Count {
                checks: number()?,
                violations: number()?,
                worst: number()?,
            };
            Some((promise, count, fields.next()?.to_owned()))
        });
        let pools = pools.collect::<Option<_>>()?;
        let stored = lines.map(|line| {
            let mut numbers = line.split(' ').map(str::parse::<u64>);
            let mut number = || numbers.next()?.ok();
            Some(StoredOf {
                client: number()? as u32,
                count: number()?,
                next: number()?,
            })
        });
        Some(Left {
            descriptors,
            pools,
            stored: stored.collect::<Option<_>>()?,
        })
    }
}

/// Holds what the service says in the end against what its clients were told.
pub(super) fn judge(checker: &Checker, told: &[(u32, Told)], left: io::Result<Left>) {
    let left = match left {
        Ok(left) => left,
        Err(error) => {
            return checker.holds(Invariant::Confirmed, false, || {
                format!("the service did not end well: {error}")
            });
        }
    };
    checker.check(
        Invariant::Confirmed,
        left.descriptors.unsigned_abs(),
        || {
            format!(
                "the service has {} more descriptors than before",
                left.descriptors
            )
        },
    );
    for (promise, count, words) in left.pools {
        checker.stats.ledger.enter(promise, count, || words);
    }
    for &(id, told) in told {
        let stored = left.stored.iter().find(|stored| stored.client == id);
        let is_stored = stored.map_or(told.confirmed == 0, |stored| {
            stored.count == told.confirmed && stored.next == told.confirmed
        });
        checker.holds(Invariant::Confirmed, is_stored, || {
            format!("client {id} was told {told:?}, and there is {stored:?}")
        });
    }
    if checker.control.is_simulated() {
        // All connections break there with one death, and others of a network that is slow.
        return;
    }
    let deaths: u64 = told.iter().map(|(_, told)| told.deaths).sum();
    let broken: u64 = told.iter().map(|(_, told)| told.broken).sum();
    // A connection that takes the place of a broken one may be given to the same shard before that
    // has left.
    let excused = deaths * told.len() as u64 * 2;
    checker.check(Invariant::Confirmed, broken.saturating_sub(excused), || {
        format!("{broken} connections broke, and only {deaths} shards died")
    });
}
