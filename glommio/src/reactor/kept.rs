//! What higher modules keep once for each executor.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use super::Reactor;

/// One value for each type that was asked for: a handful.
#[derive(Default)]
pub(super) struct Kept(RefCell<Vec<Rc<dyn Any>>>);

impl Reactor {
    /// The `T` of this executor, made when it is first asked for.
    pub(crate) fn kept<T: Default + 'static>(&self) -> Rc<T> {
        let found = self
            .kept
            .0
            .borrow()
            .iter()
            .find_map(|it| Rc::clone(it).downcast().ok());
        found.unwrap_or_else(|| {
            let made = Rc::<T>::default();
            self.kept.0.borrow_mut().push(made.clone());
            made
        })
    }
}
