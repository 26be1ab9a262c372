//! What is served where.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State as Extract};
use axum::http::header::{
    ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use foveal_view::Language;
use tokio::sync::{Semaphore, mpsc};

use super::ServerOptions;
use super::body::{self, MOST, MOST_WITH_IMAGE, Replies, framed, status, too_large};
use super::guard::{Guard, is_local};
use crate::desk::{Desk, Event};
use crate::fault::{Fault, Text};
use crate::request::Request;

/// Bytes of requests that are in memory at a time.
const REQUEST_MEMORY: usize = 256 << 20;
/// What the smallest of them counts as: so many are answered at a time.
const LEAST: usize = REQUEST_MEMORY / 512;
/// A page without scripts and without anything from elsewhere.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What every request can see.
#[derive(Clone)]
pub struct State(Arc<Shared>);

struct Shared {
    desk: Desk,
    options: ServerOptions,
    guard: Arc<Guard>,
    address: SocketAddr,
    memory: Arc<Semaphore>,
}

impl State {
    pub fn new(desk: Desk, options: ServerOptions, guard: Arc<Guard>, address: SocketAddr) -> Self {
        State(Arc::new(Shared { desk, options, guard, address, memory: Arc::new(Semaphore::new(REQUEST_MEMORY)) }))
    }
}

/// All routes.
pub fn router(state: State) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/ask", post(ask))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(from_fn(local))
        .with_state(state)
}

/// Refuses what does not come from here, and says how replies are to be treated.
async fn local(request: HttpRequest, next: Next) -> Response {
    let mut response = match is_local(request.uri(), request.headers()) {
        true => next.run(request).await,
        false => (StatusCode::FORBIDDEN, "foreign Host or Origin\n").into_response(),
    };
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 6] = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    fixed.into_iter().for_each(|(name, value)| drop(headers.insert(name, HeaderValue::from_static(value))));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING));
    response
}

/// The page; or, with a token, the cookie and the way to the page.
async fn page(Extract(State(shared)): Extract<State>, uri: Uri, headers: HeaderMap) -> Response {
    let token = uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("token=")));
    let known = shared.guard.knows(&headers);
    match token {
        // A link that was used before still leads whoever used it to the page.
        Some(token) if known || shared.guard.exchange(token) => {
            // Without a fragment of its own: browsers keep the one of the link.
            let mut response = (StatusCode::SEE_OTHER, [(LOCATION, "/")]).into_response();
            if let (false, Ok(cookie)) = (known, HeaderValue::from_str(&shared.guard.cookie())) {
                response.headers_mut().insert(SET_COOKIE, cookie);
                (shared.options.used)(&shared.guard.link(shared.address));
            }
            response
        }
        None if known => {
            let mut response =
                ([(CONTENT_TYPE, "text/html; charset=utf-8")], shared.options.page.clone()).into_response();
            if let Some(policy) = policy(&shared.options.page) {
                response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
            }
            response
        }
        _ => {
            let text = unknown();
            let text = text.of(language(&headers, shared.options.language)).to_owned() + "\n";
            (StatusCode::FORBIDDEN, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
    }
}

/// The policy that a page has in itself, as a header, which also keeps it out of the frames of others.
fn policy(page: &str) -> Option<HeaderValue> {
    let (_, meta) = page.split_once("http-equiv=\"Content-Security-Policy\"")?;
    let (policy, _) = meta.split_once("content=\"")?.1.split_once('"')?;
    HeaderValue::from_str(&format!("{policy}; frame-ancestors 'none'")).ok()
}

/// What is said to who has neither cookie nor token.
fn unknown() -> Text {
    Text::new(
        "This is a private page. Open the newest link that `foveal explore` has printed in its terminal; each opens it once.",
        "비공개 페이지입니다. `foveal explore`가 터미널에 출력한 가장 최근 링크를 여십시오. 링크는 한 번만 쓸 수 있습니다.",
    )
}

/// Answers a question, frame by frame.
async fn ask(Extract(State(shared)): Extract<State>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let language = language(&parts.headers, shared.options.language);
    match answer(&shared, &parts.headers, body, language).await {
        Ok(response) => response,
        Err((status, fault)) => refusal(status, &fault, language),
    }
}

async fn answer(
    shared: &Shared,
    headers: &HeaderMap,
    body: Body,
    language: Language,
) -> Result<Response, (StatusCode, Fault)> {
    if !shared.guard.knows(headers) {
        return Err((StatusCode::FORBIDDEN, Fault { code: crate::fault::Code::Request, text: unknown() }));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let fault =
            Fault::request("ask with Content-Type: application/json", "Content-Type: application/json으로 물으십시오");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, fault));
    }
    let length = body::length(headers);
    if length > MOST_WITH_IMAGE {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, too_large(MOST_WITH_IMAGE)));
    }
    // What waits and what is being sent counts, too: it goes with the body of the reply.
    let permit = shared.memory.clone().try_acquire_many_owned(length.max(LEAST) as u32);
    let permit = permit.map_err(|_| (StatusCode::TOO_MANY_REQUESTS, Fault::busy()))?;
    let bytes = body::read(body).await.map_err(|fault| (StatusCode::PAYLOAD_TOO_LARGE, fault))?;
    let failed = |fault: Fault| (status(&fault), fault);
    let request = Request::parse(&bytes).map_err(failed)?;
    if bytes.len() > MOST && !request.has_image() {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, too_large(MOST)));
    }
    drop(bytes);
    let (sender, mut events) = mpsc::unbounded_channel();
    // Whoever has gone is not told.
    let ticket = shared.desk.hand_in(request, language, move |event| drop(sender.send(event))).map_err(failed)?;
    let first = events.recv().await;
    if let Some(Event::Done(Err(fault))) = first {
        return Err(failed(fault));
    }
    let replies = Replies { first, events, language, ticket: Some(ticket), _permit: permit };
    Ok(([(CONTENT_TYPE, "application/octet-stream")], Body::new(replies)).into_response())
}

/// An error as the only frame.
fn refusal(status: StatusCode, fault: &Fault, language: Language) -> Response {
    (status, [(CONTENT_TYPE, "application/octet-stream")], framed(&fault.reply(language), false)).into_response()
}

/// The language that a browser asks for first, of those there are.
fn language(headers: &HeaderMap, otherwise: Language) -> Language {
    let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut best = (0.0, otherwise);
    for entry in wanted.split(',') {
        let (tag, rest) = entry.split_once(';').unwrap_or((entry, ""));
        let weight = rest.trim().strip_prefix("q=").map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0));
        let language = match tag.trim().split('-').next().map(str::to_ascii_lowercase).as_deref() {
            Some("ko") => Language::Korean,
            Some("en") => Language::English,
            _ => continue,
        };
        if weight > best.0 {
            best = (weight, language);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_the_browser() {
        let of = |value: &'static str| {
            let headers = HeaderMap::from_iter([(ACCEPT_LANGUAGE, HeaderValue::from_static(value))]);
            language(&headers, Language::English)
        };
        for korean in ["ko", "ko-KR,ko;q=0.9,en;q=0.8", "fr, ko;q=0.5", "en;q=0.2, KO;q=0.3"] {
            assert_eq!(of(korean), Language::Korean, "{korean}");
        }
        for english in ["", "en-US,ko;q=0.9", "fr", "ko;q=0", "ko;q=x", ";;,,"] {
            assert_eq!(of(english), Language::English, "{english}");
        }
    }
}
