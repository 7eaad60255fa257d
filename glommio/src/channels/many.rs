//! What looking without waiting, and receiving several values at a time, is to all queues.

#![forbid(unsafe_code)]

use std::future::Future;
use std::iter::from_fn;

use crate::error::{GlommioError, ResourceType};
use crate::executor::consume_budget;

/// Why a look has found no value.
#[cold]
pub(super) fn nothing_there(is_over: bool) -> GlommioError<()> {
    let channel = ResourceType::Channel(());
    if is_over {
        GlommioError::Closed(channel)
    } else {
        GlommioError::WouldBlock(channel)
    }
}

/// Appends what `first` gives to `buffer`, and then what is `taken` at once, but no more than `limit`.
/// Returns how many. After `first` nothing is awaited, so that nothing can be lost.
pub(super) async fn take_many<T>(
    buffer: &mut Vec<T>,
    limit: usize,
    first: impl Future<Output = Option<T>>,
    taken: impl FnMut() -> Option<T>,
) -> usize {
    let before = buffer.len();
    if limit == 0 {
        consume_budget().await;
    } else if let Some(first) = first.await {
        buffer.push(first);
        buffer.extend(from_fn(taken).take(limit - 1));
    }
    buffer.len() - before
}
