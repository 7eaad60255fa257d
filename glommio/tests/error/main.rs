//! The error types as users see them: conversions, texts, auto traits.

use std::any::Any;
use std::error::Error;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use std::{io, panic, thread};

use glommio::{
    BuilderErrorKind, ExecutorErrorKind, GlommioError, PanicPayload, QueueErrorKind,
    ReactorErrorKind, ResourceType,
};

mod table;
mod texts;

mod auto_traits {
    use super::*;

    fn is_shareable<T: Send + Sync + 'static>() {}

    #[test]
    fn errors_go_where_ecosystem_errors_go() {
        is_shareable::<GlommioError<()>>();
        is_shareable::<GlommioError<String>>();
        is_shareable::<BuilderErrorKind>();
        is_shareable::<PanicPayload>();

        let boxed: Box<dyn Error + Send + Sync> = GlommioError::<()>::IoError(errno(1)).into();
        assert!(boxed.downcast_ref::<GlommioError<()>>().is_some());
    }

    /// Neither `Debug` nor `Send` nor `Sync`.
    struct Bare(#[expect(dead_code, reason = "only makes the type `!Send`")] Rc<()>);

    fn send(fails: bool) -> glommio::Result<(), Bare> {
        if fails {
            return Err(GlommioError::WouldBlock(ResourceType::Channel(Bare(
                Rc::new(()),
            ))));
        }
        Ok(())
    }

    #[test]
    fn results_unwrap_whatever_the_item_is() {
        send(false).unwrap();
        let payload = panic::catch_unwind(|| send(true).unwrap()).unwrap_err();
        let text = payload
            .downcast_ref::<String>()
            .expect("unwrap formats its message");
        assert!(text.contains("Channel operation would block"), "{text}");
    }

    #[test]
    fn an_item_that_stays_on_its_thread_does_not_hinder_conversion() {
        let error = io::Error::from(send(true).unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    /// What `anyhow::Error` and its like take, in the words of their conversion.
    struct AnyError(Box<dyn Error + Send + Sync>);

    impl<E: Error + Send + Sync + 'static> From<E> for AnyError {
        fn from(error: E) -> Self {
            AnyError(Box::new(error))
        }
    }

    #[test]
    fn a_question_mark_converts_into_errors_of_any_kind() {
        fn reads() -> Result<(), AnyError> {
            Err(enhanced())?
        }
        let AnyError(error) = reads().expect_err("it fails");
        assert_eq!(error.to_string(), enhanced().to_string());
        let source = error.source().and_then(|source| source.downcast_ref());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::EBADF));
    }

    fn uses_question_mark() -> Result<(), Box<dyn Error + Send + Sync>> {
        send(true).map_err(GlommioError::without_item)?;
        Ok(())
    }

    #[test]
    fn the_item_can_be_left_behind() {
        let error = uses_question_mark().unwrap_err();
        assert!(matches!(
            error.downcast_ref(),
            Some(GlommioError::WouldBlock(ResourceType::Channel(())))
        ));
    }
}

mod from_io_error {
    use super::*;

    #[test]
    fn an_io_error_goes_in_and_out_unchanged() {
        for code in [
            libc::EBADF,
            libc::EPIPE,
            libc::EAGAIN,
            libc::ENOENT,
            libc::ECANCELED,
        ] {
            let kind = errno(code).kind();
            let error: GlommioError<()> = errno(code).into();
            assert!(matches!(error, GlommioError::IoError(_)));
            assert_eq!(error.raw_os_error(), Some(code));

            let back: io::Error = error.into();
            assert_eq!(back.kind(), kind);
            assert_eq!(back.raw_os_error(), Some(code));
        }
    }

    #[test]
    fn a_resource_turns_two_kinds_into_states() {
        let closed = GlommioError::from((errno(libc::EPIPE), ResourceType::Channel(3)));
        assert!(matches!(
            closed,
            GlommioError::Closed(ResourceType::Channel(3))
        ));

        let full = GlommioError::from((errno(libc::EAGAIN), ResourceType::Channel(4)));
        assert!(matches!(
            full,
            GlommioError::WouldBlock(ResourceType::Channel(4))
        ));

        let other = GlommioError::from((errno(libc::EBADF), ResourceType::Channel(5)));
        assert!(matches!(other, GlommioError::IoError(_)));
        assert_eq!(other.raw_os_error(), Some(libc::EBADF));
    }
}

mod into_io_error {
    use super::*;

