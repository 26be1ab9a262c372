//! Starting the ranks of a run.

use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};

/// A command that starts `program` on so many ranks, with Open MPI's or MPICH's `mpirun`, or what the variable `MPIRUN` says. More
/// ranks than processors are allowed.
///
/// # Errors
/// If there is no such program.
pub fn mpirun(ranks: usize, program: &Path) -> Result<Command> {
    let name = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let version = Command::new(&name).arg("--version").output().map_err(|error| Error::NotStarted {
        problem: format!("`{name}` does not run ({error}); install MPI, for instance Debian's mpich"),
    })?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let mut command = Command::new(&name);
    if version.contains("Open MPI") || version.contains("OpenRTE") {
        command.args(["--oversubscribe", "--bind-to", "none"]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    command.args(["-n", &ranks.to_string()]).arg(program);
    Ok(command)
}

/// Whether this process was started by `mpirun`, as far as the environment tells.
pub fn is_rank() -> bool {
    ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"].iter().any(|name| std::env::var_os(name).is_some())
}
