//! The ranks of a run: who they are, and whether they are about to do the same.

use std::fmt::Write as _;

use foveal_models::train::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::faults::Watch;
use crate::wire::Wire;

/// All ranks of a run. There is one in a process, from its start to its end.
///
/// While it lives, the ranks watch each other: if one of them ends without having said so, all others end with an error that
/// names it, within seconds.
pub struct World {
    members: Vec<Member>,
    // Before the wire: ranks take leave of each other before MPI ends.
    _watch: Option<Watch>,
    wire: Wire,
}

/// One of the processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number.
    pub rank: usize,
    /// The machine it runs on.
    pub host: String,
    /// Its process there.
    pub process: u32,
    /// Its threads.
    pub threads: usize,
    /// The version of Foveal.
    pub version: String,
}

impl World {
    /// Starts MPI, learns who the others are, and begins to watch them.
    ///
    /// # Errors
    /// If MPI does not start, or the ranks are of different versions.
    pub fn start() -> Result<World> {
        let wire = Wire::start()?;
        let own = Member {
            rank: wire.rank(),
            host: wire.host(),
            process: std::process::id(),
            threads: rayon::current_num_threads(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let texts = wire.gather_text(&serde_json::to_string(&own).expect("numbers and texts"));
        let member = |(rank, text): (usize, &String)| {
            serde_json::from_str(text).map_err(|_| Error::Disagree {
                what: "the version of Foveal".into(),
                differences: vec![format!("rank {rank} is a program that this one does not know")],
            })
        };
        let members = texts.iter().enumerate().map(member).collect::<Result<Vec<Member>>>()?;
        let watch = Watch::start(&wire, &members);
        let world = World { members, _watch: watch, wire };
        world.agree("the version of Foveal", &Fingerprint::default().fact("version", &own.version))?;
        Ok(world)
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.wire.rank()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.wire.size()
    }

    /// Who they are.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The same as a table to print.
    pub fn table(&self) -> String {
        let width = self.members.iter().map(|member| member.host.len()).max().unwrap_or(0).max(4);
        let mut table = format!("rank  {:width$}  process  threads\n", "host");
        for Member { rank, host, process, threads, .. } in &self.members {
            writeln!(table, "{rank:4}  {host:width$}  {process:7}  {threads:7}").expect("text takes text");
        }
        table
    }

    /// Checks that all ranks are about to do the same.
    ///
    /// # Errors
    /// [`Error::Disagree`], on all ranks, with what differs from rank 0.
    pub fn agree(&self, what: &str, facts: &Fingerprint) -> Result<()> {
        let text = serde_json::to_string(facts).expect("names and texts");
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            // FNV-1a.
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let hashes = self.wire.gather_number(hash);
        if hashes.iter().all(|other| *other == hashes[0]) {
            return Ok(());
        }
        let all = self.wire.gather_text(&text);
        let facts = |rank: usize| serde_json::from_str::<Fingerprint>(&all[rank]).unwrap_or_default();
        let first = facts(0);
        let differences = (1..self.size()).flat_map(|rank| {
            let differences = first.differences(&facts(rank));
            differences
                .into_iter()
                .map(move |difference| format!("rank {rank} has {}", difference.replace("now ", "not ")))
        });
        Err(Error::Disagree { what: what.to_owned(), differences: differences.collect() })
    }

    /// Waits until all ranks are here.
    pub fn barrier(&self) {
        self.wire.barrier();
    }

    /// A text of every rank, on all of them.
    pub fn gather(&self, own: &str) -> Vec<String> {
        self.wire.gather_text(own)
    }

    /// Adds up numbers over all ranks.
    pub fn sum(&self, numbers: &mut [f64]) {
        self.wire.sum(numbers);
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }
}
