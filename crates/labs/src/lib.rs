//! Experiments with attention, each computed here and now.
//!
//! A [`Lab`] has a name, a title and a summary in English and Korean, and [`Knob`]s to turn. Running it gives a [`Report`]: prose,
//! tables and pictures in reading order, in both languages at once, and the figures behind them for other programs. A lab
//! prints nothing and reads nothing but the model that it is given; the same knobs give the same report, but for measured times.
//!
//! ```
//! use foveal_labs::{Knobs, Watch, find};
//! use foveal_view::Language;
//!
//! let report = find("causal")?.run(&Knobs::new().numbers("tokens", [4]), Watch::silent())?;
//! assert_eq!(report.figures["positions"][0]["future_with"], 0.0);
//! let table = report.tables().next().expect("a table");
//! assert_eq!(table.title.get(Language::Korean), "위치별 가중치의 합");
//! # Ok::<(), foveal_labs::Error>(())
//! ```

#![deny(unsafe_code)]

mod bilingual;
mod class;
mod clock;
mod error;
mod knob;
mod lab;
mod memory;
mod number;
mod relations;
mod report;
mod schooling;
mod table;
mod tiny;
mod watch;

pub use bilingual::{Bilingual, Text, text};
pub use class::class_name;
pub use error::{Error, Result};
pub use foveal_view::Language;
pub use knob::{Knob, Knobs, Value, Values};
pub use lab::{LABS, Lab, find};
pub use relations::{FollowedRelation, relations};
pub use report::{Report, Section};
pub use table::Table;
pub use watch::{Progress, Watch};
