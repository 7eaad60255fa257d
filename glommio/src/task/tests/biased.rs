//! The count of [`Biased`]: the value goes once, with whoever is last.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use crate::task::{Biased, BiasedRef, Local};

thread_local! {
    /// Whether an owner's end is alive on this thread.
    static IS_OWNER: Cell<bool> = const { Cell::new(false) };
}

struct Value(Arc<AtomicUsize>);

impl Local for Value {
    fn is_local(&self) -> bool {
        IS_OWNER.get()
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// An owner's end on this thread, and how often its value was dropped.
fn biased() -> (Biased<Value>, Arc<AtomicUsize>) {
    let drops = Arc::new(AtomicUsize::new(0));
    IS_OWNER.set(true);
    (Biased::new(Value(Arc::clone(&drops))), drops)
}

fn end(owner: Biased<Value>) {
    IS_OWNER.set(false);
    drop(owner);
}

#[test]
fn the_owner_may_be_last() {
    let (owner, drops) = biased();
    let references: Vec<_> = (0..3).map(|_| owner.refer()).collect();
    assert!(references.iter().all(|it| std::ptr::eq(&**it, &*owner)));
    drop(references);
    assert_eq!(drops.load(SeqCst), 0, "the owner's end keeps the value");
    end(owner);
    assert_eq!(drops.load(SeqCst), 1);
}

#[test]
fn a_reference_may_be_last() {
    let (owner, drops) = biased();
    let mut references: Vec<_> = (0..3).map(|_| owner.refer()).collect();
    references.pop();
    end(owner);
    assert_eq!(drops.load(SeqCst), 0, "two references keep the value");
    references.pop();
    assert_eq!(drops.load(SeqCst), 0, "one reference keeps the value");
    references.pop();
    assert_eq!(drops.load(SeqCst), 1);
}

#[test]
fn references_may_be_given_up_anywhere() {
    let (owner, drops) = biased();
    let elsewhere = |reference: BiasedRef<Value>| {
        thread::spawn(move || drop(reference))
            .join()
            .expect("dropping does not panic");
    };
    elsewhere(owner.refer());
    let (late, later) = (owner.refer(), owner.refer());
    drop(owner.refer());
    elsewhere(late);
    assert_eq!(drops.load(SeqCst), 0);
    end(owner);
    assert_eq!(drops.load(SeqCst), 0, "one reference keeps the value");
    elsewhere(later);
    assert_eq!(drops.load(SeqCst), 1);
}

/// The owner's thread has a reference, but its end is not what is current there.
#[test]
fn the_owners_thread_may_count_like_any_other() {
    let (owner, drops) = biased();
    let reference = owner.refer();
    IS_OWNER.set(false);
    drop(reference);
    IS_OWNER.set(true);
    drop(owner.refer());
    assert_eq!(drops.load(SeqCst), 0);
    end(owner);
    assert_eq!(drops.load(SeqCst), 1);
}
