//! `#[glommio::main]` and `#[glommio::test]`.

use crate::common::prelude::*;

/// The crate by another name.
mod facade {
    pub mod inner {
        pub use glommio;
    }
}

#[glommio::test]
async fn it_runs_in_an_executor() {
    assert!(executor().id() > 0);
    let shared = Rc::new(Cell::new(1));
    let task = spawn_local({
        let shared = Rc::clone(&shared);
        async move {
            sleep(Duration::from_micros(100)).await;
            shared.set(2);
        }
    });
    task.await;
    assert_eq!(shared.get(), 2);
}

#[glommio::test(placement = Unbound, crate = facade::inner::glommio)]
async fn the_crate_may_have_another_name() -> Result<(), GlommioError<()>> {
    executor().yield_now().await;
    Ok(())
}

#[glommio::test]
#[should_panic(expected = "on purpose")]
async fn panics_come_out() {
    executor().yield_now().await;
    panic!("on purpose");
}

#[glommio::test]
#[ignore = "it would fail"]
async fn ignored_tests_are_ignored() {
    panic!("it was not ignored");
}

#[glommio::test]
async fn errors_fail_the_test() -> Result<(), String> {
    let value: u32 = "7".parse().map_err(|error| format!("{error}"))?;
    if value == 7 {
        Ok(())
    } else {
        Err("another number".into())
    }
}

/// On the first CPU that this thread may use.
#[test]
fn the_placement_is_used() {
    #[glommio::main(placement = Fixed(first_cpu()))]
    async fn bound() -> usize {
        nix::sched::sched_getcpu().expect("the kernel says")
    }

    let ran_on = std::thread::spawn(|| (bound(), first_cpu()))
        .join()
        .expect("no panic");
    assert_eq!(ran_on.0, ran_on.1);
}

fn first_cpu() -> usize {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).expect("its mask");
    (0..)
        .find(|&cpu| set.is_set(cpu).unwrap_or(false))
        .expect("there is one")
}

/// Attributes, visibility and the return type stay; the body sees the statics and the names around
/// it.
#[test]
fn a_main_is_a_function() {
    const NUMBER: i32 = 5;

    /// Documented.
    #[allow(unused_variables, reason = "it is what the test is about")]
    #[glommio::main]
    pub(crate) async fn main() -> Result<i32, std::num::ParseIntError> {
        let unused = 0;
        let parsed: i32 = "37".parse()?;
        Ok(parsed + NUMBER)
    }

    assert_eq!(main(), Ok(42));
    assert_eq!(main(), Ok(42), "again");
}

#[test]
fn an_executor_that_cannot_be_built_is_a_panic_with_a_reason() {
    #[glommio::main(placement = Fixed(1_000_000))]
    async fn nowhere() {}

    let message = panic_of(nowhere);
    assert!(
        message.starts_with("building the executor failed"),
        "{message}"
    );
}
