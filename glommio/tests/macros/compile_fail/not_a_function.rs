#[glommio::main]
struct Main;

fn main() {}
