//! What errors look like in print.

use super::*;

mod display {
    use super::*;

    /// Users compare this one literally.
    #[test]
    fn an_enhanced_error_has_its_exact_form() {
        assert_eq!(
            enhanced().to_string(),
            "Bad file descriptor (os error 9), op: testing enhancer path: None with fd: Some(32)"
        );
        let error = GlommioError::<()>::EnhancedIoError {
            source: errno(libc::ENOENT),
            op: "Opening",
            path: Some(PathBuf::from("/no/where")),
            fd: None,
        };
        assert!(
            error
                .to_string()
                .ends_with(r#"op: Opening path: Some("/no/where") with fd: None"#)
        );
    }

    #[test]
    fn each_variant_shows_its_facts_in_order() {
        for (error, facts) in [
            (
                GlommioError::IoError(errno(libc::EBADF)),
                &["I/O error", "Bad file descriptor (os error 9)"] as &[&str],
            ),
            (
                queue(QueueErrorKind::StillActive),
                &["xecutor error", "Queue #7 is still active"],
            ),
            (
                queue(QueueErrorKind::NotFound),
                &["xecutor error", "Queue #7 is not found"],
            ),
            (
                GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(90)),
                &["xecutor error", "90", "invalid"],
            ),
            (
                builder(BuilderErrorKind::NonExistentCpus { cpu: 4095 }),
                &["xecutor builder error", "4095", "no such CPU"],
            ),
            (
                builder(BuilderErrorKind::InsufficientCpus {
                    required: 31,
                    available: 29,
                }),
                &["xecutor builder error", "found 29 of 31"],
            ),
            (
                builder(BuilderErrorKind::NrShards {
                    minimum: 1,
                    shards: 0,
                }),
                &["xecutor builder error", "0", "1"],
            ),
            (
                builder(panicked("boom")),
                &["xecutor builder error", "panicked", "boom"],
            ),
            (
                GlommioError::Closed(semaphore()),
                &["Semaphore is closed (", "11", "2", ")"],
            ),
            (
                GlommioError::Closed(ResourceType::RwLock),
                &["RwLock is closed"],
            ),
            (
                GlommioError::Closed(ResourceType::Channel(())),
                &["Channel is closed"],
            ),
            (
                GlommioError::Closed(file("gone")),
                &["File is closed (", "gone", ")"],
            ),
            (
                GlommioError::Closed(ResourceType::Gate),
                &["Gate is closed"],
            ),
            (
                GlommioError::WouldBlock(semaphore()),
                &["Semaphore operation would block (", "11", "2", ")"],
            ),
            (
                GlommioError::WouldBlock(ResourceType::RwLock),
                &["RwLock operation would block"],
            ),
            (
                GlommioError::WouldBlock(ResourceType::Channel(())),
                &["Channel operation would block"],
            ),
            (
                GlommioError::WouldBlock(file("busy")),
                &["File operation would block (", "busy", ")"],
            ),
            (
                GlommioError::WouldBlock(ResourceType::Gate),
                &["Gate operation would block"],
            ),
            (
                GlommioError::CanNotBeClosed(ResourceType::RwLock, "it is held"),
                &["can not be closed", "it is held"],
            ),
            (
                GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(65536, 524288)),
                &[
                    "eactor error",
                    "too low",
                    "65536 bytes",
                    "524288 bytes",
                    "RLIMIT_MEMLOCK",
                    "ulimit -l",
                ],
            ),
            (
                GlommioError::ReactorError(ReactorErrorKind::IncorrectSourceType("odd".into())),
                &["eactor error", "odd"],
            ),
            (
                GlommioError::TimedOut(Duration::from_millis(250)),
                &["Operation timed out after 250ms"],
            ),
        ] {
            assert_shows_in_order(&error.to_string(), facts);
        }
    }

    /// The two numbers were once swapped.
    #[test]
    fn shards_are_named_in_their_right_places() {
        let text = BuilderErrorKind::NrShards {
            minimum: 35,
            shards: 12,
        }
        .to_string();
        assert_shows_in_order(&text, &["requested 12", "35 required"]);
    }

    #[test]
    fn a_panic_shows_its_message_if_it_has_one() {
        let with_str = thread::spawn(|| panic!("plain words")).join().unwrap_err();
        let formatted = thread::spawn(|| panic!("{} words", 2)).join().unwrap_err();
        let without = thread::spawn(|| panic::panic_any(1)).join().unwrap_err();
        let text = |payload: Box<dyn Any + Send>| {
            BuilderErrorKind::ThreadPanic(payload.into()).to_string()
        };
        assert_shows_in_order(&text(with_str), &["panicked", "plain words"]);
        assert_shows_in_order(&text(formatted), &["panicked", "2 words"]);
        assert_shows_in_order(&text(without), &["panicked"]);
    }

    #[test]
    fn kinds_alone_are_brief() {
        assert_eq!(QueueErrorKind::StillActive.to_string(), "still active");
        assert_eq!(QueueErrorKind::NotFound.to_string(), "not found");
        assert_eq!(semaphore().to_string(), "Semaphore");
        assert_eq!(ResourceType::<()>::RwLock.to_string(), "RwLock");
        assert_eq!(ResourceType::Channel("secret").to_string(), "Channel");
        assert_eq!(file("gone").to_string(), "File");
        assert_eq!(ResourceType::<()>::Gate.to_string(), "Gate");
    }
}

