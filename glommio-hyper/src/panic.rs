//! Panics of handlers, which end where they are contained.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Calls `f`. The error must not be dropped: see [`report`].
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// Writes what `payload` says to the log, and drops it.
#[cold]
pub(crate) fn report(payload: Payload) {
    // A subscriber may panic, too, and there is no log left to say so.
    let logged = catch(|| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("(not a text)");
        tracing::error!(
            panic = text,
            "a handler has panicked; its connection is closed"
        );
    });
    if let Err(payload) = logged {
        discard(payload);
    }
    discard(payload);
}

/// Drops what a panic carried. If its destructor panics, what that one carried, and so on; if that
/// does not end soon, the last of them is leaked.
fn discard(mut payload: Payload) {
    const LONGEST_CHAIN: usize = 8;
    for _ in 0..LONGEST_CHAIN {
        match catch(|| drop(payload)) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    mem::forget(payload);
}
