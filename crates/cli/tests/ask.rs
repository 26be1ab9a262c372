//! `foveal ask` from outside.

mod support;

use std::io::Write;
use std::process::Stdio;

use support::{foveal, json, printed, refused, text};

const NOTES: &str = "Anna lives in Rome. She is 34 years old and works at the library.\n\nThe brass key is under the stairs.\n\nTom bought a red \
                     lamp at the market for 12 dollars.\n\n민수는 부산에 살아요. 그의 직업은 요리사입니다.\n";

fn notes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), NOTES).unwrap();
    std::fs::write(folder.path().join("more.md"), "The concert begins at half past seven at the town hall.").unwrap();
    std::fs::write(folder.path().join("picture.png"), [0, 1, 2]).unwrap();
    folder
}

#[test]
fn a_question_is_answered_from_a_folder() {
    let folder = notes();
    let path = folder.path().to_str().unwrap();
    for (question, answer) in [
        ("Where does Anna live?", "Rome"),
        ("How old is Anna?", "34"),
        ("Where is the brass key?", "under the stairs"),
        ("Who bought the red lamp?", "Tom"),
        ("민수는 어디에 살아요?", "부산"),
        ("When does the concert begin?", "half past seven"),
    ] {
        let figures = json(&["ask", question, "--passages", path]);
        assert_eq!(figures["answer"], answer, "{question}: {figures}");
        let weights: Vec<f64> = figures["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
        assert_eq!(weights.len(), 5);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-3, "{weights:?}");
        let best = figures["passage"].as_u64().unwrap() as usize;
        assert!(weights.iter().all(|weight| *weight <= weights[best]));
        let passage = &figures["passages"][best];
        assert!(passage["text"].as_str().unwrap().contains(answer), "{passage}");
        assert!(!passage["words"].as_array().unwrap().is_empty());
        assert!(printed(&["ask", question, "--passages", path]).starts_with(answer));
    }
}

#[test]
fn what_is_in_no_passage_is_refused_in_the_language_of_the_question() {
    let folder = notes();
    let path = folder.path().join("notes.txt");
    let path = path.to_str().unwrap();
    for (question, said) in [
        ("Where does Zelda live?", "not in these passages"),
        ("When was Zelda born?", "not in these passages"),
        ("영희는 어디에 살아요?", "이 글에는 답이 없습니다"),
    ] {
        assert!(printed(&["ask", question, "--passages", path]).starts_with(said), "{question}");
        assert!(json(&["ask", question, "--passages", path])["answer"].is_null());
    }
}

/// Prose from elsewhere, which has nothing to do with the questions.
#[test]
fn ordinary_prose_is_refused() {
    let folder = notes();
    let path = folder.path().join("prose.txt");
    std::fs::write(&path, PROSE).unwrap();
    for question in
        ["Where does Anna live?", "How much did the red lamp cost?", "Who won the marathon?", "민수는 몇 살이에요?"]
    {
        let figures = json(&["ask", question, "--passages", path.to_str().unwrap()]);
        assert!(figures["answer"].is_null(), "{question}: {figures}");
    }
}

const PROSE: &str = "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and \
                     nothing particular to interest me on shore, I thought I would sail about a little and see the watery \
                     part of the world.\n\nIt is a truth universally acknowledged, that a single man in possession of a good \
                     fortune, must be in want of a wife.\n\nThe compiler turns source code into machine code. Errors are \
                     printed with the line in which they were found.\n\n산에는 꽃 피네. 꽃이 피네. 갈 봄 여름 없이 꽃이 피네.\n";

