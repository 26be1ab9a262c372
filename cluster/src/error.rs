//! What can go wrong between ranks.

/// An error of a call that many ranks make together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// MPI could not be started.
    #[error("MPI did not start: {problem}; start this program with `mpirun -n RANKS foveal-mpi …`")]
    NotStarted {
        /// What it was.
        problem: String,
    },
    /// Ranks were about to do different things.
    #[error("the ranks disagree about {what}: {}; start all of them with the same program, options and data", differences.join("; "))]
    Disagree {
        /// About what.
        what: String,
        /// Which rank, and in which respect.
        differences: Vec<String>,
    },
    /// The tokens of a sequence are not dealt out to the ranks, each to one of them.
    #[error("the shards of {what} do not fit: {problem}; expected every token in the shard of one rank")]
    Shards {
        /// Of which sequence.
        what: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// An array of this rank has not the shape that its shard has.
    #[error("{what} of rank {rank} is {got:?}, expected {expected:?}")]
    Shape {
        /// Which array.
        what: &'static str,
        /// Whose.
        rank: usize,
        /// Its shape.
        got: Vec<usize>,
        /// What it should be.
        expected: Vec<usize>,
    },
    /// A way of exchanging that these options leave out.
    #[error("{way} does not do {what}; {instead}")]
    Way {
        /// Which way.
        way: &'static str,
        /// What it cannot do.
        what: String,
        /// What to do.
        instead: &'static str,
    },
    /// The engine refused a call.
    #[error(transparent)]
    Engine(#[from] foveal::Error),
    /// A model refused a call.
    #[error(transparent)]
    Model(#[from] foveal_models::Error),
}

/// What a call that many ranks make together gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;
