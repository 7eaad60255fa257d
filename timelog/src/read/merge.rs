//! Sources merged into one order, from both ends.

use super::Cursor;
use crate::Ts;
use crate::column::Span;

/// Visible rows of several sources in order, as slices. An older source comes first among equal timestamps.
///
/// The least source gives all rows up to the first of the runner-up at once, found by galloping: sources that do not
/// overlap cost one comparison a page. The order of sources is searched linearly, since there are few.
#[derive(Debug)]
pub(crate) struct Merge<'s, V> {
    /// By age, the oldest first; an exhausted one is removed.
    sources: Vec<Source<'s, V>>,
    /// The first timestamp of each source, once the front was asked for.
    heads: Option<Vec<Ts>>,
    /// The last timestamp of each source, once the back was asked for.
    tails: Option<Vec<Ts>>,
}

/// A source and the number that its owner knows it by.
#[derive(Debug)]
pub(crate) struct Source<'s, V> {
    pub number: usize,
    pub cursor: Cursor<'s, V>,
}

impl<V> Clone for Source<'_, V> {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            cursor: self.cursor.clone(),
        }
    }
}

impl<V> Clone for Merge<'_, V> {
    fn clone(&self) -> Self {
        Self {
            sources: self.sources.clone(),
            heads: self.heads.clone(),
            tails: self.tails.clone(),
        }
    }
}

impl<'s, V> Merge<'s, V> {
    /// Takes sources by age, the oldest first.
    pub fn new(cursors: Vec<Cursor<'s, V>>) -> Self {
        let sources = cursors
            .into_iter()
            .enumerate()
            .map(|(number, cursor)| Source { number, cursor });
        Self {
            sources: sources.collect(),
            heads: None,
            tails: None,
        }
    }

    pub fn sources(&self) -> &[Source<'s, V>] {
        &self.sources
    }

    /// The rows that are left.
    pub fn remaining(&self) -> usize {
        self.sources
            .iter()
            .map(|source| source.cursor.remaining())
            .sum()
    }

    pub fn take_front(&mut self) -> Option<Span<'s, V>> {
        let (index, rows) = self.least()?;
        Some(self.take(index, rows))
    }

    /// The source that is next, and how many of its rows come before all others: one or more, in one page.
    pub fn least(&mut self) -> Option<(usize, usize)> {
        if self.heads.is_none() {
            self.find_heads();
        }
        let heads = self.heads.as_ref().expect("found above");
        let mut least = 0;
        let mut runner_up = None;
        for (index, head) in heads.iter().enumerate().skip(1) {
            if *head < heads[least] {
                runner_up = Some(least);
                least = index;
            } else if runner_up.is_none_or(|other: usize| *head < heads[other]) {
                runner_up = Some(index);
            }
        }
        let front = self.sources.get_mut(least)?.cursor.front();
        let rows = match runner_up {
            None => front.len(),
            Some(other) if least < other => gallop(front.timestamps(), |ts| ts <= heads[other]),
            Some(other) => gallop(front.timestamps(), |ts| ts < heads[other]),
        };
        Some((least, rows))
    }

    /// Takes rows that `least` gave.
    pub fn take(&mut self, index: usize, rows: usize) -> Span<'s, V> {
        let cursor = &mut self.sources[index].cursor;
        let taken = cursor.take_front(rows);
        let front = cursor.front();
        if front.is_empty() {
            self.remove(index);
        } else if let Some(heads) = &mut self.heads {
            heads[index] = front.first();
        }
        taken
    }

    /// The next rows of the source whose first timestamp is least, whether or not others overlap them.
    pub fn take_whole(&mut self) -> Option<Span<'s, V>> {
        let (index, _) = self.least()?;
        let rows = self.sources[index].cursor.front().len();
        Some(self.take(index, rows))
    }

    pub fn take_back(&mut self) -> Option<Span<'s, V>> {
        if self.tails.is_none() {
            self.find_tails();
        }
        let tails = self.tails.as_ref().expect("found above");
        let mut greatest = 0;
        let mut runner_up = None;
        for (index, tail) in tails.iter().enumerate().skip(1) {
            if *tail >= tails[greatest] {
                runner_up = Some(greatest);
                greatest = index;
            } else if runner_up.is_none_or(|other: usize| *tail >= tails[other]) {
                runner_up = Some(index);
            }
        }
        let cursor = &mut self.sources.get_mut(greatest)?.cursor;
        let back = cursor.back();
        let rows = match runner_up {
            None => back.len(),
            Some(other) if greatest > other => {
                gallop_back(back.timestamps(), |ts| ts >= tails[other])
            }
            Some(other) => gallop_back(back.timestamps(), |ts| ts > tails[other]),
        };
        let taken = cursor.take_back(rows);
        let back = cursor.back();
        if back.is_empty() {
            self.remove(greatest);
        } else if let Some(tails) = &mut self.tails {
            tails[greatest] = back.last();
        }
        Some(taken)
    }

    fn find_heads(&mut self) {
        self.drop_exhausted();
        self.heads = Some(
            self.sources
                .iter_mut()
                .map(|source| source.cursor.front().first())
                .collect(),
        );
    }

    fn find_tails(&mut self) {
        self.drop_exhausted();
        self.tails = Some(
            self.sources
                .iter_mut()
                .map(|source| source.cursor.back().last())
                .collect(),
        );
    }

    /// Removes sources of which all rows are hidden, before either end was asked for.
    fn drop_exhausted(&mut self) {
        if self.heads.is_none() && self.tails.is_none() {
            self.sources
                .retain_mut(|source| !source.cursor.front().is_empty());
        }
    }

    fn remove(&mut self, index: usize) {
        self.sources.remove(index);
        if let Some(heads) = &mut self.heads {
            heads.remove(index);
        }
        if let Some(tails) = &mut self.tails {
            tails.remove(index);
        }
    }
}

/// How many of the first timestamps hold, by doubling steps and then binary search.
fn gallop(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    let mut step = 1;
    while step < ts.len() && holds(ts[step]) {
        step *= 2;
    }
    let known = step / 2;
    known + ts[known..ts.len().min(step)].partition_point(|ts| holds(*ts))
}

/// How many of the last timestamps hold.
fn gallop_back(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    let mut step = 1;
    while step < ts.len() && holds(ts[ts.len() - 1 - step]) {
        step *= 2;
    }
    let (end, start) = (ts.len() - step / 2, ts.len().saturating_sub(step));
    ts.len() - (start + ts[start..end].partition_point(|ts| !holds(*ts)))
}
