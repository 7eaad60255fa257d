use glommio::select;
use std::future::ready;

async fn wrong() {
    select! {}
    select! { biased; }
    select! { biased; biased; _ = ready(1) => {} }
    select! { _ = ready(1), if true => {} }
    select! { x if x > 0 = ready(1) => {} }
    select! { _ = ready(1) => {} else => {} }
    select! { _ = ready(1) => 1 _ = ready(2) => 2 }
    select! { ready(1) => 1 }
    select! { _ = ready(1) }
}

fn main() {}
