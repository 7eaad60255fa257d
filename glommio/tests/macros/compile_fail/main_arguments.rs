#[glommio::main(name = "worker")]
async fn named() {}

#[glommio::main(threads = 4)]
async fn unknown() {}

#[glommio::main(placement = Everywhere)]
async fn placed() {}

#[glommio::main(placement = Fixed)]
async fn incomplete() {}

#[glommio::main(placement = Unbound(1))]
async fn too_much() {}

#[glommio::main(placement = Unbound, placement = Unbound)]
async fn twice() {}

#[glommio::main(crate = "glommio")]
async fn text() {}

fn main() {}
