//! What errors look like in print.

use super::table::assert_shows_in_order;
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
    fn a_panic_shows_its_message_if_it_has_one() {
        let with_str = thread::spawn(|| panic!("plain words")).join().unwrap_err();
        let formatted = thread::spawn(|| panic!("{} words", 2)).join().unwrap_err();
        let without = thread::spawn(|| panic::panic_any(1)).join().unwrap_err();
        let text = |payload: Box<dyn Any + Send>| {
            BuilderErrorKind::ThreadPanic(payload.into()).to_string()
        };
        assert_shows_in_order(&text(with_str), "panicked|plain words");
        assert_shows_in_order(&text(formatted), "panicked|2 words");
        assert_shows_in_order(&text(without), "panicked");
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
