//! Processes that train one model together.
//!
//! Each learns from its share of every batch, and gradients are added up between all of them, in buckets: those of the last
//! layers are on their way while the first layers are still gone through. All then have the same gradients, and take the same
//! step.
//!
//! ```text
//! for each block, from the last to the first:   backward;  finished(its gradients)
//!                                               a full bucket starts on its way; others make progress
//! the gradients that nobody has announced;      wait for all sums, write them back
//! ```

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::adamw;
use crate::layer::Parameters;

/// The processes of a training, and the means to add up between them. One that cannot reach the others ends.
pub trait Peers: Send + Sync {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// Starts to add up numbers over all peers. All start the same sums in the same order.
    fn start_sum(&self, numbers: Vec<f32>);

    /// Lets sums make progress.
    fn poll(&self);

    /// Waits for all sums that were started, and gives them back in their order: the same to the bit for all peers.
    fn finish_sums(&self) -> Vec<Vec<f32>>;

    /// Adds up a few numbers over all peers, and waits for it.
    fn sum(&self, numbers: &mut [f64]);
}

/// Numbers of a bucket, 1 MiB: so many that sending them takes longer than sending nothing.
const BUCKET: usize = 1 << 18;

thread_local! {
    /// The buckets that the backward pass of this thread fills.
    static BUCKETS: RefCell<Option<Buckets>> = const { RefCell::new(None) };
}

/// Gradients on their way to their sums.
struct Buckets {
    peers: Arc<dyn Peers>,
    /// Whether gradients are announced: in the last backward pass of a step.
    announced: bool,
    open: Vec<f32>,
    /// Where the numbers of each array begin among all that were put in, by where it lies in memory.
    places: HashMap<usize, usize>,
    count: usize,
}

impl Buckets {
    /// Puts an array in, once.
    fn put(&mut self, numbers: &[f32]) {
        let address = numbers.as_ptr() as usize;
        if numbers.is_empty() || self.places.contains_key(&address) {
            return;
        }
        self.places.insert(address, self.count);
        self.count += numbers.len();
        let mut rest = numbers;
        while !rest.is_empty() {
            let (fits, after) = rest.split_at(rest.len().min(BUCKET - self.open.len()));
            self.open.extend_from_slice(fits);
            rest = after;
            if self.open.len() == BUCKET {
                self.send();
            }
        }
    }

    fn send(&mut self) {
        self.peers.start_sum(std::mem::take(&mut self.open));
    }
}

/// Runs the passes of a step on this thread, and adds up `grad`, which they add to, over all peers.
pub(super) fn learn_together<M: Parameters, R, E>(
    peers: &Arc<dyn Peers>,
    grad: &mut M,
    learn: impl FnOnce(&mut M) -> Result<R, E>,
) -> Result<R, E> {
    let buckets = Buckets { peers: peers.clone(), announced: false, open: vec![], places: HashMap::new(), count: 0 };
    BUCKETS.set(Some(buckets));
    let learned = learn(grad);
    let mut buckets = BUCKETS.take().expect("set above, on this thread");
    let learned = learned?;
    let mut arrays = adamw::slices_mut(grad);
    arrays.iter().for_each(|array| buckets.put(array));
    if !buckets.open.is_empty() {
        buckets.send();
    }
    let sums = peers.finish_sums().concat();
    for array in arrays.iter_mut().filter(|array| !array.is_empty()) {
        let place = buckets.places[&(array.as_ptr() as usize)];
        array.copy_from_slice(&sums[place..place + array.len()]);
    }
    Ok(learned)
}

/// Runs the last backward pass of a step: what it has [`finished`], nobody adds to.
pub(super) fn announcing<R>(backward: impl FnOnce() -> R) -> R {
    let announce = |announced: bool| {
        BUCKETS.with_borrow_mut(|buckets| buckets.iter_mut().for_each(|buckets| buckets.announced = announced));
    };
    announce(true);
    let result = backward();
    announce(false);
    result
}

/// Says that a backward pass adds nothing more to the gradients of this part of a model.
pub(crate) fn finished(part: &impl Parameters) {
    BUCKETS.with_borrow_mut(|buckets| {
        let Some(buckets) = buckets.as_mut().filter(|buckets| buckets.announced) else { return };
        part.visit("", &mut |_, gradient| {
            if let Some(numbers) = gradient.to_slice_memory_order() {
                buckets.put(numbers);
            }
        });
        buckets.peers.poll();
    });
}