mod debug {
    use super::*;

    #[test]
    fn an_io_error_is_not_wrapped() {
        let error: GlommioError<()> = errno(libc::EBADF).into();
        assert_eq!(format!("{error:?}"), format!("{:?}", errno(libc::EBADF)));
        assert_eq!(format!("{error:#?}"), format!("{:#?}", errno(libc::EBADF)));
    }

    #[test]
    fn each_variant_shows_its_facts_in_order() {
        for (error, facts) in [
            (
                enhanced(),
                &[
                    "EnhancedIoError",
                    "source",
                    "code: 9",
                    "op",
                    "testing enhancer",
                    "path",
                    "None",
                    "fd",
                    "Some(32)",
                ] as &[&str],
            ),
            (
                GlommioError::Closed(semaphore()),
                &["Semaphore", "closed", "11", "2"],
            ),
            (
                GlommioError::WouldBlock(file("busy")),
                &[r#"File operation would block ("busy")"#],
            ),
            (
                GlommioError::Closed(file("gone")),
                &[r#"File is closed ("gone")"#],
            ),
            (
                GlommioError::WouldBlock(semaphore()),
                &["Semaphore", "would block", "11", "2"],
            ),
            (
                GlommioError::CanNotBeClosed(ResourceType::RwLock, "it is held"),
                &["RwLock", "can not be closed", "it is held"],
            ),
            (
                queue(QueueErrorKind::NotFound),
                &["QueueError", "index: 7", "NotFound"],
            ),
            (
                builder(BuilderErrorKind::NrShards {
                    minimum: 1,
                    shards: 0,
                }),
                &["NrShards", "minimum: 1", "shards: 0"],
            ),
            (
                GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(3, 4)),
                &["MemLockLimit", "3", "4"],
            ),
            (
                GlommioError::ReactorError(ReactorErrorKind::IncorrectSourceType("odd".into())),
                &["IncorrectSourceType", "odd"],
            ),
            (
                GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(90)),
                &["InvalidId", "90"],
            ),
            (
                builder(BuilderErrorKind::InsufficientCpus {
                    required: 31,
                    available: 29,
                }),
                &["InsufficientCpus", "required: 31", "available: 29"],
            ),
            (
                builder(BuilderErrorKind::NonExistentCpus { cpu: 4095 }),
                &["NonExistentCpus", "cpu: 4095"],
            ),
            (
                GlommioError::TimedOut(Duration::from_millis(250)),
                &["TimedOut { dur 250ms }"],
            ),
        ] {
            assert_shows_in_order(&format!("{error:?}"), facts);
        }
    }

    #[test]
    fn items_and_payloads_stay_private() {
        let error = GlommioError::Closed(ResourceType::Channel("secret"));
        assert_eq!(format!("{error:?}"), "Channel is closed");

        let payload = thread::spawn(|| panic::panic_any(123_456u32))
            .join()
            .unwrap_err();
        let text = format!(
            "{:?}",
            builder(BuilderErrorKind::ThreadPanic(payload.into()))
        );
        assert!(
            text.contains("ThreadPanic") && !text.contains("123456"),
            "{text}"
        );
    }
}
