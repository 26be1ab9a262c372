//! What a page to explore holds.

use clap::Args;

/// For files that end in .html.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PageOptions {
    /// A page (.html) stores queries and keys in 32 bits: every number it prints is exact
    #[arg(long)]
    pub exact: bool,
    /// A page also stores values and W_O, to show the arithmetic of a cell to its end
    #[arg(long)]
    pub values: bool,
}
