#[glommio::test]
#[test]
async fn twice() {}

fn main() {}
