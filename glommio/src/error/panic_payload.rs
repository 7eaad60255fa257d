//! What a panicking thread leaves behind, in a form that errors can share.

use std::any::Any;
use std::borrow::Cow;
use std::panic;
use std::sync::Mutex;

/// What a thread panicked with.
///
/// A panic carries a `Box<dyn Any + Send>`, which may not be *looked at* from two
/// threads. So that errors can be shared, this type gives the box out by value or
/// by `&mut` only, and keeps the panic message apart, readable through `&self`.
///
/// # Examples
///
/// ```
/// use glommio::PanicPayload;
///
/// let payload = PanicPayload::from(std::panic::catch_unwind(|| panic!("boom")).unwrap_err());
/// assert_eq!(payload.message(), Some("boom"));
///
/// let again = std::panic::catch_unwind(|| payload.resume_unwind());
/// assert_eq!(again.unwrap_err().downcast_ref::<&str>(), Some(&"boom"));
/// ```
pub struct PanicPayload {
    message: Option<Cow<'static, str>>,
    // Never locked: it is here because a `Mutex` is `Sync` whatever it holds, as
    // long as that is `Send`, and `into_inner` and `get_mut` need no lock.
    payload: Mutex<Box<dyn Any + Send>>,
}

impl PanicPayload {
    /// The panic message, if the payload is a `&str` or a `String`; what
    /// `panic!` with a format string makes is always one of them.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The payload as [`std::thread::JoinHandle::join`] gives it.
    pub fn into_inner(self) -> Box<dyn Any + Send> {
        self.payload
            .into_inner()
            .expect("a mutex that is never locked is never poisoned")
    }

    /// The payload, to be looked at or changed in place.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::PanicPayload;
    ///
    /// let mut payload = PanicPayload::from(Box::new(7) as Box<dyn std::any::Any + Send>);
    /// assert_eq!(payload.message(), None);
    /// *payload.payload_mut().downcast_mut::<i32>().unwrap() += 1;
    /// assert_eq!(*payload.into_inner().downcast::<i32>().unwrap(), 8);
    /// ```
    pub fn payload_mut(&mut self) -> &mut (dyn Any + Send) {
        self.payload
            .get_mut()
            .expect("a mutex that is never locked is never poisoned")
            .as_mut()
    }

    /// Goes on panicking in this thread, without calling the panic hook again.
    pub fn resume_unwind(self) -> ! {
        panic::resume_unwind(self.into_inner())
    }
}

impl From<Box<dyn Any + Send>> for PanicPayload {
    fn from(payload: Box<dyn Any + Send>) -> Self {
        let message = match payload.downcast_ref::<&'static str>() {
            Some(message) => Some(Cow::Borrowed(*message)),
            None => payload
                .downcast_ref::<String>()
                .map(|message| Cow::Owned(message.clone())),
        };
        PanicPayload {
            message,
            payload: Mutex::new(payload),
        }
    }
}

impl_debug! { PanicPayload, it: message; .. }
