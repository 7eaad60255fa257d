//! Reading: sources cut by deletes, merged from both ends.
//!
//! ```text
//!   Rows, Spans ── Merge ── Cursor per source ── Run: segments in time order
//!                                        └── Skyline: the rows that deletes hide
//! ```
//!
//! A source gives visible stretches of pages as slices; deletes are found by binary search in each
//! page, not row by row. Sources are kept by age, the oldest first, and of equal timestamps the
//! older source's come first: that is the order of arrival.

mod cursor;
mod fold;
mod merge;
mod rows;
mod run;
mod spans;

pub(crate) use cursor::Cursor;
pub use fold::{Bucket, Buckets, Every, Number};
pub(crate) use merge::Merge;
pub use rows::Rows;
pub(crate) use run::{Place, Run};
pub use spans::Spans;
