//! The glommio of this repository.

use std::future::Future;
use std::time::Duration;

use workloads::Slack;
use workloads::cases::{
    actions, channels, common, cooperative, locks, meshes, network, notices, slack,
};

#[path = "../../glommio.rs"]
mod adapter;
#[path = "../../glommio_channels.rs"]
mod channel_adapter;
#[path = "../../glommio_notices.rs"]
mod notice_adapter;
#[path = "../../glommio_net.rs"]
mod sockets;

/// The crate under measurement.
mod rt {
    pub use glommio::*;

    pub use glommio::timer::timeout;
}

use adapter::Glommio;

fn main() {
    workloads::main(&[
        &common::<Glommio>(),
        &cooperative::<Glommio>(),
        &actions::<Glommio>(),
        &network::<Glommio>(),
        &channels::<Glommio>(),
        &meshes::<Glommio>(),
        &locks::<Glommio>(),
        &notices::<Glommio>(),
        &slack::<Glommio>(),
    ]);
}

impl Slack for Glommio {
    fn run_with_slack<F: Future + 'static>(slack: Duration, future: F) -> F::Output
    where
        F::Output: 'static,
    {
        rt::LocalExecutorBuilder::new(rt::Placement::Unbound)
            .timer_slack(slack)
            .make()
            .expect("the kernel has io_uring and lets us use it")
            .run(future)
    }
}