    /// `?` in a function of `io::Result`, the most frequent way out of this crate.
    #[test]
    fn a_question_mark_converts() {
        fn closed() -> io::Result<()> {
            Err(GlommioError::Closed(ResourceType::Channel("item")))?
        }
        fn failed() -> io::Result<()> {
            Err(enhanced())?
        }
        assert_eq!(closed().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let failed = failed().unwrap_err();
        assert_eq!(failed.raw_os_error(), enhanced().raw_os_error());
        assert_eq!(failed.to_string(), errno(libc::EBADF).to_string());
    }

    /// One that the system did not raise keeps its words, and what they are about.
    #[test]
    fn an_enhanced_error_without_an_errno_can_be_dug_out() {
        let converted = io::Error::from(made_up());
        assert_eq!(converted.kind(), io::ErrorKind::InvalidData);
        assert_eq!(converted.to_string(), made_up().to_string());
        let source = converted
            .source()
            .and_then(|e| e.downcast_ref::<io::Error>());
        assert_eq!(
            source.map(io::Error::kind),
            Some(io::ErrorKind::InvalidData)
        );
        let original = converted.get_ref().and_then(|e| e.downcast_ref());
        assert!(matches!(
            original,
            Some(GlommioError::<()>::EnhancedIoError { fd: Some(32), .. })
        ));
    }
}

mod facts {
    use super::*;

    #[test]
    fn only_io_variants_have_an_errno_and_a_source() {
        assert_eq!(enhanced().raw_os_error(), Some(libc::EBADF));
        for error in [
            GlommioError::Closed(ResourceType::Gate),
            GlommioError::WouldBlock(semaphore()),
            GlommioError::TimedOut(Duration::ZERO),
            queue(QueueErrorKind::NotFound),
            builder(panicked("boom")),
            GlommioError::IoError(io::Error::new(io::ErrorKind::NotFound, "made up")),
        ] {
            assert_eq!(error.raw_os_error(), None, "{error}");
            let is_io = matches!(error, GlommioError::IoError(_));
            assert_eq!(error.source().is_some(), is_io, "{error}");
        }

        for error in [enhanced(), GlommioError::IoError(errno(libc::EBADF))] {
            let source = error.source().and_then(|e| e.downcast_ref::<io::Error>());
            assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::EBADF));
        }
    }

    #[test]
    fn rejected_items_come_back() {
        let item = || ResourceType::Channel(Box::new(5));
        assert_eq!(GlommioError::Closed(item()).into_inner(), Some(Box::new(5)));
        assert_eq!(
            GlommioError::WouldBlock(item()).into_inner(),
            Some(Box::new(5))
        );
        assert_eq!(
            GlommioError::CanNotBeClosed(item(), "why").into_inner(),
            Some(Box::new(5))
        );
        assert_eq!(enhanced().into_inner(), None);
        assert_eq!(
            GlommioError::<()>::Closed(ResourceType::Gate).into_inner(),
            None
        );
    }

    /// What happens to be in the box stays usable, so a panic can go on elsewhere.
    #[test]
    fn a_panic_payload_comes_back_whole() {
        let payload = thread::spawn(|| panic::panic_any(17u32))
            .join()
            .unwrap_err();
        let mut payload = PanicPayload::from(payload);
        assert_eq!(payload.message(), None);
        assert_eq!(payload.payload_mut().downcast_ref(), Some(&17u32));

        let again = panic::catch_unwind(|| payload.resume_unwind()).unwrap_err();
        assert_eq!(
            PanicPayload::from(again).into_inner().downcast_ref(),
            Some(&17u32)
        );
    }
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

fn enhanced() -> GlommioError<()> {
    enhanced_by(errno(libc::EBADF))
}

fn made_up() -> GlommioError<()> {
    enhanced_by(io::Error::new(io::ErrorKind::InvalidData, "made up"))
}

fn enhanced_by(source: io::Error) -> GlommioError<()> {
    GlommioError::EnhancedIoError {
        source,
        op: "testing enhancer",
        path: None,
        fd: Some(32),
    }
}

fn queue(kind: QueueErrorKind) -> GlommioError<()> {
    GlommioError::ExecutorError(ExecutorErrorKind::QueueError { index: 7, kind })
}

fn builder(kind: BuilderErrorKind) -> GlommioError<()> {
    GlommioError::BuilderError(kind)
}

fn panicked(message: &'static str) -> BuilderErrorKind {
    let payload: Box<dyn Any + Send> = Box::new(message);
    BuilderErrorKind::ThreadPanic(payload.into())
}

fn semaphore() -> ResourceType<()> {
    ResourceType::Semaphore {
        requested: 11,
        available: 2,
    }
}

fn file(message: &str) -> ResourceType<()> {
    ResourceType::File(message.to_owned())
}
