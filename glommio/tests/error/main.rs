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

    /// Every row of the promise which kind comes of which variant.
    #[test]
    fn each_variant_has_its_kind() {
        use io::ErrorKind;

        for (error, kind) in [
            (
                GlommioError::IoError(errno(libc::EACCES)),
                ErrorKind::PermissionDenied,
            ),
            (enhanced(), errno(libc::EBADF).kind()),
            (
                GlommioError::WouldBlock(ResourceType::RwLock),
                ErrorKind::WouldBlock,
            ),
            (GlommioError::WouldBlock(semaphore()), ErrorKind::WouldBlock),
            (
                GlommioError::WouldBlock(ResourceType::Channel(())),
                ErrorKind::WouldBlock,
            ),
            (
                GlommioError::WouldBlock(file("busy")),
                ErrorKind::WouldBlock,
            ),
            (
                GlommioError::WouldBlock(ResourceType::Gate),
                ErrorKind::WouldBlock,
            ),
            (GlommioError::Closed(semaphore()), ErrorKind::BrokenPipe),
            (
                GlommioError::Closed(ResourceType::RwLock),
                ErrorKind::BrokenPipe,
            ),
            (GlommioError::Closed(file("gone")), ErrorKind::BrokenPipe),
            (
                GlommioError::CanNotBeClosed(ResourceType::Channel(()), "full"),
                ErrorKind::BrokenPipe,
            ),
            (
                GlommioError::Closed(ResourceType::Gate),
                ErrorKind::BrokenPipe,
            ),
            (
                GlommioError::Closed(ResourceType::Channel(())),
                ErrorKind::BrokenPipe,
            ),
            (
                GlommioError::CanNotBeClosed(ResourceType::RwLock, "held"),
                ErrorKind::BrokenPipe,
            ),
            (queue(QueueErrorKind::StillActive), ErrorKind::Other),
            (queue(QueueErrorKind::NotFound), ErrorKind::NotFound),
            (
                GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(9)),
                ErrorKind::InvalidInput,
            ),
            (
                builder(BuilderErrorKind::NonExistentCpus { cpu: 1 }),
                ErrorKind::Other,
            ),
            (
                builder(BuilderErrorKind::NrShards {
                    minimum: 1,
                    shards: 0,
                }),
                ErrorKind::Other,
            ),
            (
                builder(BuilderErrorKind::InsufficientCpus {
                    required: 2,
                    available: 1,
                }),
                ErrorKind::Other,
            ),
            (builder(panicked("boom")), ErrorKind::Other),
            (
                GlommioError::ReactorError(ReactorErrorKind::IncorrectSourceType("a timer".into())),
                ErrorKind::InvalidData,
            ),
            (
                GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(1, 2)),
                ErrorKind::Other,
            ),
            (
                GlommioError::TimedOut(Duration::from_secs(1)),
                ErrorKind::TimedOut,
            ),
        ] {
            let text = error.to_string();
            let errno = error.raw_os_error();
            let converted = io::Error::from(error);
            assert_eq!(converted.kind(), kind, "{text}");
            assert_eq!(converted.raw_os_error(), errno, "{text}");
            if errno.is_none() {
                assert_eq!(converted.to_string(), text);
            }
        }
    }

    /// The facts that callers dig out of the converted error's text.
    #[test]
    fn numbers_survive_in_the_text() {
        for (error, facts) in [
            (
                queue(QueueErrorKind::NotFound),
                &["7", "not found"] as &[&str],
            ),
            (queue(QueueErrorKind::StillActive), &["7", "still active"]),
            (builder(panicked("boom")), &["panicked", "boom"]),
            (enhanced(), &["os error 9"]),
            (
                made_up(),
                &["made up", "testing enhancer", "None", "Some(32)"],
            ),
            (
                GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(90)),
                &["90"],
            ),
            (
                GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(65536, 524288)),
                &["65536", "524288"],
            ),
            (
                GlommioError::ReactorError(ReactorErrorKind::IncorrectSourceType("odd".into())),
                &["odd"],
            ),
            (
                GlommioError::TimedOut(Duration::from_millis(1500)),
                &["1.5s"],
            ),
        ] {
            assert_shows_in_order(&io::Error::from(error).to_string(), facts);
        }
    }

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

    /// Leaving the item behind changes neither text.
    #[test]
    fn without_item_keeps_everything_else() {
        let samples: [fn() -> GlommioError<u8>; 13] = [
            || GlommioError::IoError(errno(libc::EBADF)),
            || GlommioError::EnhancedIoError {
                source: errno(libc::EBADF),
                op: "Reading",
                path: Some("a".into()),
                fd: Some(3),
            },
            || GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(3)),
            || GlommioError::BuilderError(BuilderErrorKind::NonExistentCpus { cpu: 4 }),
            || GlommioError::Closed(ResourceType::File("gone".into())),
            || GlommioError::Closed(ResourceType::Channel(7)),
            || GlommioError::Closed(ResourceType::Gate),
            || GlommioError::BuilderError(panicked("boom")),
            || {
                GlommioError::ExecutorError(ExecutorErrorKind::QueueError {
                    index: 5,
                    kind: QueueErrorKind::StillActive,
                })
            },
            || GlommioError::CanNotBeClosed(ResourceType::RwLock, "held"),
            || {
                GlommioError::WouldBlock(ResourceType::Semaphore {
                    requested: 2,
                    available: 1,
                })
            },
            || GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(1, 2)),
            || GlommioError::TimedOut(Duration::from_secs(3)),
        ];
        for sample in samples {
            assert_eq!(sample().to_string(), sample().without_item().to_string());
            assert_eq!(
                format!("{:?}", sample()),
                format!("{:?}", sample().without_item())
            );
        }
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

#[track_caller]
fn assert_shows_in_order(text: &str, facts: &[&str]) {
    let mut rest = text;
    for fact in facts {
        let Some((_, after)) = rest.split_once(fact) else {
            panic!("{fact:?} is missing or out of order in {text:?}");
        };
        rest = after;
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
