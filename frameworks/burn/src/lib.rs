#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod arrays;
mod autodiff;
mod operation;

pub use foveal;
pub use foveal_models::trace::watch;
pub use operation::{Error, attention};
