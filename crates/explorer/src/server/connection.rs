//! Connections: so many at a time, each with limits on how long it may keep silent.
//!
//! A client that sends its headers slowly is closed by hyper; one that does not read its reply is closed here, when nothing
//! could be written for a while; one that has gone is noticed by hyper, which drops the reply and with it the question.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep};

/// Connections at a time: more than a browser opens, and than a test of 200 clients.
const CONNECTIONS: usize = 512;
/// How long the head of a request may take, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(20);
/// How long a client may leave its reply unread.
const UNREAD: Duration = Duration::from_secs(30);
/// How long to wait before trying again where no connection can be taken, as when there are no more files.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a request's head.
const MOST_HEAD: usize = 64 << 10;

/// Takes connections until `stop` says so.
pub async fn accept(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let (places, mut stop) = (Arc::new(Semaphore::new(CONNECTIONS)), pin!(stop));
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            () = &mut stop => return,
            (accepted, place) = next => match accepted {
                Ok((stream, _)) => (stream, place),
                Err(_) => {
                    sleep(PAUSE).await;
                    continue;
                }
            },
        };
        let router = router.clone();
        tokio::spawn(async move {
            let _place = place;
            serve(stream, router).await;
        });
    }
}

async fn serve(stream: TcpStream, router: Router) {
    // Answers are whole when they are written; waiting to fill packets would only delay them.
    stream.set_nodelay(true).ok();
    let io = TokioIo::new(Impatient { stream, stalled: None });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(MOST_HEAD);
    // A client that leaves or breaks the rules is no error of ours.
    http.serve_connection(io, TowerToHyperService::new(router)).await.ok();
}

/// A stream that fails when nothing could be written to it for a while.
struct Impatient {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    /// Watches the clock while a write waits.
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + UNREAD)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
