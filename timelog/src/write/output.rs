//! Pages and segments in the making.

use std::sync::Arc;

use super::Windows;
use crate::column::{Columns, Span};
use crate::config::Limits;
use crate::segment::{Directory, Segment};
use crate::{Seq, Ts};

/// Where segments of an output are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Never: one segment.
    Never,
    /// At `segment_rows`, and at windows once a segment has a quarter of a memtable.
    Windows(Windows),
}

/// Takes rows in order and makes segments of them.
#[derive(Debug)]
pub(super) struct Output<V> {
    cut: Cut,
    watermark: Seq,
    segments: Vec<Arc<Segment<V>>>,
    /// Full pages of the current one.
    pages: Directory<V>,
    page: Columns<V>,
    /// In the current segment.
    rows: usize,
    /// The last timestamp of the window that the current segment ends in.
    window_last: Ts,
}

impl<V: Clone> Output<V> {
    pub fn new(cut: Cut, watermark: Seq) -> Self {
        Self {
            cut,
            watermark,
            segments: Vec::new(),
            pages: Directory::new(),
            page: Columns::new(),
            rows: 0,
            window_last: Ts::MAX,
        }
    }

    /// Takes rows of one page, and the page if they are all of it.
    pub fn push(
        &mut self,
        mut span: Span<'_, V>,
        whole: Option<&Arc<Columns<V>>>,
        limits: &Limits,
    ) {
        if let Some(page) = whole
            && self.has_room(span, limits)
            && (page.len() * 2 >= limits.page_rows && page.len() <= limits.page_rows)
            && (self.page.is_empty() || self.page.len() * 2 >= limits.page_rows)
        {
            // Shared instead of copied.
            self.close_page();
            self.pages.push(Arc::clone(page));
            self.took(span);
            return;
        }
        while !span.is_empty() {
            let room = self.room(span, limits);
            if room == 0 {
                self.close_segment();
                continue;
            }
            let (taken, rest) = span.split_at(room.min(limits.page_rows - self.page.len()));
            if self.page.is_empty() {
                self.page = Columns::with_capacity(limits.page_rows);
            }
            self.page.push_span(taken);
            self.took(taken);
            if self.page.len() == limits.page_rows {
                self.close_page();
            }
            span = rest;
        }
    }

    fn took(&mut self, span: Span<'_, V>) {
        self.rows += span.len();
        if let Cut::Windows(windows) = self.cut
            && (self.rows == span.len() || span.last() > self.window_last)
        {
            self.window_last = windows.last(span.last());
        }
    }

    fn has_room(&self, span: Span<'_, V>, limits: &Limits) -> bool {
        self.room(span, limits) == span.len()
    }

    /// How many rows of the span may go into the current segment.
    fn room(&self, span: Span<'_, V>, limits: &Limits) -> usize {
        let Cut::Windows(_) = self.cut else {
            return span.len();
        };
        let room = span.len().min(limits.segment_rows - self.rows);
        if self.rows == 0 || self.rows < limits.memtable_rows / 4 || span.last() <= self.window_last
        {
            return room;
        }
        room.min(
            span.timestamps()
                .partition_point(|ts| *ts <= self.window_last),
        )
    }

    fn close_page(&mut self) {
        if !self.page.is_empty() {
            let mut page = std::mem::replace(&mut self.page, Columns::new());
            page.trim();
            self.pages.push(Arc::new(page));
        }
    }

    fn close_segment(&mut self) {
        self.close_page();
        if !self.pages.is_empty() {
            let pages = std::mem::replace(&mut self.pages, Directory::new());
            let segment = Segment::new(pages, self.watermark);
            self.segments.push(Arc::new(segment));
        }
        self.rows = 0;
    }

    /// The segments, in time order.
    pub fn finish(mut self) -> Vec<Arc<Segment<V>>> {
        self.close_segment();
        self.segments
    }
}
