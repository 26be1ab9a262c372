//! MPI, as far as it is needed here, with owned buffers: the one file that calls it.
//!
//! A message under way holds its buffer, so that nobody can free or change it before MPI is done with it:
//!
//! ```text
//! wire.send(Arc<Vec<f32>>, to, tag)   → Sending      done() when the buffer is free again; others may read it meanwhile
//! wire.receive(Vec<f32>, from, tag)   → Receiving    poll() gives the buffer back, filled
//! wire.start_sum(Vec<f32>)            → Summing      poll() gives the sums over all ranks back
//! ```
//!
//! MPI makes progress only while it is called: whoever waits or works has to poll. All calls take the same lock, so that MPI
//! needs to know of no more than one thread at a time (`MPI_THREAD_SERIALIZED`).

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::ffi;

use crate::error::{Error, Result};

/// The numbers of a message at most: what MPI counts with is an `int`.
pub const MOST: usize = i32::MAX as usize;

/// The ranks of a run, and the means to talk to them.
pub struct Wire {
    comm: Mutex<Comm>,
    rank: usize,
    size: usize,
    /// Ends MPI when it is dropped.
    universe: Option<ManuallyDrop<Universe>>,
}

struct Comm(ffi::MPI_Comm);

// SAFETY: a communicator is a handle; MPI was told that threads take turns, and the lock around it makes them.
unsafe impl Send for Comm {}

/// A request handle, by which MPI knows what is under way.
struct Request(ffi::MPI_Request);

// SAFETY: as for `Comm`; requests are used under its lock alone.
unsafe impl Send for Request {}

impl Wire {
    /// Starts MPI.
    pub fn start() -> Result<Wire> {
        let refused = |problem: &str| Error::NotStarted { problem: problem.to_owned() };
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or_else(|| refused("it was started before in this process"))?;
        if threading < Threading::Serialized {
            return Err(refused("this MPI allows no thread but the first to call it"));
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI has been started; the places to write to live until the calls return.
        let comm = unsafe {
            ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &raw mut rank);
            ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &raw mut size);
            ffi::RSMPI_COMM_WORLD
        };
        let universe = Some(ManuallyDrop::new(universe));
        Ok(Wire { comm: Mutex::new(Comm(comm)), rank: rank as usize, size: size as usize, universe })
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    fn comm(&self) -> MutexGuard<'_, Comm> {
        self.comm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the machine.
    pub fn host(&self) -> String {
        let _comm = self.comm();
        // SAFETY: MPI writes at most as many characters as it says here, and how many these were.
        let name = unsafe {
            let mut name = vec![0u8; ffi::RSMPI_MAX_PROCESSOR_NAME as usize + 1];
            let mut length = 0;
            ffi::MPI_Get_processor_name(name.as_mut_ptr().cast::<c_char>(), &raw mut length);
            name.truncate(length as usize);
            name
        };
        String::from_utf8_lossy(&name).into_owned()
    }

    /// Waits until all ranks are here.
    pub fn barrier(&self) {
        let comm = self.comm();
        // SAFETY: the communicator is valid until MPI ends, with `self`.
        unsafe { ffi::MPI_Barrier(comm.0) };
    }

    /// The bytes of all ranks, in their order, where all have as many.
    fn gather_equal(&self, own: &[u8]) -> Vec<u8> {
        let comm = self.comm();
        let mut all = vec![0u8; own.len() * self.size];
        // SAFETY: the second buffer has room for the first one of every rank; both are ours until the call returns.
        unsafe {
            let (data, count) = (own.as_ptr().cast::<c_void>(), own.len() as c_int);
            let into = all.as_mut_ptr().cast::<c_void>();
            ffi::MPI_Allgather(data, count, ffi::RSMPI_UINT8_T, into, count, ffi::RSMPI_UINT8_T, comm.0);
        }
        all
    }

    /// A number of every rank.
    pub fn gather_number(&self, own: u64) -> Vec<u64> {
        let all = self.gather_equal(&own.to_le_bytes());
        all.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
    }

    /// A text of every rank, of any length.
    pub fn gather_text(&self, own: &str) -> Vec<String> {
        let lengths = self.gather_number(own.len() as u64);
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        let mut padded = own.as_bytes().to_vec();
        padded.resize(longest.max(1), 0);
        let all = self.gather_equal(&padded);
        let text = |(bytes, length): (&[u8], &u64)| String::from_utf8_lossy(&bytes[..*length as usize]).into_owned();
        all.chunks_exact(longest.max(1)).zip(&lengths).map(text).collect()
    }

    /// Adds up over all ranks, and waits for it.
    pub fn sum(&self, numbers: &mut [f64]) {
        let comm = self.comm();
        for part in numbers.chunks_mut(MOST) {
            let own = part.to_vec();
            // SAFETY: both buffers have as many numbers, and are ours until the call returns.
            unsafe {
                let (data, into) = (own.as_ptr().cast::<c_void>(), part.as_mut_ptr().cast::<c_void>());
                ffi::MPI_Allreduce(data, into, own.len() as c_int, ffi::RSMPI_DOUBLE, ffi::RSMPI_SUM, comm.0);
            }
        }
    }

