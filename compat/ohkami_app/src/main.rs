//! ohkami on one executor: a page, and a path with a parameter.
//!
//! Its WebSockets (by mews) are built and not used: ohkami wants their handlers to be `Send`, and
//! no socket of glommio is, in 0.9 neither.

use std::error::Error;
use std::time::Duration;

use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, Placement};
use ohkami::claw::Path;
use ohkami::{Ohkami, Route};

async fn hello() -> &'static str {
    "hello from ohkami"
}

async fn greet(Path(name): Path<&str>) -> String {
    // On the timers of the executor.
    sleep(Duration::from_millis(5)).await;
    format!("hello, {name}")
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: ohkami_app ADDRESS")?;
    LocalExecutorBuilder::new(Placement::Unbound)
        .name("ohkami")
        .spawn(move || async move {
            let routes = ("/".GET(hello), "/greet/:name".GET(greet));
            Ohkami::new(routes).howl(&*address).await;
        })?
        .join()?;
    println!("ohkami has ended");
    Ok(())
}
