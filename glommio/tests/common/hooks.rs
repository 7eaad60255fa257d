//! Wakers that run code of the test when they are woken and when they are gone.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};

type Hook = Rc<dyn Fn()>;

thread_local! {
    /// The hooks of this thread's wakers. A waker must be `Send`, what its hooks touch need not be.
    static HOOKS: RefCell<HashMap<u64, Hook>> = RefCell::default();
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// A waker that calls `on_wake` whenever it is woken.
pub fn on_wake(on_wake: impl Fn() + 'static) -> Waker {
    hooked(on_wake, || ())
}

/// A waker that calls `on_drop` when its last clone is gone, woken or not.
pub fn on_drop(on_drop: impl Fn() + 'static) -> Waker {
    hooked(|| (), on_drop)
}

/// A waker that calls `on_wake` whenever it is woken, and `on_drop` when its last clone is gone.
pub fn hooked(on_wake: impl Fn() + 'static, on_drop: impl Fn() + 'static) -> Waker {
    Waker::from(Arc::new(Hooked {
        on_wake: keep(Rc::new(on_wake)),
        on_drop: keep(Rc::new(on_drop)),
    }))
}

/// A waker that counts how often it was woken.
pub fn counting() -> (Waker, Rc<Cell<usize>>) {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    (on_wake(move || counted.update(|it| it + 1)), count)
}

struct Hooked {
    on_wake: u64,
    on_drop: u64,
}

impl Wake for Hooked {
    fn wake(self: Arc<Self>) {
        let hook = HOOKS.with_borrow(|hooks| hooks.get(&self.on_wake).cloned());
        hook.expect("woken on the thread that made the waker")();
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        // Out of reach while the thread ends.
        let hooks = HOOKS.try_with(|hooks| {
            let mut hooks = hooks.borrow_mut();
            (hooks.remove(&self.on_wake), hooks.remove(&self.on_drop))
        });
        if let Ok((on_wake, Some(on_drop))) = hooks {
            drop(on_wake);
            on_drop();
        }
    }
}

fn keep(hook: Hook) -> u64 {
    let id = NEXT.replace(NEXT.get() + 1);
    HOOKS.with_borrow_mut(|hooks| hooks.insert(id, hook));
    id
}
