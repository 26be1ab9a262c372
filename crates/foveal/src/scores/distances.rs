//! Tables of biases by clipped distance.

use crate::kernel::options;
use crate::kernel::simd::Simd;

/// A run of keys over a table of clipped distances: `..near` fall on its first entry, `near..far` on successive entries from
/// `entry` on, `far..` on its last.
pub(crate) struct Distances {
    pub near: usize,
    pub far: usize,
    pub entry: usize,
    /// The number of keys.
    pub len: usize,
}

impl Distances {
    /// `len` keys, the first of them at `distance`.
    #[inline(always)]
    pub fn new(distance: isize, len: usize, table: usize) -> Distances {
        // The entry of the first key, were the table without ends.
        let entry = distance + (table / 2) as isize;
        let clip = |x: isize| x.clamp(0, len as isize) as usize;
        let (near, far) = (clip(-entry), clip(table as isize - entry));
        Distances { near, far, entry: (entry + near as isize).clamp(0, table as isize) as usize, len }
    }

    /// row ⟵ row + table
    #[inline(always)]
    pub fn add<S: Simd>(&self, simd: S, table: &[f32], row: &mut [f32]) {
        let (near, rest) = row.split_at_mut(self.near);
        let (middle, far) = rest.split_at_mut(self.far - self.near);
        options::add_constant(simd, near, table[0]);
        options::add(simd, middle, &table[self.entry..]);
        options::add_constant(simd, far, table[table.len() - 1]);
    }

    /// table ⟵ table + row, the gradient of [`add`](Distances::add), with an addition to numbers of any kind.
    #[inline(always)]
    pub fn collect<T: Copy>(&self, row: &[f32], table: &mut [T], add: impl Fn(T, f32) -> T) {
        let (near, rest) = row.split_at(self.near);
        let (middle, far) = rest.split_at(self.far - self.near);
        let last = table.len() - 1;
        near.iter().for_each(|x| table[0] = add(table[0], *x));
        far.iter().for_each(|x| table[last] = add(table[last], *x));
        table[self.entry..].iter_mut().zip(middle).for_each(|(t, x)| *t = add(*t, *x));
    }
}
