//! The sentences of the courses, as they stand: each is seen, in both languages.

use std::process::{Command, Output};

const ENGLISH: [&str; 5] = [
    "The cat sat on the mat",
    "The cat sat mat",
    "I love machine learning .",
    "The bank can guarantee deposits will eventually cover future tuition costs",
    "ROMEO: But soft, what light through yonder window breaks?",
];
const KOREAN: [&str; 3] =
    ["나는 학교에 간다", "고양이가 쥐를 잡았다", "그 남자는 공원에서 개를 산책시키고 있었다. 개가 갑자기 뛰어갔다."];

fn foveal(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_foveal")).args(arguments).output().expect("the command starts")
}

fn shown(arguments: &[&str]) -> String {
    let done = foveal(arguments);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// The labels of the rows.
fn queries(arguments: &[&str]) -> Vec<String> {
    let figures: serde_json::Value = serde_json::from_str(&shown(arguments)).expect("JSON");
    let labels = figures["queries"].as_array().expect("a list").iter();
    labels.map(|label| label.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn english_is_seen_without_a_remark() {
    for sentence in ENGLISH {
        for (language, heading) in [("en", "Weight"), ("ko", "가중치")] {
            let text = shown(&["see", sentence, "--lang", language]);
            // Long titles are cut.
            let begin: String = sentence.chars().take(60).collect();
            assert!(text.contains(&begin) && text.contains(heading), "{text}");
            assert!(!text.contains("--tokens tokens"), "{text}");
        }
    }
}

#[test]
fn korean_is_seen_in_whole_syllables_and_told_what_that_is_worth() {
    for sentence in KOREAN {
        for (language, remark) in [("en", "It has learned English alone"), ("ko", "영어만 배웠으므로")] {
            let text = shown(&["see", sentence, "--lang", language]);
            let line = text.replace('\n', " ");
            assert!(line.contains(remark) && line.contains("--tokens tokens"), "{text}");
            assert!(!text.contains('₁'), "{text}");
        }
        let labels = queries(&["see", sentence, "--json"]);
        assert_eq!(labels.concat(), sentence.to_owned());
        assert!(labels.iter().all(|label| label.chars().count() == 1), "{labels:?}");
        // The bytes are there for who asks.
        assert!(queries(&["see", sentence, "--json", "--tokens", "tokens"]).len() > 2 * labels.len());
        let words = queries(&["see", sentence, "--json", "--tokens", "words"]);
        assert!(words.iter().any(|word| sentence.split_whitespace().any(|part| part == word)), "{words:?}");
    }
}

#[test]
fn rows_of_syllables_still_sum_to_one() {
    let text = shown(&["see", KOREAN[0], "--json"]);
    let figures: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = figures["heads"][0]["values"].as_array().expect("rows");
    for row in rows {
        let sum: f64 = row.as_array().expect("a row").iter().map(|x| x.as_f64().expect("a number")).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }
}

#[test]
fn heads_and_maps_say_so_too() {
    let folder = tempfile::tempdir().expect("a folder");
    for (n, sentence) in ENGLISH.iter().chain(&KOREAN).enumerate() {
        let korean = n >= ENGLISH.len();
        let path = folder.path().join(format!("{n}.txt"));
        std::fs::write(&path, sentence).expect("a file");
        let path = path.to_str().expect("UTF-8");
        for (language, remark) in [("en", "has no token for"), ("ko", "바이트로 나누어 읽습니다")] {
            for arguments in [["heads", sentence, "--lang", language], ["map", path, "--lang", language]] {
                assert_eq!(shown(&arguments).replace('\n', " ").contains(remark), korean, "{arguments:?}");
            }
        }
    }
}

#[test]
fn every_sentence_becomes_a_file_of_every_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    for (n, sentence) in ENGLISH.iter().chain(&KOREAN).enumerate() {
        for ending in ["svg", "png", "html", "json", "csv"] {
            let path = folder.path().join(format!("{n}.{ending}"));
            shown(&["see", sentence, "-o", path.to_str().expect("UTF-8")]);
            assert!(std::fs::metadata(&path).is_ok_and(|file| file.len() > 100), "{sentence}: {ending}");
        }
    }
}
