//! A local web server for one user: the page at `/`, questions at `/ask`.
//!
//! It listens on the loopback interface alone. Who connects is not trusted for that: see `guard` for what a request must
//! have, and `connection` for how slow and vanishing clients are survived.

mod body;
mod connection;
mod guard;
mod routes;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use foveal_view::Language;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::desk::Desk;
use guard::Guard;

/// How the server is to be.
pub struct ServerOptions {
    /// The port; 0 for any that is free.
    pub port: u16,
    /// The language of who does not say.
    pub language: Language,
    /// The page, as HTML. What its policy allows is what the server allows.
    pub page: String,
    /// Is given a new link when the last one has been used.
    pub used: Box<dyn Fn(&str) + Send + Sync>,
}

/// Ends a server. Clones end the same one.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<Notify>);

impl Stopper {
    /// Ends it.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

/// A server that listens.
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    guard: Arc<Guard>,
    state: routes::State,
    stopper: Stopper,
}

impl Server {
    /// Listens on the loopback interface.
    ///
    /// # Errors
    /// If the port is taken, or the system gives no random numbers or threads.
    pub fn bind(desk: Desk, options: ServerOptions) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let (address, guard) = (listener.local_addr()?, Arc::new(Guard::new()?));
        let state = routes::State::new(desk, options, guard.clone(), address);
        Ok(Server { listener, address, guard, state, stopper: Stopper::default() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// A link that opens the page, once: its token is exchanged for a cookie.
    pub fn link(&self) -> String {
        self.guard.link(self.address)
    }

    /// Serves until it is [stopped](Self::stopper).
    ///
    /// # Errors
    /// If the runtime cannot be started.
    pub fn serve(self) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            connection::accept(listener, routes::router(self.state), self.stopper.0.notified()).await;
            Ok(())
        });
        // Answers that are still being computed are of no use to anyone.
        runtime.shutdown_background();
        served
    }
}
