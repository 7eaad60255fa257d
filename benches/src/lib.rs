//! The runner of the benches: rounds in turn, ratios, tables, ranges, diagrams.
//!
//! ```text
//!   rows ─────┐
//!             ├──▶ rounds ──▶ docs/figures/<bench>.csv ──▶ tables and diagrams of the page
//!   columns ──┘
//! ```
//!
//! A bench is its [rows](row), and [columns](bench::Column) of which each has the cases that yield them. Each round runs
//! every case in every column, one column after the other, and the columns change places from round to round, so that
//! a disturbance of the machine hits all of them alike. What counts are ratios within the rounds.

pub mod about;
pub mod bench;
pub mod figures;
pub mod peers;
pub mod process;
pub mod report;
pub mod row;
