//! The programs, built and run by cargo: what is right passes, each common mistake is told, a hole is no answer.

use foveal_exercises::{Code, Expected, Verdict, Workshop, find};
use foveal_labs::Language;

fn code(name: &str) -> Code {
    match find(name).unwrap().task().unwrap().expected {
        Expected::Code(code) => code,
        other => panic!("no program: {other:?}"),
    }
}

fn judged(workshop: &Workshop, name: &str, code: &Code, program: &str) -> Verdict {
    let file = workshop.file(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, program).unwrap();
    workshop.check(name, code, &file).unwrap()
}

fn every_answer(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (workshop, code) = (Workshop::new(folder.path()), code(name));
    if let Some(obstacle) = Workshop::obstacle(&code) {
        panic!("{name}: {}", obstacle.en);
    }
    let why = |verdict: Verdict| match verdict {
        Verdict::Wrong { why, mistake: None } => why.en,
        other => panic!("{name}: {other:?}"),
    };
    let start = workshop.start(name, &code, Language::Korean).unwrap();
    assert_eq!(std::fs::read_to_string(&start).unwrap(), code.start.ko);
    assert!(why(workshop.check(name, &code, &start).unwrap()).contains("not yet implemented"));
    assert_eq!(judged(&workshop, name, &code, code.solution), Verdict::Right);
    assert_eq!(workshop.start(name, &code, Language::English).unwrap(), start);
    assert_eq!(std::fs::read_to_string(&start).unwrap(), code.solution, "what a learner has written stays");
    assert!(!code.mistakes.is_empty());
    for mistake in &code.mistakes {
        let verdict = judged(&workshop, name, &code, mistake.program);
        assert_eq!(verdict, Verdict::Wrong { why: mistake.why.clone(), mistake: Some(mistake.name) }, "{name}");
    }
}

#[test]
fn softmax() {
    every_answer("softmax");
}

#[test]
fn attention() {
    every_answer("attention");
}

#[test]
fn causal() {
    every_answer("causal");
}

#[test]
fn masked_softmax() {
    every_answer("masked-softmax");
}

#[test]
fn flash() {
    every_answer("flash");
}

#[test]
fn engine() {
    every_answer("engine");
}

#[test]
fn what_fails_otherwise_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (workshop, code) = (Workshop::new(folder.path()), code("causal"));
    let why = |program: &str| match judged(&workshop, "causal", &code, program) {
        Verdict::Wrong { why, mistake: None } => why.en,
        other => panic!("{other:?}"),
    };
    assert!(why("pub fn causal(q: usize) {}").starts_with("It does not compile:"));
    let all = why("pub fn causal(t: usize, s: usize) -> Vec<Vec<bool>> { vec![vec![true; s]; t] }");
    assert!(all.contains("causal(3, 3) should give [1, 0, 0, 1, 1, 0, 1, 1, 1] and gives [1, 1, 1"), "{all}");
    let stops = why(
        "pub fn causal(t: usize, s: usize) -> Vec<Vec<bool>> { assert!(t == s); vec![(0..s).map(|_| true).collect(); 0] }",
    );
    assert!(stops.contains("It stops at causal(2, 5)"), "{stops}");
    let ends = why("pub fn causal(t: usize, s: usize) -> Vec<Vec<bool>> { std::process::exit(0) }");
    assert!(ends.contains("It stops at causal(3, 3)"), "{ends}");
}
