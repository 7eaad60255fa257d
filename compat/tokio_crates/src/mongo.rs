//! MongoDB's driver, with a server of this program that knows `hello`, `insert` and `find`.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::spawn_local;
use glommio_tokio::Tokio;
use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};

use crate::Result;

type Documents = Rc<RefCell<Vec<Bson>>>;

pub async fn mongodb() -> Result<String> {
    let address = serve()?;
    let tokio = Tokio::start()?;
    let talk = async move {
        let client = Client::with_uri_str(format!("mongodb://{address}")).await?;
        let numbers = client
            .database("database")
            .collection::<Document>("numbers");
        let documents = (1..=100).map(|number| doc! { "number": number });
        let inserted = numbers.insert_many(documents).await?.inserted_ids.len();
        let mut cursor = numbers.find(doc! {}).await?;
        let mut sum = 0;
        while let Some(document) = cursor.next().await {
            sum += document?.get_i32("number")?;
        }
        drop(cursor); // what follows waits for that
        client.shutdown().await;
        Ok(format!("{inserted} documents, sum {sum}"))
    };
    tokio.with(talk).await
}

fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    spawn_local(async move {
        let documents = Documents::default();
        while let Ok(stream) = listener.accept().await {
            let documents = Rc::clone(&documents);
            spawn_local(async {
                if let Err(error) = answer(stream, documents).await {
                    eprintln!("a connection of MongoDB's has ended: {error}");
                }
            })
            .detach();
        }
    })
    .detach();
    Ok(address)
}

/// Each message is one of the opcode `OP_MSG`: a header of 16 bytes, flags, and sections.
async fn answer(mut stream: TcpStream, documents: Documents) -> Result {
    loop {
        let mut header = [0; 16];
        stream.read_exact(&mut header).await?;
        let [length, id, _, opcode] = std::array::from_fn(|at| number(&header[4 * at..]));
        if opcode != OP_MSG {
            return Err(format!("the opcode {opcode}").into());
        }
        let rest = usize::try_from(length)?.checked_sub(header.len());
        let mut body = vec![0; rest.ok_or("too short")?];
        stream.read_exact(&mut body).await?;
        let reply = act(&read(&body)?, &documents)?.to_vec()?;
        let length = i32::try_from(header.len() + 5 + reply.len())?;
        let mut message: Vec<u8> = [length, 0, id, OP_MSG, 0]
            .into_iter()
            .flat_map(i32::to_le_bytes)
            .collect();
        message.push(BODY);
        message.extend(reply);
        stream.write_all(&message).await?;
    }
}

fn act(command: &Document, documents: &Documents) -> Result<Document> {
    let name = command.keys().next().map(String::as_str);
    Ok(match name.unwrap_or_default() {
        "hello" | "isMaster" => doc! {
            "ok": 1.0, "helloOk": true, "isWritablePrimary": true, "ismaster": true,
            "minWireVersion": 8, "maxWireVersion": 21, "maxBsonObjectSize": 1 << 24,
            "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000,
        },
        "insert" => {
            let inserted = command.get_array("documents")?;
            documents.borrow_mut().extend(inserted.iter().cloned());
            doc! { "ok": 1.0, "n": i32::try_from(inserted.len())? }
        }
        "find" => {
            let batch = documents.borrow().clone();
            let cursor = doc! { "id": 0_i64, "ns": "database.numbers", "firstBatch": batch };
            doc! { "ok": 1.0, "cursor": cursor }
        }
        "endSessions" => doc! { "ok": 1.0 },
        other => doc! { "ok": 0.0, "code": 59, "errmsg": format!("no such command: {other}") },
    })
}

/// The command, with the documents of other sections as arrays in it.
fn read(body: &[u8]) -> Result<Document> {
    let mut sections = body.get(4..).ok_or("no flags")?;
    let mut command = Document::new();
    while let Some((&kind, mut rest)) = sections.split_first() {
        if kind == BODY {
            command.extend(Document::from_reader(&mut rest)?);
        } else {
            let (mut sequence, after) = rest.split_at(usize::try_from(number(rest))?);
            sequence = &sequence[4..];
            let end = sequence.iter().position(|&byte| byte == 0);
            let (name, documents) = sequence.split_at(end.ok_or("no name")?);
            let mut documents = &documents[1..];
            let mut array = Vec::new();
            while !documents.is_empty() {
                array.push(Bson::Document(Document::from_reader(&mut documents)?));
            }
            command.insert(str::from_utf8(name)?, array);
            rest = after;
        }
        sections = rest;
    }
    Ok(command)
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

const OP_MSG: i32 = 2013;

/// The kind of the section that is the command.
const BODY: u8 = 0;
