//! The server over real sockets: who may ask, bad requests, many clients, clients that leave.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use foveal_explorer::{Desk, Server, ServerOptions, Stopper};
use foveal_view::Language;
use serde_json::{Value, json};

use crate::support::{inside, numbers};

const PAGE: &str = "<!doctype html><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-x'\">";
const TEXT: &str = "To be or not to be, that is the question";

/// A server on a thread, which ends with it.
struct Running {
    address: SocketAddr,
    cookie: String,
    token: String,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Running {
    fn start() -> Self {
        let options = ServerOptions { port: 0, language: Language::English, page: PAGE.into(), used: Box::new(|_| ()) };
        let server = Server::bind(Desk::open(inside()).unwrap(), options).unwrap();
        let (address, link, stopper) = (server.address(), server.link(), server.stopper());
        assert!(address.ip().is_loopback());
        let token = link.split_once("token=").unwrap().1.to_owned();
        let thread = Some(thread::spawn(move || server.serve().unwrap()));
        let mut running = Running { address, cookie: String::new(), token, stopper, thread };
        let exchanged = running.get(&format!("/?token={}", running.token), "");
        assert_eq!((exchanged.status, exchanged.header("location")), (303, Some("/")));
        let cookie = exchanged.header("set-cookie").unwrap();
        assert!(cookie.contains("httponly") && cookie.contains("samesite=lax"), "{cookie}");
        running.cookie = cookie.split(';').next().unwrap().to_owned();
        running
    }

    fn open(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// What comes back for these bytes.
    fn send(&self, bytes: &[u8]) -> Response {
        let mut stream = self.open();
        // The server may answer, and close, before it has read all.
        stream.write_all(bytes).ok();
        Response::read(stream)
    }

    fn get(&self, path: &str, more: &str) -> Response {
        self.send(
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{more}\r\n", self.address).as_bytes(),
        )
    }

    fn request(&self, body: &[u8], more: &str) -> Vec<u8> {
        let head = format!(
            "POST /ask HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n",
            self.address,
            self.cookie,
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    fn ask(&self, request: &Value) -> Response {
        self.send(&self.request(request.to_string().as_bytes(), ""))
    }

    fn run(&self) -> Value {
        self.ask(&json!({ "kind": "run", "model": "shakespeare", "text": TEXT })).frames().pop().unwrap().0
    }
}

struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Response {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A connection that is reset has still said what it said.
        stream.read_to_end(&mut bytes).ok();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let mut body = bytes[end..].to_vec();
        if head.contains("transfer-encoding: chunked") {
            body = unchunked(&body);
        }
        Response { status, head, body }
    }

    /// A header; names and values are in small letters.
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Heads and buffers of all frames.
    fn frames(&self) -> Vec<(Value, Vec<Vec<u8>>)> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let (mut rest, mut frames) = (&self.body[..], Vec::new());
        while !rest.is_empty() {
            let (frame, after) = rest[4..].split_at(word(rest));
            let length = word(frame);
            let head: Value = serde_json::from_slice(&frame[4..4 + length]).unwrap();
            let mut at = (4 + length).next_multiple_of(8);
            let mut buffers = Vec::new();
            for size in head["sizes"].as_array().unwrap() {
                let size = size.as_u64().unwrap() as usize;
                buffers.push(frame[at..at + size].to_vec());
                at += size.next_multiple_of(8);
            }
            assert_eq!(at, frame.len());
            frames.push((head, buffers));
            rest = after;
        }
        frames
    }

    fn error(&self) -> (String, String) {
        let head = self.frames().pop().unwrap().0;
        let text = |key: &str| head["error"][key].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
    body
}

#[test]
fn only_who_has_the_link_gets_in() {
    let server = Running::start();
    let cookie = format!("Cookie: {}\r\n", server.cookie);
    let page = server.get("/", &cookie);
    assert_eq!(page.status, 200);
    assert_eq!(page.body, PAGE.as_bytes());
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'sha256-x'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    for (name, value) in
        [("x-content-type-options", "nosniff"), ("x-frame-options", "deny"), ("cache-control", "no-store")]
    {
        assert_eq!(page.header(name), Some(value));
    }
    assert_eq!(server.get("/", "").status, 403);
    assert_eq!(server.get("/", "Cookie: foveal=1\r\n").status, 403);
    // The token was good once; its owner is still let in.
    assert_eq!(server.get(&format!("/?token={}", server.token), "").status, 403);
    assert_eq!(server.get(&format!("/?token={}", server.token), &cookie).status, 303);
    assert_eq!(server.get("/?token=", "").status, 403);
    let korean = server.get("/", "Accept-Language: ko\r\n");
    assert!(String::from_utf8(korean.body).unwrap().contains("링크"));
    let body = br#"{"kind":"meta"}"#;
    let plain = server.request(body, "");
    let without = String::from_utf8(plain).unwrap().replace(&server.cookie, "a=b");
    assert_eq!(server.send(without.as_bytes()).status, 403);
}

#[test]
fn foreign_hosts_and_origins() {
    let server = Running::start();
    let body = br#"{"kind":"meta"}"#;
    let with = |host: &str, more: &str| {
        let request = String::from_utf8(server.request(body, more)).unwrap();
        server.send(request.replace(&format!("Host: {}", server.address), host).as_bytes()).status
    };
    // Forwarded ports have any number.
    for host in ["Host: localhost", "Host: localhost:9999", "Host: 127.0.0.1:1", "Host: [::1]:80"] {
        assert_eq!(with(host, ""), 200, "{host}");
    }
    for host in [
        "Host: example.com",
        "Host: 192.168.0.1",
        "Host: localhost.evil.com",
        "X: y",
        "Host: localhost\r\nHost: evil.com",
    ] {
        assert!([400, 403].contains(&with(host, "")), "{host}");
    }
    let own = "Host: localhost:9999";
    assert_eq!(with(own, "Origin: http://localhost:9999\r\n"), 200);
    for origin in
        ["http://evil.com", "http://localhost:9998", "https://localhost:9999", "null", "http://localhost:9999.evil.com"]
    {
        assert_eq!(with(own, &format!("Origin: {origin}\r\n")), 403, "{origin}");
    }
}

#[test]
fn bad_requests() {
    let server = Running::start();
    let status = |body: &[u8]| {
        let response = server.send(&server.request(body, ""));
        assert_eq!(response.error().0, "request");
        response.status
    };
    for body in
        [&b""[..], b"{", b"null", b"\xff\xfe", br#"{"kind":"nothing"}"#, br#"{"kind":"tile","at":NaN}"#, &[b'['; 5000]]
    {
        assert_eq!(status(body), 400, "{}", String::from_utf8_lossy(body));
    }
    let gone = json!({ "kind": "tile", "at": { "run": "x", "site": "decoder", "layer": 0, "head": 0 }, "rows": [0, 1], "cols": [0, 1] });
    assert_eq!(server.ask(&gone).status, 404);
    let (code, message) = server.ask(&json!({ "kind": "run", "model": "../../etc", "text": "x" })).error();
    assert!(code == "request" && message.contains("../../etc"));
    let korean =
        server.send(&server.request(br#"{"kind":"run","model":"none","text":"x"}"#, "Accept-Language: ko\r\n"));
    assert!(korean.error().1.contains("없습니다"));
    // Too large: refused by its length, by what comes, and by what it is.
    let length = format!(
        "POST /ask HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nContent-Type: application/json\r\nConnection: close\r\n",
        server.address, server.cookie
    );
    let large = server.send(format!("{length}Content-Length: 104857600\r\n\r\n{{").as_bytes());
    assert_eq!(large.status, 413);
    let text = json!({ "kind": "run", "model": "shakespeare", "text": "x".repeat(2 << 20) });
    assert_eq!(server.ask(&text).status, 413);
    let mut chunks = format!("{length}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..20 {
        chunks.extend(format!("{:x}\r\n", 1 << 20).into_bytes());
        chunks.extend(vec![b' '; 1 << 20]);
        chunks.extend(b"\r\n");
    }
    chunks.extend(b"0\r\n\r\n");
    assert!([0, 413].contains(&server.send(&chunks).status));
    // Not the right way to ask.
    let plain = String::from_utf8(server.request(br#"{"kind":"meta"}"#, "")).unwrap();
    assert_eq!(server.send(plain.replace("application/json", "text/plain").as_bytes()).status, 415);
    assert_eq!(server.send(plain.replace("POST /ask", "GET /ask").as_bytes()).status, 405);
    assert_eq!(server.send(plain.replace("POST /ask", "OPTIONS /ask").as_bytes()).status, 405);
    for path in ["/../etc/passwd", "/%2e%2e/etc/passwd", "/page.js", "/ask/x", "//"] {
        assert_eq!(server.get(path, &format!("Cookie: {}\r\n", server.cookie)).status, 404, "{path}");
    }
    for garbage in [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"POST /ask HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n\r\n"] {
        let mut stream = server.open();
        stream.write_all(garbage).unwrap();
        stream.shutdown(Shutdown::Write).ok();
        let answer = Response::read(stream);
        assert!([0, 400, 505].contains(&answer.status), "{}", answer.head);
    }
    let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!([0, 431].contains(&server.send(head.as_bytes()).status));
    assert_eq!(server.ask(&json!({ "kind": "meta" })).status, 200);
}

#[test]
fn answers_are_those_of_the_explorer() {
    let server = Running::start();
    let run = server.run();
    let at = json!({ "run": run["id"], "site": "decoder", "layer": 1, "head": 2 });
    let tile = json!({ "kind": "tile", "at": at, "rows": [3, 9], "cols": [0, 9] });
    let response = server.ask(&tile);
    assert_eq!(response.header("content-type"), Some("application/octet-stream"));
    let frames = response.frames();
    assert_eq!((frames.len(), &frames[0].0["part"]), (1, &json!(false)));
    let explorer = inside();
    crate::support::run(&explorer, "shakespeare", TEXT);
    assert_eq!(frames[0].1, crate::support::ask(&explorer, tile).unwrap().buffers);
    assert_eq!(numbers(&frames[0].1[0]).len(), 54);
    let generate = json!({ "kind": "generate", "run": run["id"], "count": 5, "temperature": 0.8, "seed": 3 });
    let frames = server.ask(&generate).frames();
    assert_eq!(frames.len(), 6);
    assert!(frames[..5].iter().all(|(head, _)| head["part"] == json!(true) && head["token"].is_u64()));
    assert_eq!(frames[5].0["sites"][0]["kind"], "decoder");
}

#[test]
fn two_hundred_in_flight_and_ten_that_leave() {
    let server = Running::start();
    let run = server.run();
    let at = json!({ "run": run["id"], "site": "decoder", "layer": 1, "head": 2 });
    let requests = [
        json!({ "kind": "tile", "at": at, "rows": [0, 8], "cols": [0, 8] }),
        json!({ "kind": "map", "at": at, "rows": [0, 8], "cols": [0, 8], "size": [4, 4], "pool": "mean" }),
        json!({ "kind": "cell", "at": at, "query": 5, "key": 3 }),
        json!({ "kind": "predict", "run": run["id"], "off": [["decoder", 0, 1]] }),
        json!({ "kind": "overview", "run": run["id"], "site": "decoder", "measure": "norms" }),
        json!({ "kind": "run", "model": "shakespeare", "text": "Another text" }),
        json!({ "kind": "generate", "run": run["id"], "count": 4, "temperature": 0, "seed": 0 }),
        json!({ "kind": "meta" }),
    ];
    let expected: Vec<Response> = requests.iter().map(|request| server.ask(request)).collect();
    // All are sent before the first is read.
    let mut streams = Vec::new();
    for n in 0..200 {
        let mut stream = server.open();
        stream.write_all(&server.request(requests[n % requests.len()].to_string().as_bytes(), "")).unwrap();
        streams.push(stream);
    }
    // Ten leave: before their request is whole, before the answer, within it.
    for n in 0..10 {
        let long = json!({ "kind": "generate", "run": run["id"], "count": 60, "temperature": 1, "seed": n });
        let bytes = server.request(long.to_string().as_bytes(), "");
        let mut stream = server.open();
        match n % 3 {
            0 => stream.write_all(&bytes[..bytes.len() / 2]).unwrap(),
            1 => stream.write_all(&bytes).unwrap(),
            _ => {
                stream.write_all(&bytes).unwrap();
                stream.read_exact(&mut [0; 16]).ok();
            }
        }
        drop(stream);
    }
    for (n, stream) in streams.into_iter().enumerate() {
        let response = Response::read(stream);
        assert_eq!(response.status, 200, "{n}");
        let last = |response: &Response| response.frames().pop().unwrap();
        if requests[n % requests.len()]["kind"] != "meta" {
            assert_eq!(last(&response), last(&expected[n % requests.len()]), "{n}");
        }
    }
    assert_eq!(server.ask(&json!({ "kind": "meta" })).status, 200);
}

#[test]
fn clients_that_keep_silent_hold_nobody_up() {
    let server = Running::start();
    let run = server.run();
    // Some send nothing, some half a head, some read no answer.
    let mut silent = Vec::new();
    for n in 0..40 {
        let mut stream = server.open();
        match n % 3 {
            0 => {}
            1 => stream.write_all(b"POST /ask HTTP/1.1\r\nHost: loc").unwrap(),
            _ => {
                let overview = json!({ "kind": "overview", "run": run["id"], "site": "decoder", "measure": "weights" });
                stream.write_all(&server.request(overview.to_string().as_bytes(), "")).unwrap();
            }
        }
        silent.push(stream);
    }
    let at = json!({ "run": run["id"], "site": "decoder", "layer": 0, "head": 0 });
    let tile = json!({ "kind": "tile", "at": at, "rows": [0, 8], "cols": [0, 8] });
    assert!((0..20).all(|_| server.ask(&tile).status == 200));
}
