//! Bodies: requests that are read within bounds, and replies that are sent frame by frame.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use foveal_view::Language;
use hyper::body::{Bytes, Frame};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::desk::{Event, Ticket};
use crate::fault::{Code, Fault};
use crate::reply::Reply;

/// Bytes of a request with an image, and of any other.
pub const MOST_WITH_IMAGE: usize = 16 << 20;
pub const MOST: usize = 1 << 20;
/// How long a body may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// The length that a request says it has; the largest there is if it does not say.
pub fn length(headers: &HeaderMap) -> usize {
    let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    said.unwrap_or(MOST_WITH_IMAGE)
}

/// The body of a request.
///
/// # Errors
/// If it is too large, or does not come.
pub async fn read(body: Body) -> Result<Bytes, Fault> {
    match tokio::time::timeout(PATIENCE, to_bytes(body, MOST_WITH_IMAGE)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_large(MOST_WITH_IMAGE)),
        Err(_) => Err(Fault::request("the request did not come in time", "요청이 제때 도착하지 않았습니다")),
    }
}

/// A body with more bytes than are read.
pub fn too_large(most: usize) -> Fault {
    let mebibytes = most >> 20;
    Fault::request(
        format!("the request is too large; at most {mebibytes} MiB are read"),
        format!("요청이 너무 큽니다. {mebibytes} MiB까지 읽습니다"),
    )
}

/// A frame with its length in front.
pub fn framed(reply: &Reply, part: bool) -> Bytes {
    let frame = reply.frame(part);
    let mut bytes = Vec::with_capacity(4 + frame.len());
    bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&frame);
    bytes.into()
}

/// A reply on its way. When the client has gone it is dropped, and the question with it.
pub struct Replies {
    pub first: Option<Event>,
    pub events: UnboundedReceiver<Event>,
    pub language: Language,
    pub ticket: Option<Ticket>,
    /// The share of the memory for requests that this one takes.
    pub _permit: OwnedSemaphorePermit,
}

impl hyper::body::Body for Replies {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ticket.is_none() {
            return Poll::Ready(None);
        }
        let event = match self.first.take() {
            Some(event) => Some(event),
            None => std::task::ready!(self.events.poll_recv(context)),
        };
        let frame = match event {
            Some(Event::Part(part)) => framed(&part, true),
            Some(Event::Done(answer)) => {
                self.ticket = None;
                framed(&answer.unwrap_or_else(|fault| fault.reply(self.language)), false)
            }
            None => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

/// The status of a failure.
pub fn status(fault: &Fault) -> axum::http::StatusCode {
    use axum::http::StatusCode;
    match fault.code {
        Code::Request => StatusCode::BAD_REQUEST,
        Code::Gone => StatusCode::NOT_FOUND,
        Code::Busy => StatusCode::TOO_MANY_REQUESTS,
        Code::Failed | Code::Stopped => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
