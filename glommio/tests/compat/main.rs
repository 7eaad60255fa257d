//! What programs written for 0.9 rely on at compile time: names, the types of other crates in our
//! signatures, and which types may leave their thread. Most of it is checked by building this file.

mod auto_traits;
mod names;
mod other_crates;

/// Types that were renamed have their former names, too.
#[test]
#[expect(deprecated, reason = "that is what they are")]
fn former_names_stand_for_the_new_ones() {
    let _: fn(glommio::net::ConnectionPlace) -> glommio::net::ConnectionPermit = |it| it;
    let _: fn(glommio::overload::Shed) -> glommio::overload::LoadShedder = |it| it;
    let _: fn(glommio::overload::ShedBuilder) -> glommio::overload::LoadShedderBuilder = |it| it;
    let _: fn(glommio::sync::ForeignCancellation) -> glommio::sync::RemoteCancellation = |it| it;
    assert_eq!(glommio::ShardEnd::Report, glommio::ShardExitPolicy::Report);
    assert_eq!(glommio::TaskPanic::Abort, glommio::PanicPolicy::Abort);
}
