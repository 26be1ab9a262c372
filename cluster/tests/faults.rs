//! Ranks that are killed: the run ends at once, says who it was where `mpirun` leaves it the time, and goes on from its state as if nothing had been.
#![allow(missing_docs)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use foveal_cluster::launch;
use foveal_models::layer::Random;

const STEPS: usize = 60;
const RANKS: usize = 3;
/// Times that a rank is killed.
const KILLED: usize = 10;
/// Within which a run without one of its ranks has to end, on a machine with other work.
const SECONDS: u64 = 15;

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    let mut random = Random::new(std::process::id().into());
    std::fs::write(&text, "To be, or not to be, that is the question. ".repeat(60)).expect("a text");

    let whole = losses(&start(&text, &folder.path().join("whole")).wait_with_output().expect("it ends").stdout);
    assert_eq!(whole.len(), STEPS, "an uninterrupted run");

    let (state, report) = (folder.path().join("state"), folder.path().join("report"));
    let (mut seen, mut killed, mut named) = (vec![String::new(); STEPS], 0, 0);
    while killed < KILLED {
        let mut run = start(&text, &state);
        let mut errors = BufReader::new(run.stderr.take().expect("a pipe"));
        let processes = table(&mut errors);
        assert_eq!(processes.len(), RANKS, "a table of ranks");
        // Anywhere between the first state that is new and the end.
        let rank = random.below(RANKS);
        std::thread::sleep(Duration::from_millis(30 + random.below(400) as u64));
        let at = Instant::now();
        let hit =
            Command::new("kill").args(["-9", &processes[rank].to_string()]).status().is_ok_and(|kill| kill.success());
        let output = run.wait_with_output().expect("it ends");
        let mut ended = output.status.success();
        for (step, loss) in losses(&output.stdout) {
            seen[step - 1] = loss;
            // The ranks had taken leave of each other, or were about to.
            ended |= step == STEPS;
        }
        if ended {
            // From the beginning, for there is nothing left to interrupt.
            std::fs::remove_file(&state).expect("a state");
            continue;
        }
        assert!(hit && at.elapsed() < Duration::from_secs(SECONDS), "it took {:?}", at.elapsed());
        let mut said = std::fs::read_to_string(&report).unwrap_or_default();
        errors.read_to_string(&mut said).expect("text");
        let _ = std::fs::remove_file(&report);
        let own = format!("rank {rank} (process {} on", processes[rank]);
        let of_mpirun = format!("PID {}", processes[rank]);
        named += usize::from(said.contains(&own) || String::from_utf8_lossy(&output.stdout).contains(&of_mpirun));
        killed += 1;
        let temporary = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert!(temporary <= 5, "nothing is left half-written");
    }
    // MPICH's mpirun kills the other ranks within milliseconds; now and then, none of them has spoken by then, and neither has it.
    assert!(2 * named >= KILLED, "{named} of {KILLED} killed ranks were named");
    let output = start(&text, &state).wait_with_output().expect("it ends");
    assert!(output.status.success());
    for (step, loss) in losses(&output.stdout) {
        seen[step - 1] = loss;
    }
    let whole: Vec<String> = whole.into_iter().map(|(_, loss)| loss).collect();
    assert_eq!(seen, whole, "losses as without interruptions");
    println!(
        "{KILLED} ranks killed at random moments: each run ended, {named} named them, and the losses are those of one run"
    );
}

fn start(text: &Path, state: &Path) -> Child {
    let mut command = launch::mpirun(RANKS, Path::new(env!("CARGO_BIN_EXE_foveal-mpi"))).expect("MPI");
    command.args([
        "train-text",
        "--save-every",
        "5",
        "--width",
        "32",
        "--layers",
        "2",
        "--batch",
        "6",
        "--window",
        "16",
    ]);
    command.args(["--steps", &STEPS.to_string(), "--dropout", "0.2", "--state"]).arg(state).arg(text);
    command.env("FOVEAL_MPI_REPORT", state.with_file_name("report"));
    support::timed(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun starts")
}

/// The processes of the ranks, from the table that rank 0 prints.
fn table(errors: &mut impl BufRead) -> Vec<u32> {
    let mut processes = Vec::new();
    let mut line = String::new();
    while processes.len() < RANKS && errors.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        if let [rank, _, process, _] = cells[..]
            && rank.parse() == Ok(processes.len())
        {
            processes.push(process.parse().expect("a number"));
        }
        line.clear();
    }
    processes
}

/// Steps and their losses, as they are printed.
fn losses(output: &[u8]) -> Vec<(usize, String)> {
    let text = String::from_utf8_lossy(output).into_owned();
    let of = |line: &str| {
        let (step, loss) = line.strip_prefix("step ")?.split_once("  loss ")?;
        Some((step.parse().ok()?, loss.split_whitespace().next()?.to_owned()))
    };
    text.lines().filter_map(of).collect()
}
