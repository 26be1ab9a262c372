#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod arrays;
mod cache;
mod operation;

pub use cache::Cache;
pub use foveal;
pub use foveal_models::trace::watch;
pub use operation::attention;
