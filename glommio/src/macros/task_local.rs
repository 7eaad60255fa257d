//! Declaring values that belong to a task.

/// Declares values that belong to a task: statics of the type [`LocalKey`](crate::task::LocalKey).
///
/// # Examples
///
/// ```
/// glommio::task_local! {
///     static REQUEST: u32;
///     /// Who asks.
///     pub static TENANT: String;
/// }
///
/// glommio::LocalExecutor::default().run(TENANT.scope("acme".into(), async {
///     assert_eq!(TENANT.with(String::len), 4);
///     assert!(REQUEST.try_with(|_| ()).is_err());
/// }));
/// ```
#[macro_export]
macro_rules! task_local {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty);* $(;)?) => {
        $(
            $(#[$attribute])*
            $visibility static $name: $crate::task::LocalKey<$type> = {
                ::std::thread_local! {
                    static SLOT: $crate::task::Slot<$type> = const { ::std::cell::RefCell::new(None) };
                }
                $crate::task::LocalKey::__new(SLOT)
            };
        )*
    };
}
