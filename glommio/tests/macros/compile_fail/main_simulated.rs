#[glommio::main(simulated)]
async fn simulated() {}

#[glommio::main(start_paused = true)]
async fn paused() {}

fn main() {}
