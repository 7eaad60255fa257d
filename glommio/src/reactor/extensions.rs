//! What higher modules keep once for each executor.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// One value for each type that was asked for: a handful.
#[derive(Default)]
pub(super) struct Extensions(RefCell<Vec<Rc<dyn Any>>>);

impl Extensions {
    /// The `T` of this executor, made when it is first asked for.
    pub(super) fn get<T: Default + 'static>(&self) -> Rc<T> {
        let found = (self.0.borrow().iter()).find_map(|it| Rc::clone(it).downcast().ok());
        found.unwrap_or_else(|| {
            let made = Rc::<T>::default();
            self.0.borrow_mut().push(made.clone());
            made
        })
    }
}
