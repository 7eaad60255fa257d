#[glommio::main]
fn main() {}
