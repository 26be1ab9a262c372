//! Plain loops, compiled for each instruction set.

use crate::isa::{Isa, Supported};
use crate::kernel::simd::Simd;
use crate::kernel::{Kernel, dispatch};

/// Runs `work` compiled for the best instruction set of the machine, so that the compiler can turn its loops into wide
/// vector code. A program is otherwise compiled for what every processor of its kind has, on x86-64 four lanes.
///
/// Only what is inlined into `work` is compiled so: give the closure `#[inline(always)]` as below, as well as the
/// functions it calls, and start threads outside.
///
/// ```
/// fn scale(x: &mut [f32], by: f32) {
///     foveal_compute::vectorise(
///         #[inline(always)]
///         || x.iter_mut().for_each(|x| *x *= by),
///     );
/// }
/// let mut x = [1.0, 2.0, 3.0];
/// scale(&mut x, 2.0);
/// assert_eq!(x, [2.0, 4.0, 6.0]);
/// ```
#[inline]
pub fn vectorise<R>(work: impl FnOnce() -> R) -> R {
    struct Loop<F>(F);
    impl<R, F: FnOnce() -> R> Kernel for Loop<F> {
        type Output = R;
        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> R {
            self.0()
        }
    }
    // A wrong FOVEAL_ISA is reported by the calls that can fail; here it means the same as none.
    dispatch(Isa::resolve(None).unwrap_or(Supported::best()), Loop(work))
}