    /// Starts to send. The numbers may be read by others until they are gone.
    ///
    /// # Panics
    /// If there are more numbers than [`MOST`].
    pub fn send(&self, numbers: &Arc<Vec<f32>>, to: usize, tag: usize) -> Sending<'_> {
        assert!(numbers.len() <= MOST, "a message of {} numbers, at most {MOST}", numbers.len());
        let (comm, mut request) = (self.comm(), null_request());
        // SAFETY: the buffer is shared, so nobody changes it, and it lives as long as the `Sending` that holds it, which lets go
        // of it only when MPI says that it is done.
        unsafe {
            let (data, count) = (numbers.as_ptr().cast::<c_void>(), numbers.len() as c_int);
            ffi::MPI_Isend(data, count, ffi::RSMPI_FLOAT, to as c_int, tag as c_int, comm.0, &raw mut request.0);
        }
        Sending { wire: self, request, buffer: ManuallyDrop::new(numbers.clone()), done: false }
    }

    /// Starts to receive as many numbers as the buffer holds.
    ///
    /// # Panics
    /// If there are more numbers than [`MOST`].
    pub fn receive(&self, mut buffer: Vec<f32>, from: usize, tag: usize) -> Receiving<'_> {
        assert!(buffer.len() <= MOST, "a message of {} numbers, at most {MOST}", buffer.len());
        let (comm, mut request) = (self.comm(), null_request());
        // SAFETY: the buffer is owned, and moved into the `Receiving`, which gives it back only when MPI says that it is done.
        // Moving a vector does not move its numbers.
        unsafe {
            let (into, count) = (buffer.as_mut_ptr().cast::<c_void>(), buffer.len() as c_int);
            ffi::MPI_Irecv(into, count, ffi::RSMPI_FLOAT, from as c_int, tag as c_int, comm.0, &raw mut request.0);
        }
        Receiving { wire: self, request, buffer: ManuallyDrop::new(buffer), done: false }
    }

    /// Starts to add up over all ranks.
    ///
    /// # Panics
    /// If there are more numbers than [`MOST`].
    pub fn start_sum(&self, own: Vec<f32>) -> Summing {
        assert!(own.len() <= MOST, "a message of {} numbers, at most {MOST}", own.len());
        let (comm, mut request) = (self.comm(), null_request());
        let mut sum = vec![0.0f32; own.len()];
        // SAFETY: both buffers are owned and have as many numbers; the `Summing` keeps them until MPI says that it is done.
        unsafe {
            let (data, into) = (own.as_ptr().cast::<c_void>(), sum.as_mut_ptr().cast::<c_void>());
            let count = own.len() as c_int;
            ffi::MPI_Iallreduce(data, into, count, ffi::RSMPI_FLOAT, ffi::RSMPI_SUM, comm.0, &raw mut request.0);
        }
        Summing { request, buffers: ManuallyDrop::new((own, sum)), done: false }
    }

    /// Whether what the request stands for is done. It is not asked for again then.
    fn test(&self, request: &mut Request) -> bool {
        let _comm = self.comm();
        let mut done = 0;
        // SAFETY: the request was made by MPI and has not been completed.
        unsafe { ffi::MPI_Test(&raw mut request.0, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
        done != 0
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(mut universe) = self.universe.take() {
            // A rank that panics would wait here for the others, who wait for it.
            if !std::thread::panicking() {
                // SAFETY: it is dropped here and nowhere else.
                unsafe { ManuallyDrop::drop(&mut universe) };
            }
        }
    }
}

fn null_request() -> Request {
    // SAFETY: a constant of the library.
    Request(unsafe { ffi::RSMPI_REQUEST_NULL })
}

/// Ends this process at once, without waiting for anybody: some rank is gone, and whatever waits for it waits for ever.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: it takes no pointer and does not return; nothing of this process is needed any more.
    unsafe { libc::_exit(code) }
}

/// A message that is being sent. Dropped before it is done, its buffer stays allocated, as MPI may still read it.
pub struct Sending<'w> {
    wire: &'w Wire,
    request: Request,
    buffer: ManuallyDrop<Arc<Vec<f32>>>,
    done: bool,
}

impl Sending<'_> {
    /// Whether the buffer is free again.
    pub fn done(&mut self) -> bool {
        self.done = self.done || self.wire.test(&mut self.request);
        self.done
    }

    /// The buffer of a message that is done.
    ///
    /// # Panics
    /// If it is not.
    pub fn into_buffer(mut self) -> Arc<Vec<f32>> {
        assert!(self.done, "the message is under way");
        // SAFETY: MPI is done with it, and `drop` is not called on what is forgotten.
        let buffer = unsafe { ManuallyDrop::take(&mut self.buffer) };
        std::mem::forget(self);
        buffer
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if self.done {
            // SAFETY: MPI is done with it, and it is dropped once.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}

/// A message that is awaited. Dropped before it is there, its buffer stays allocated, as MPI may still write to it.
pub struct Receiving<'w> {
    wire: &'w Wire,
    request: Request,
    buffer: ManuallyDrop<Vec<f32>>,
    done: bool,
}

impl Receiving<'_> {
    /// The numbers, when they are there.
    pub fn poll(&mut self) -> Option<Vec<f32>> {
        if self.done || !self.wire.test(&mut self.request) {
            return None;
        }
        self.done = true;
        // SAFETY: MPI is done with it; it is taken once, as `done` says.
        Some(unsafe { ManuallyDrop::take(&mut self.buffer) })
    }
}

/// A sum over all ranks under way. Dropped before it is done, its buffers stay allocated, as MPI may still use them.
pub struct Summing {
    request: Request,
    buffers: ManuallyDrop<(Vec<f32>, Vec<f32>)>,
    done: bool,
}

impl Summing {
    /// The sums, when all ranks have given theirs.
    pub fn poll(&mut self, wire: &Wire) -> Option<Vec<f32>> {
        if self.done || !wire.test(&mut self.request) {
            return None;
        }
        self.done = true;
        // SAFETY: MPI is done with both; they are taken once, as `done` says.
        Some(unsafe { ManuallyDrop::take(&mut self.buffers) }.1)
    }
}
