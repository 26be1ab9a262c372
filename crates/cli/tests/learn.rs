//! `foveal learn` from outside: answers, hints, progress, files that are watched.

mod support;

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use support::{foveal, json, run, text};

/// What it prints, and whether it ends with success.
fn learn(folder: &std::path::Path, arguments: &[&str]) -> (String, bool) {
    let output = run(&[&["learn", "--folder", folder.to_str().unwrap()], arguments].concat());
    assert!(text(&output.stderr).is_empty(), "{}", text(&output.stderr));
    (text(&output.stdout), output.status.success())
}

/// The same with lines typed at the prompt.
fn typed(folder: &std::path::Path, arguments: &[&str], lines: &str) -> String {
    let mut child = foveal(&[&["learn", "--folder", folder.to_str().unwrap()], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    text(&output.stdout)
}

#[test]
fn answers_are_judged_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (said, right) = learn(folder.path(), &["weights", "--answer", "0.090 0.245 0.665"]);
    assert!(!right && said.starts_with("✗ You forgot the scale"), "{said}");
    let (said, right) = learn(folder.path(), &["ko", "weights", "--answer", "0.090 0.245 0.665"]);
    assert!(!right && said.starts_with("✗ 스케일을 잊으셨습니다"), "{said}");
    let (said, right) = learn(folder.path(), &["weights", "--answer", "0.186 0.307 0.506"]);
    assert!(right && said.starts_with("✓ Right."), "{said}");
    let (list, _) = learn(folder.path(), &["--list"]);
    assert!(list.starts_with("1 of 40 done") && list.contains("✓  weights"), "{list}");
    assert_eq!(list.lines().count(), 44, "{list}");
    let judged = json(&["learn", "--folder", folder.path().to_str().unwrap(), "mix", "--answer", "19"]);
    assert_eq!((judged["right"].as_bool(), judged["mistake"].as_str()), (Some(true), None));
    assert!(learn(folder.path(), &["--reset"]).1);
    assert!(learn(folder.path(), &["--list"]).0.starts_with("0 of 40"));
}

#[test]
fn hints_come_in_steps() {
    let folder = tempfile::tempdir().unwrap();
    let hints: Vec<String> = (0..4).map(|_| learn(folder.path(), &["weights", "--hint"]).0).collect();
    assert!(hints[0].starts_with("Hint 1/3") && hints[1].starts_with("Hint 2/3"), "{hints:?}");
    assert!(hints[2].starts_with("Hint 3/3") && hints[3] == hints[2], "{hints:?}");
}

#[test]
fn a_session_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let said = typed(folder.path(), &[], "23.333\nhint\n19\nb\nnonsense\nquit\n");
    for part in [
        "(mix: 1 of 40, chapter 1)",
        "✗ That is",
        "Hint 1/2",
        "✓ Right.",
        "(roles: 2 of 40",
        "(score: 3 of 40",
        "? “nonsense” is no number",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let said = typed(folder.path(), &["ko"], "정답\n4 2\n");
    assert!(
        said.contains("(score: 40개 가운데 3번째, 2장)")
            && said.contains("맞는 답: 4.00 2.00")
            && said.contains("✓ 맞습니다."),
        "{said}"
    );
}

#[test]
fn pictures_and_options_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let said = typed(folder.path(), &["mask-1", "--lang", "en"], "quit\n");
    assert!(said.contains("q5") && said.contains("  a) ") && said.contains("  d) "), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn a_program_is_checked_and_a_file_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = "pub fn causal(t: usize, s: usize) -> Vec<Vec<bool>> { (0..t).map(|i| (0..s).map(|j| j <= i).collect()).collect() }";
    let file = folder.path().join("mine.rs");
    std::fs::write(&file, wrong).unwrap();
    let (said, right) = learn(folder.path(), &["causal", "--answer", file.to_str().unwrap()]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!right && words.contains("query 0 stands at key S − T"), "{said}");
    // A number in a file of text: first wrong, then right.
    let child = foveal(&["learn", "mix", "--watch", "--folder", folder.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let answer = folder.path().join("mix.txt");
    let asked = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        std::fs::read_to_string(&answer).ok()
    });
    let asked = asked.expect("a file with the question");
    assert!(asked.starts_with("# A query gives"), "{asked}");
    let progress = || std::fs::read_to_string(folder.path().join("progress.json")).unwrap_or_default();
    std::fs::write(&answer, format!("{asked}70\n")).unwrap();
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        progress().contains("\"mix\"")
    }));
    std::fs::write(&answer, format!("{asked}19\n")).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("✗ That is the sum") && said.contains("✓ Right."), "{said}");
}

#[test]
fn where_there_is_no_cargo_programs_are_skipped_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let output = foveal(&["learn", "softmax", "--answer", "x.rs", "--folder", folder.path().to_str().unwrap()])
        .env("CARGO", "no-such-program")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("softmax: skipped: there is no cargo here"), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_is_refused() {
    let said = support::refused(&["learn", "weight"]);
    assert!(said.contains("did you mean weights?"), "{said}");
    assert!(support::refused(&["learn", "--answer", "3"]).contains("needs the name of an exercise"));
    assert!(support::refused(&["learn", "mix", "roles"]).contains("one exercise at a time"));
}

#[test]
fn all_of_it_is_there_for_other_programs() {
    let all = json(&["learn", "--list"]);
    let exercises = all["exercises"].as_array().unwrap();
    assert_eq!(exercises.len(), 40);
    assert!(exercises.iter().all(|e| e["question"]["ko"].is_string() && !e["hints"].as_array().unwrap().is_empty()));
    let drawn = exercises.iter().find(|e| e["name"] == "mask-1").unwrap();
    assert!(drawn["sections"][0]["svg"]["dark"]["ko"].as_str().unwrap().starts_with("<svg"));
    assert_eq!(all["switched_off"]["without"].as_array().unwrap().len(), 55);
}
