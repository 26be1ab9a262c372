//! Models by name: from the cache, and from a small server on this machine in place of the hub.

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use foveal_models::checkpoint::Hub;
use foveal_models::{Checkpoint, Error};

/// Serves the files of one model as the hub does. Requests are answered one after another, each on its own connection.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(model: &'static str, files: HashMap<String, Vec<u8>>, cut: Option<usize>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                answer(stream, model, &files, cut, &log);
            }
        });
        Server { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn answer(
    stream: TcpStream,
    model: &str,
    files: &HashMap<String, Vec<u8>>,
    cut: Option<usize>,
    log: &Mutex<Vec<String>>,
) {
    let mut lines = BufReader::new(&stream).lines();
    let Some(Ok(request)) = lines.next() else { return };
    let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(path.clone());
    let range = headers.iter().find_map(|line| {
        let line = line.to_lowercase();
        let (start, end) = line.strip_prefix("range: bytes=")?.split_once('-')?;
        Some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()))
    });
    let body = if path == format!("/api/models/{model}/revision/main") {
        let list: Vec<_> = files.keys().map(|name| serde_json::json!({"rfilename": name})).collect();
        Some(serde_json::json!({"sha": "0123abcd", "siblings": list}).to_string().into_bytes())
    } else {
        path.strip_prefix(&format!("/{model}/resolve/main/")).and_then(|name| files.get(name)).cloned()
    };
    let mut stream = &stream;
    let Some(body) = body else {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        return;
    };
    let (start, end) = range.unwrap_or((0, None));
    let end = end.map_or(body.len(), |end| (end + 1).min(body.len())).max(start.min(body.len()));
    let part = &body[start.min(body.len())..end];
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\ncontent-range: bytes {start}-{}/{}\r\n\
         etag: \"e{}\"\r\nx-repo-commit: 0123abcd\r\nconnection: close\r\n\r\n",
        part.len(),
        end.saturating_sub(1),
        body.len(),
        body.iter().fold(7u64, |hash, &byte| hash.wrapping_mul(31).wrapping_add(byte.into())),
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&part[..cut.unwrap_or(part.len()).min(part.len())]);
}

fn llama() -> HashMap<String, Vec<u8>> {
    let folder = support::fixture("checkpoints/llama");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let files = ["config.json", "model.safetensors"].map(|name| (name.to_owned(), read(name)));
    files
        .into_iter()
        .chain([("tokenizer_config.json".to_owned(), b"{}".to_vec()), ("README.md".to_owned(), vec![0; 9])])
        .collect()
}

#[test]
fn a_download_is_in_the_cache_afterwards() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::new("me/tiny", llama(), None);
    let hub = Hub::new(cache.path()).endpoint(format!("{}/", server.url)).show_progress();
    let folder = hub.resolve("me/tiny").unwrap();
    assert!(folder.starts_with(cache.path()) && folder.ends_with("snapshots/0123abcd"));
    assert!(folder.join("tokenizer_config.json").exists() && !folder.join("README.md").exists());
    let checkpoint = Checkpoint::open(&folder).unwrap();
    assert_eq!(checkpoint.tensor("lm_head.weight").unwrap().shape(), [24, 16]);
    // Again, without a question; and without a server.
    let asked = server.asked();
    assert_eq!(hub.resolve("me/tiny").unwrap(), folder);
    assert_eq!(server.asked(), asked);
    assert_eq!(Hub::new(cache.path()).offline().resolve("me/tiny").unwrap(), folder);
}

#[test]
fn shards_and_gguf() {
    let shard = llama().remove("model.safetensors").unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&shard).unwrap();
    let map: HashMap<&str, &str> = tensors.names().into_iter().map(|name| (name, "one-of-one.safetensors")).collect();
    let index = serde_json::json!({"weight_map": map}).to_string().into_bytes();
    let mut files = llama();
    files.remove("model.safetensors");
    files.insert("model.safetensors.index.json".into(), index);
    files.insert("one-of-one.safetensors".into(), shard.clone());
    let cache = tempfile::tempdir().unwrap();
    let server = Server::new("me/sharded", files, None);
    let folder = Hub::new(cache.path()).endpoint(&server.url).resolve("me/sharded").unwrap();
    assert_eq!(Checkpoint::open(&folder).unwrap().names().len(), map.len());
    assert_eq!(Hub::new(cache.path()).offline().resolve("me/sharded").unwrap(), folder);
    // A shard less, and the model is not there any more.
    std::fs::remove_file(folder.join("one-of-one.safetensors")).unwrap();
    assert!(Hub::new(cache.path()).offline().resolve("me/sharded").is_err());

    let gguf = std::fs::read(support::fixture("checkpoints/llama.gguf")).unwrap();
    let files = [("a.gguf".to_owned(), gguf.clone()), ("b.gguf".to_owned(), gguf), ("../c.gguf".to_owned(), vec![])];
    let server = Server::new("me/quants", files.into(), None);
    let hub = Hub::new(cache.path()).endpoint(&server.url);
    let error = hub.resolve("me/quants").unwrap_err().to_string();
    assert!(error.contains("several files") && error.contains("a.gguf") && !error.contains("c.gguf"), "{error}");
    let file = hub.resolve("me/quants/b.gguf").unwrap();
    assert_eq!(Checkpoint::open(file).unwrap().architecture().unwrap().name(), "llama");
    let error = hub.resolve("me/quants/c.gguf").unwrap_err().to_string();
    assert!(error.contains("no such model or file"), "{error}");
}

#[test]
fn what_cannot_be_had() {
    let cache = tempfile::tempdir().unwrap();
    let refused = |hub: &Hub, name: &str, part: &str| {
        let error = hub.resolve(name).unwrap_err();
        assert!(matches!(error, Error::Download { .. }) && error.to_string().contains(part), "{error}");
    };
    let server = Server::new("me/tiny", llama(), None);
    let hub = Hub::new(cache.path()).endpoint(&server.url);
    refused(&hub, "me/other", "no such model");
    refused(&hub, "../tiny", "check the spelling");
    refused(&hub, "no/such/path", "check the spelling");
    refused(&hub, "", "check the spelling");
    refused(&hub.clone().offline(), "me/tiny", "HF_HUB_OFFLINE is set");
    // Nobody listens on a port that was just given back.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    refused(&Hub::new(cache.path()).endpoint(format!("http://127.0.0.1:{port}")), "me/tiny", "check the connection");
    // The connection breaks off in the middle of a file: the file is not taken for whole.
    let server = Server::new("me/tiny", llama(), Some(300));
    let broken = Hub::new(cache.path()).endpoint(&server.url);
    assert!(broken.resolve("me/tiny").is_err());
    assert!(Hub::new(cache.path()).offline().resolve("me/tiny").is_err());
    let empty = Server::new("me/empty", HashMap::from([("README.md".to_owned(), vec![])]), None);
    refused(&Hub::new(cache.path()).endpoint(&empty.url), "me/empty", "neither config.json");
}

#[test]
fn a_path_wins() {
    let folder = support::fixture("checkpoints/llama");
    let hub = Hub::new("/nonexistent").offline();
    assert_eq!(hub.resolve(folder.to_str().unwrap()).unwrap(), folder);
    assert!(hub.resolve(Path::new("no").join("where").to_str().unwrap()).is_err());
}
