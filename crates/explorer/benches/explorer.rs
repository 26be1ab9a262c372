//! How long a user waits: `cargo bench -p foveal-explorer [-- TOKENS [LAYERS]]`.
//!
//! A Llama of random weights with 65,536 positions, 8 heads of 64 dimensions in each layer, reads 16,384 tokens. Then: a map
//! of a whole head, new zoom levels, all heads at a glance, and exact tiles one after the other through the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use foveal_explorer::{Asker, Catalog, Desk, Explorer, Request, Server, ServerOptions};
use foveal_models::checkpoint::Hub;
use foveal_models::layer::Random;
use foveal_models::model::{Llama, LlamaConfig};
use foveal_models::{Dtype, Tokenizer};
use foveal_view::Language;
use serde_json::{Value, json};

fn main() {
    let arguments: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (tokens, layers) = (arguments.first().copied().unwrap_or(16_384), arguments.get(1).copied().unwrap_or(4));
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = save(folder.path(), layers);
    let mut catalog = Catalog::new();
    let id =
        catalog.add_named(&Hub::new(folder.path()).offline(), &folder.path().to_string_lossy()).expect("the model");
    let explorer = Explorer::new(catalog);

    let text = text(&tokenizer, tokens);
    let run = timed("the model reads", || ask(&explorer, &json!({ "kind": "run", "model": id, "text": text }))).head;
    let n = run["axes"][0]["labels"].as_array().map_or(0, Vec::len);
    println!("{n} tokens, {layers} layers of 8 heads, {:.0} MB kept", explorer.bytes() as f64 / 1e6);
    let at = |head: i64| json!({ "run": run["id"], "site": "decoder", "layer": layers / 2, "head": head });
    let map = |what: &str, measure: &str, head: i64, start: usize, length: usize| {
        let (rows, side) = ([start, start + length], length.min(1024));
        let request = json!({ "kind": "map", "at": at(head), "measure": measure, "rows": rows, "cols": rows, "size": [side, side] });
        timed(what, || ask(&explorer, &request));
    };
    map("map of a head, first", "weights", 3, 0, n);
    map("map of another head", "weights", 5, 0, n);
    map("zoom: half", "weights", 5, n / 4, n / 2);
    map("zoom: quarter", "weights", 5, n / 2, n / 4);
    map("zoom: 1,024 tokens", "weights", 5, n / 2, 1024);
    map("norms of a head", "norms", 5, 0, n);
    map("mean of all heads", "weights", -1, 0, n);
    let overview = json!({ "kind": "overview", "run": run["id"], "site": "decoder", "measure": "weights" });
    let reply = timed("all heads at a glance", || ask(&explorer, &overview));
    println!("  sampled: {}", reply.head["sampled"]);
    tiles(explorer, n, &at(5));
}

/// A model of random weights, and its tokenizer.
fn save(folder: &std::path::Path, layers: usize) -> Tokenizer {
    let asset = foveal_assets::find("shakespeare").expect("a model inside");
    let tokenizer = Tokenizer::from_json("shakespeare", asset.tokenizer.expect("it reads text")).expect("a tokenizer");
    let config = LlamaConfig {
        vocabulary: tokenizer.vocabulary(),
        context: 65_536,
        width: 512,
        layers,
        heads: 8,
        key_heads: 2,
        head_dim: 64,
        hidden: 1408,
        ..LlamaConfig::nano()
    };
    let model = Llama::new(&config, &mut Random::new(1)).expect("sizes that fit");
    model.save(folder, Dtype::F32).and_then(|()| tokenizer.save(folder)).expect("a folder to write to");
    tokenizer
}

/// A text of so many tokens.
fn text(tokenizer: &Tokenizer, tokens: usize) -> String {
    let line = "ROMEO: But soft, what light through yonder window breaks? It is the east, and Juliet is the sun. ";
    let each = tokenizer.encode(line).expect("text").len();
    let long = line.repeat(tokens / each + 2);
    let encoding = tokenizer.encode(&long).expect("text");
    let end = encoding.spans()[tokens].clone().map_or(long.len(), |span| span.start);
    long[..end].to_owned()
}

fn ask(explorer: &Explorer, request: &Value) -> foveal_explorer::Reply {
    let request = Request::parse(request.to_string().as_bytes()).expect("a question");
    explorer.ask(&request, &Asker::patient(Language::English)).expect("an answer")
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    println!("{what:26} {:8.1} ms", start.elapsed().as_secs_f64() * 1e3);
    done
}

/// Tiles of 256² at random, one after the other, over one connection.
fn tiles(explorer: Explorer, n: usize, at: &Value) {
    let options = ServerOptions { port: 0, language: Language::English, page: String::new(), used: Box::new(|_| ()) };
    let server = Server::bind(Desk::open(explorer).expect("threads"), options).expect("a port");
    let (address, link, stopper) = (server.address(), server.link(), server.stopper());
    let thread = std::thread::spawn(move || server.serve());
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("a connection");
    let path = link.rsplit('/').next().unwrap_or("");
    let head = send(&mut stream, &format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    let cookie = head.split("set-cookie: ").nth(1).and_then(|rest| rest.split(';').next()).unwrap_or("").to_owned();
    let (mut random, mut times) = (Random::new(5), Vec::new());
    for _ in 0..1000 {
        let mut range = || {
            let start = random.below(n.saturating_sub(256).max(1));
            [start, (start + 256).min(n)]
        };
        let body = json!({ "kind": "tile", "at": at, "rows": range(), "cols": range() }).to_string();
        let request = format!(
            "POST /ask HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let start = Instant::now();
        assert!(send(&mut stream, &request).starts_with("HTTP/1.1 200"), "no tile");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("tile of 256² over HTTP     median {:.2} ms, p99 {:.2} ms", times[500], times[990]);
    drop(stream);
    stopper.stop();
    thread.join().expect("a server that ends").expect("a server");
}

/// Sends a request and reads its whole answer; gives back the head.
fn send(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("a connection");
    let mut bytes = Vec::new();
    let mut part = vec![0; 1 << 20];
    loop {
        let read = stream.read(&mut part).expect("an answer");
        bytes.extend_from_slice(&part[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase().replace("http/1.1", "HTTP/1.1");
        let chunked = head.contains("transfer-encoding: chunked");
        let length =
            head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok()).unwrap_or(0);
        if chunked && bytes.ends_with(b"0\r\n\r\n") || !chunked && bytes.len() >= end + 4 + length {
            return head;
        }
    }
}