#[test]
fn pictures_and_standard_input() {
    let folder = notes();
    for name in ["ask.svg", "ask.png"] {
        let file = folder.path().join(name);
        let path = folder.path().join("notes.txt");
        let arguments = ["ask", "Where does Anna live?", "-p", path.to_str().unwrap(), "-o", file.to_str().unwrap()];
        printed(&arguments);
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes.starts_with(b"<svg") || bytes.starts_with(b"\x89PNG"));
        assert!(folder.path().join(name.replace("ask", "ask-2")).exists());
    }
    let mut child = foveal(&["ask", "Where does Anna live?", "--passages", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(NOTES.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let figures: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(figures["answer"], "Rome");
}

#[test]
fn bad_input_is_told() {
    let folder = notes();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ask = |question: &str, path: &str| refused(&["ask", question, "--passages", path]);
    assert!(ask("Who?", &at("absent.txt")).contains("cannot read"));
    assert!(ask("Who?", &at("picture.png")).contains("binary"));
    std::fs::write(folder.path().join("latin.txt"), b"caf\xe9").unwrap();
    assert!(ask("Who?", &at("latin.txt")).contains("UTF-8"));
    std::fs::write(folder.path().join("empty.txt"), " \n\n").unwrap();
    assert!(ask("Who?", &at("empty.txt")).contains("no text"));
    assert!(ask("  ", &at("notes.txt")).contains("question is empty"));
    assert!(ask(&"why ".repeat(25_000), &at("notes.txt")).contains("characters"));
    std::fs::create_dir(folder.path().join("bare")).unwrap();
    assert!(ask("Who?", &at("bare")).contains("no .txt or .md files"));
    assert!(json(&["ask", "🙂🙃", "--passages", &at("notes.txt")])["answer"].is_null());
}

#[test]
fn mixed_scripts_get_an_honest_answer() {
    let folder = notes();
    let path = folder.path().join("mixed.txt");
    let mixed = "Anna는 서울에 살아요. Ελένη lives in Αθήνα.\n\nМиша 🙂 хочет в Москву. 東京 is big.";
    std::fs::write(&path, mixed).unwrap();
    for question in ["Where does Ελένη live?", "Anna는 어디에 살아요?", "Где Миша?", "東京?", "a\u{301}b\u{200d}c?"]
    {
        let figures = json(&["ask", question, "--passages", path.to_str().unwrap()]);
        // What it says stands in a passage, letter by letter, or it says nothing.
        let answer = figures["answer"].as_str();
        assert!(answer.is_none_or(|answer| mixed.contains(answer)), "{question}: {figures}");
    }
}

#[test]
fn a_passage_of_ten_megabytes_is_cut() {
    let folder = notes();
    let path = folder.path().join("long.txt");
    // Sentences, and one word without end.
    for filler in ["It rained and rained. ".repeat(470_000), "비".repeat(3_400_000) + " "] {
        std::fs::write(&path, filler + "Anna lives in Rome. ").unwrap();
        let output = bounded(&["ask", "Where does Anna live?", "--json", "--passages", path.to_str().unwrap()]);
        let figures: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert_eq!(figures["passages"].as_array().unwrap().len(), 10);
        assert_eq!(figures["answer"], "Rome");
    }
    std::fs::write(&path, vec![b'a'; 33 << 20]).unwrap();
    assert!(refused(&["ask", "Who?", "--passages", path.to_str().unwrap()]).contains("more than 32 MB"));
}

/// What a command prints that may take a gigabyte of memory, and no more.
fn bounded(arguments: &[&str]) -> String {
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 1048576 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_foveal")])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_language_model_reads_the_passages_in_its_prompt() {
    let folder = notes();
    let path = folder.path().join("notes.txt");
    let figures =
        json(&["ask", "Where does Anna live?", "-p", path.to_str().unwrap(), "--model", "shakespeare", "--top", "1"]);
    assert_eq!(figures["model"], "shakespeare");
    let weights = figures["weights"].as_array().unwrap();
    // The rest of its attention is on the question and on the beginning of the prompt.
    assert!(weights.len() == 1 && (0.0..=1.0).contains(&weights[0].as_f64().unwrap()), "{weights:?}");
    assert!(refused(&["ask", "Who?", "-p", path.to_str().unwrap(), "--model", "digits"]).contains("predict"));
}
