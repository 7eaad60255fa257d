//! Writing: the memtable, and the jobs that turn sealed memtables into segments and segments into
//! fewer ones.

mod compact;
mod flush;
mod job;
mod lane;
mod late;
mod memtable;
mod order;
mod output;
mod survey;
mod window;

pub(crate) use compact::{Urgency, pick, rewrite};
pub(crate) use flush::flush_job;
pub(crate) use job::{Job, Target};
pub(crate) use memtable::Memtable;
pub(crate) use order::order_near;
pub(crate) use survey::{Goal, Survey};
pub(crate) use window::Windows;
