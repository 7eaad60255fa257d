use glommio::select;
use std::future::ready;

async fn refutable() -> u32 {
    select! { Some(it) = ready(Some(1)) => it }
}

async fn no_future() {
    select! { _ = 5 => {} }
}

async fn two_types() {
    let _ = select! { _ = ready(1) => 1, _ = ready(2) => "two" };
}

fn main() {}
