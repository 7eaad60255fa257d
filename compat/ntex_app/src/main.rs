//! ntex on the runtime of ntex-glommio: a page and an echo of bodies.

use ntex::util::Bytes;
use ntex::web;

#[ntex::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args()
        .nth(1)
        .ok_or_else(|| std::io::Error::other("usage: ntex_app ADDRESS"))?;
    let app = || {
        web::App::new()
            .service(web::resource("/").to(|| async { "hello from ntex" }))
            .service(web::resource("/echo").route(web::post().to(|body: Bytes| async { body })))
    };
    let server = web::HttpServer::new(app).workers(1).bind(address)?;
    server.run().await?;
    println!("ntex has ended");
    Ok(())
}
