//! The engine as the page calls it: pointers into the module's memory, and numbers.
//!
//! One head is loaded at a time: `load` makes room, the page writes q, k, lse and the options where `pointer` says, and asks.
//! An answer is the number of values at `pointer(OUT)`, or −1 if what was asked for is not there.

mod head;

use std::cell::RefCell;

use foveal::{Error, Pool};
use head::Loaded;

thread_local! {
    static HEAD: RefCell<Loaded> = RefCell::default();
}

fn with<R>(work: impl FnOnce(&mut Loaded) -> R) -> R {
    HEAD.with_borrow_mut(work)
}

fn answer(work: impl FnOnce(&mut Loaded) -> Result<(), Error>) -> i32 {
    with(|head| match work(head) {
        Ok(()) => i32::try_from(head.out.len()).unwrap_or(-1),
        Err(_) => -1,
    })
}

/// Makes room for a head with this many queries and keys of dimension `dim`.
// SAFETY (here and below): the names are this module's own; nothing else is linked into it.
#[unsafe(no_mangle)]
pub extern "C" fn load(queries: usize, keys: usize, dim: usize) {
    with(|head| head.resize(queries, keys, dim));
}

/// Room for `count` numbers of 16 bits.
#[unsafe(no_mangle)]
pub extern "C" fn bits(count: usize) -> *mut u16 {
    with(|head| {
        head.bits.resize(count, 0);
        head.bits.as_mut_ptr()
    })
}

/// Widens these numbers into the queries (0) or the keys (1).
#[unsafe(no_mangle)]
pub extern "C" fn widen(keys: u32) {
    with(|head| head.widen(keys != 0));
}

/// Where something lies: q 0, k 1, lse 2, options 3, the last answer 4, the steps of a cell 5.
#[unsafe(no_mangle)]
pub extern "C" fn pointer(which: u32) -> *const u8 {
    with(|head| match which {
        0 => head.q.as_ptr().cast(),
        1 => head.k.as_ptr().cast(),
        2 => head.lse.as_ptr().cast(),
        3 => head.options.as_ptr().cast(),
        4 => head.out.as_ptr().cast(),
        _ => head.steps.as_ptr().cast(),
    })
}

/// An exact rectangle.
#[unsafe(no_mangle)]
pub extern "C" fn tile(top: usize, bottom: usize, left: usize, right: usize) -> i32 {
    answer(|head| head.tile([top, bottom], [left, right]))
}

/// A picture of a rectangle; `mean` is 0 for the largest of the weights under a pixel.
#[unsafe(no_mangle)]
pub extern "C" fn map(
    top: usize,
    bottom: usize,
    left: usize,
    right: usize,
    height: usize,
    width: usize,
    mean: u32,
) -> i32 {
    let pool = if mean == 0 { Pool::Max } else { Pool::Mean };
    answer(|head| head.map([top, bottom], [left, right], [height, width], pool))
}

/// The arithmetic of a cell.
#[unsafe(no_mangle)]
pub extern "C" fn cell(query: usize, key: usize) -> i32 {
    answer(|head| head.cell(query, key))
}

/// Room for square matrix `which` of `n` rows.
#[unsafe(no_mangle)]
pub extern "C" fn square(which: usize, n: usize) -> *mut f32 {
    with(|head| {
        let square = &mut head.squares[which.min(2)];
        square.resize(n * n, 0.0);
        square.as_mut_ptr()
    })
}

/// Square 2 = square 0 · square 1.
#[unsafe(no_mangle)]
pub extern "C" fn multiply(n: usize) -> i32 {
    answer(|head| head.multiply(n))
}
