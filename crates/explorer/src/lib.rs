//! The live side of the attention explorer.
//!
//! [`Explorer`] answers questions about models and what they have read: docs/page.md lists them. [`Desk`] has them answered
//! on threads of its own, short ones beside long ones, and drops those that are no longer wanted. [`Server`] puts both behind
//! a local web server for one user (feature `server`, on by default).

#![deny(unsafe_code)]

mod answer;
mod asker;
mod catalog;
mod desk;
mod explorer;
mod fault;
pub mod image;
mod matrix;
mod overview;
mod page;
mod pool;
mod read;
mod reply;
mod request;
mod run;
mod runs;
#[cfg(feature = "server")]
mod server;
mod write;

pub use asker::{Asker, Cancel};
pub use catalog::{Catalog, Origin, Reads};
pub use desk::{Desk, Event, Ticket};
pub use explorer::{Explorer, Work};
pub use fault::{Code, Fault, Text};
pub use page::page_group;
pub use reply::Reply;
pub use request::{
    At, GenerateRequest, HeadName, MapRequest, Measure, Pool, Request, RunRequest, SiteKind, Span, TileRequest,
};
pub use run::{Axis, Next, Reading, Run};
#[cfg(feature = "server")]
pub use server::{Server, ServerOptions, Stopper};
