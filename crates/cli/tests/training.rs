//! Training runs through the command: what a kill, a full disk or a wrong file leaves behind.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use foveal_models::layer::Family;

const SMALL: [&str; 12] =
    ["--dims", "32", "--heads", "2", "--layers", "2", "--context", "16", "--batch", "4", "--save-every", "1"];

fn train(folder: &Path) -> Command {
    let text = folder.join("text.txt");
    if !text.exists() {
        let lines: String = (0..400).map(|i| format!("line {} of {} and {}\n", i, i * i % 97, i * 7 % 13)).collect();
        std::fs::write(&text, lines).expect("a text");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_foveal"));
    command.args(["train", "text"]).arg(text).arg("-d").arg(folder.join("run")).args(SMALL);
    command
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the command starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The losses of a run so far.
fn losses(folder: &Path) -> Vec<String> {
    let csv = std::fs::read_to_string(folder.join("run/losses.csv")).unwrap_or_default();
    csv.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_kill_at_any_moment_leaves_a_state_to_go_on_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = tempfile::tempdir().expect("a folder");
    let done = run(train(whole.path()).args(["--steps", "40", "--evaluate-every", "1000"]));
    assert!(done.status.success(), "{}", said(&done));
    let state = folder.path().join("run/state.safetensors");
    // A state is written after every step, so that most kills hit one that is being written.
    for wait in [3, 17, 29, 41, 53] {
        let mut command = train(folder.path());
        command.args(["--steps", "40", "--evaluate-every", "1000"]).stdout(Stdio::null()).stderr(Stdio::null());
        if state.exists() {
            command.arg("--resume");
        }
        let mut child = command.spawn().expect("the command starts");
        let begin = Instant::now();
        while !state.exists() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    let done = run(train(folder.path()).args(["--steps", "40", "--evaluate-every", "1000", "--resume"]));
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(losses(folder.path()), losses(whole.path()));
}

#[test]
fn a_full_disk_is_an_error_that_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let steps = ["--steps", "6", "--evaluate-every", "1000"];
    let done = run(train(folder.path()).args(steps));
    assert!(done.status.success(), "{}", said(&done));
    let state = folder.path().join("run/state.safetensors");
    let before = std::fs::read(&state).expect("a state");
    // No file may grow beyond 16 blocks: writing ends in the middle, as on a full disk.
    let command = train(folder.path());
    let arguments = command.get_args().map(|x| x.to_str().expect("UTF-8").to_owned()).collect::<Vec<_>>();
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""]).arg(command.get_program());
    let done = run(limited.args(&arguments).args(["--steps", "12", "--evaluate-every", "1000", "--resume"]));
    assert!(!done.status.success());
    assert!(said(&done).contains("state.safetensors: File too large"), "{}", said(&done));
    assert_eq!(std::fs::read(&state).expect("a state"), before);
    let left: Vec<_> = std::fs::read_dir(folder.path().join("run")).expect("a folder").flatten().collect();
    assert!(left.iter().all(|file| !file.file_name().to_string_lossy().contains("saving")), "{left:?}");
    // With room again, the run goes on.
    let done = run(train(folder.path()).args(["--steps", "12", "--evaluate-every", "1000", "--resume"]));
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(losses(folder.path()).len(), 12);
}

#[test]
fn every_attention_of_a_text_can_be_trained_and_looked_at() {
    for family in Family::all() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = if family.name() == "bigbird" { "bigbird:block=2".to_owned() } else { family.to_string() };
        let done = run(train(folder.path()).args(["--steps", "3", "--evaluate-every", "1000", "--attention", &name]));
        if matches!(family.name(), "swin" | "fourier") {
            assert!(!done.status.success() && said(&done).contains("its place is"), "{}", said(&done));
            continue;
        }
        assert!(done.status.success(), "{name}: {}", said(&done));
        let mut see = Command::new(env!("CARGO_BIN_EXE_foveal"));
        see.args(["see", "line 3 of 7", "--head", "1", "--model"]).arg(folder.path().join("run"));
        let seen = run(&mut see);
        assert!(seen.status.success(), "{name}: {}", said(&seen));
        let mut generate = Command::new(env!("CARGO_BIN_EXE_foveal"));
        generate.args(["generate", "line 1", "--slide", "--most", "20", "--model"]).arg(folder.path().join("run"));
        let written = run(&mut generate);
        assert!(written.status.success() && !written.stdout.is_empty(), "{name}: {}", said(&written));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let done = run(train(folder.path()).args(["--attention", "sofmax"]));
    assert!(done.status.code() == Some(2) && said(&done).contains("longformer:window=32"), "{}", said(&done));
}
