#[glommio::test(simulated)]
async fn simulated() {}

#[glommio::test(start_paused = true)]
async fn paused() {}

fn main() {}
