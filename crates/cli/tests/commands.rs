//! The program from outside: what it prints, what it writes, how it ends.

mod support;

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use support::{foveal, json, matrix, printed, refused, run, text};

const ROMEO: &str = "ROMEO: But soft, what light through yonder window breaks?";

#[test]
fn see_shows_a_text() {
    let shown = printed(&["see", ROMEO]);
    assert!(shown.contains("ROMEO") && shown.contains("window") && shown.contains("next"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let figures = json(&["see", ROMEO, "--layer", "1", "--head", "2"]);
    let values = figures["heads"][0]["values"].as_array().unwrap();
    assert_eq!(values.len(), figures["queries"].as_array().unwrap().len());
    for (i, row) in values.iter().enumerate() {
        let row: Vec<f64> = row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-4 && row[i + 1..].iter().all(|x| *x == 0.0));
    }
}

const TO_BE: &str = "to be or not to be";

fn see(options: &[&str]) -> String {
    printed(&[&["see", TO_BE], options].concat())
}

fn seen(options: &[&str]) -> Vec<Vec<f64>> {
    matrix(&json(&[&["see", TO_BE], options].concat())["heads"][0]["values"])
}

#[test]
fn a_heat_map_shows_its_figures() {
    for (options, note) in [
        (&[][..], "layer 4, head 4\n"),
        (&["--tokens", "words"], "layer 4, head 4\n"),
        (&["--show", "norm"], "layer 4, head 4 · norm-based\n"),
        (&["--show", "rollout"], "layers 0–4 · rollout\n"),
        (&["--layer", "3", "--head", "2"], "layer 3, head 2\n"),
        (&["--width", "60"], "layer 4, head 4\n"),
    ] {
        let (shown, values) = (see(options), seen(options));
        assert!(shown.contains(note), "{options:?}: {shown}");
        let rows: Vec<Vec<String>> =
            shown.lines().map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect()).collect();
        assert_eq!(values.len(), 6);
        for (i, row) in values.iter().enumerate() {
            // Keys that are hidden have no number.
            let places = |x: f64| if x < 10.0 { 2 } else { 0 };
            let numbers: Vec<String> = row[..=i].iter().map(|x| format!("{x:.*}", places(*x))).collect();
            assert!(rows.contains(&numbers), "{options:?}: no row {numbers:?} in {shown}");
            assert!(row[i + 1..].iter().all(|x| *x == 0.0), "{options:?}: {row:?}");
            let sums_to_one = (row.iter().sum::<f64>() - 1.0).abs() < 1e-4;
            assert_eq!(sums_to_one, !options.contains(&"norm"), "{options:?}: {row:?}");
        }
    }
    assert!(see(&["--width", "60"]).lines().all(|line| line.chars().count() <= 60));
    let korean = see(&["--lang", "ko"]);
    assert!(korean.contains("다음") && korean.contains("쿼리") && korean.contains("층 4, 헤드 4"), "{korean}");
}

#[test]
fn other_views_show_their_figures() {
    let (labels, values) = (["to", "·be", "·or", "·not", "·to", "·be"], seen(&[]));
    let links = |shown: &str| -> Vec<String> {
        let after = shown.lines().skip_while(|line| *line != "Query → Key").skip(1);
        after.filter(|line| line.contains(" → ")).map(|line| line.trim().to_owned()).collect()
    };
    let all = links(&see(&["--view", "lines"]));
    assert_eq!(all.len(), 6);
    for (i, line) in all.iter().enumerate() {
        let best = (0..=i).max_by(|a, b| values[i][*a].total_cmp(&values[i][*b])).unwrap();
        assert!(line.starts_with(&format!("{} → {} ", labels[i], labels[best])), "{line}");
    }
    assert_eq!(links(&see(&["--view", "lines", "--token", "3"])), all[3..4]);
    let bars = see(&["--view", "bars", "--token", "5"]);
    for (label, w) in labels.iter().zip(&values[5]) {
        let bar = |line: &str| line.trim().starts_with(&format!("{label} ")) && line.ends_with(&format!(" {w:.3}"));
        assert!(bars.lines().any(bar), "no bar of {label} with {w:.3} in {bars}");
    }
    let grid = see(&["--view", "grid"]);
    for n in 0..5 {
        assert!(grid.contains(&format!("Layer {n} ")) && grid.contains(&format!("Head {n} ")), "{grid}");
    }
    assert_eq!(see(&["--head", "all"]), grid);
    assert_eq!(see(&["--layer", "all"]), grid);
    let figures = json(&["see", TO_BE, "--head", "all"]);
    assert_eq!(figures["heads"].as_array().unwrap().len(), 5 * 10);
    let layer = see(&["--layer", "0", "--head", "all"]);
    assert!(layer.contains("layer 0\n") && layer.contains("Head 9") && !layer.contains("Layer"), "{layer}");
    assert_eq!(json(&["see", TO_BE, "--layer", "0", "--head", "all"])["heads"].as_array().unwrap().len(), 10);
}

#[test]
fn see_takes_words_and_kinds_and_refuses_what_is_not_there() {
    let words = json(&["see", "to be or not to be", "--tokens", "words"]);
    assert_eq!(words["keys"], serde_json::json!(["to", "be", "or", "not", "to", "be"]));
    let cross = printed(&["see", "The student reads a book.", "--model", "translate-en-ko"]);
    assert!(cross.contains("학생"), "{cross}");
    assert!(refused(&["see", "a b", "--layer", "99"]).contains("there is no layer 99"));
    assert!(refused(&["see", "a b", "--head", "99"]).contains("there is no head 99"));
    assert!(refused(&["see", "a b", "--view", "bars", "--token", "99"]).contains("there is no token 99"));
    assert!(refused(&["see", "a b", "--kind", "encoder"]).contains("no encoder attention"));
}

#[test]
fn text_comes_by_argument_file_or_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, "to be or not to be\n").unwrap();
    let by_argument = printed(&["see", "to be or not to be"]);
    assert_eq!(printed(&["see", "--file", path.to_str().unwrap()]), by_argument);
    let mut child = foveal(&["see"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"to be or not to be\n").unwrap();
    assert_eq!(text(&child.wait_with_output().unwrap().stdout), by_argument);
    assert!(refused(&["see", "", "--lang", "en"]).contains("the text is empty"));
    assert!(refused(&["see", "a", "--file", path.to_str().unwrap()]).contains("give one of them"));
    assert!(refused(&["see", "--file", "/nowhere/text.txt"]).contains("/nowhere/text.txt"));
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    assert!(refused(&["see", "--file", path.to_str().unwrap()]).contains("UTF-8"));
    assert!(refused(&["see"]).contains("the text is empty"));
}

#[test]
fn a_text_past_the_context_is_refused() {
    let long = "word ".repeat(2000);
    let said = refused(&["see", &long]);
    assert!(said.contains("positions") && said.contains("shorten"), "{said}");
}

#[test]
fn files_are_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["a.svg", "a.png", "a.html", "a.json", "a.csv"] {
        let said = printed(&["see", "to be or not", "-o", &path(name)]);
        assert!(said.contains(name), "{said}");
        assert!(std::fs::metadata(path(name)).unwrap().len() > 100, "{name}");
    }
    assert!(std::fs::read_to_string(path("a.svg")).unwrap().starts_with("<svg"));
    assert!(std::fs::read(path("a.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(refused(&["see", "a b", "-o", &path("a.pdf")]).contains("svg"));
    assert!(refused(&["see", "a b", "-o", "/nowhere/at/all/a.svg"]).contains("/nowhere/at/all"));
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 5, "no temporary file is left");
}

#[test]
fn a_model_that_is_not_there_is_named() {
    let mut command = foveal(&["see", "a", "--model", "no-such/model"]);
    let output = command.env("HF_HUB_OFFLINE", "1").env("HF_HOME", "/nowhere").output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("no-such/model"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    assert!(refused(&["see", "a", "--model", folder.path().to_str().unwrap()]).contains("config.json"));
    assert!(refused(&["translate", "a", "--model", "shakespeare"]).contains("does not translate"));
    assert!(refused(&["generate", "a", "--model", "digits"]).contains("reads no text"));
    assert!(refused(&["heads", "a", "--model", "digits"]).contains("reads no text"));
}

#[test]
fn wrong_flags_are_a_usage_error() {
    for arguments in [
        &["see", "a", "--no-such-flag"][..],
        &["see", "a", "--layer", "x"],
        &["see", "a", "--show", "everything"],
        &["nonsense"],
        &["map", "a.txt", "--rows", "5..2"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("--help") || text(&output.stderr).contains("expected"), "{arguments:?}");
    }
    for command in ["see", "heads", "map", "generate", "translate", "train", "lab", "completions"] {
        let help = printed(&[command, "--help"]);
        assert!(help.contains("Usage") && (command == "train" || help.contains("foveal ")), "{help}");
    }
    assert!(printed(&["--version"]).starts_with("foveal "));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = foveal(&["see", ROMEO]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn generate_writes_on() {
    let greedy = printed(&["generate", "ROMEO:", "-n", "20"]);
    assert!(greedy.starts_with("ROMEO:") && greedy.len() > 30);
    assert_eq!(printed(&["generate", "ROMEO:", "-n", "20"]), greedy);
    let by_chance =
        |seed| printed(&["generate", "ROMEO:", "-n", "20", "--temperature", "1", "--top-k", "40", "--seed", seed]);
    assert_eq!(by_chance("3"), by_chance("3"));
    assert_ne!(by_chance("3"), by_chance("4"));
    assert!(refused(&["generate", "a", "--temperature=-1"]).contains("choose greedily"));
    let figures = json(&["generate", "ROMEO:", "-n", "5"]);
    assert_eq!(figures["tokens"].as_array().unwrap().len(), 5);
}

#[test]
fn past_its_context_generation_stops_or_slides() {
    let output = run(&["generate", "ROMEO:", "-n", "600"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--slide") && !output.stdout.is_empty());
    assert!(printed(&["generate", "ROMEO:", "-n", "600", "--slide"]).len() > 1000);
}

#[test]
fn translate_translates_and_aligns() {
    let shown = printed(&["translate", "The student reads two books."]);
    assert!(shown.starts_with("학생은 책을 두 권 읽어요."), "{shown}");
    let figures = json(&["translate", "I do not eat apples."]);
    assert_eq!(figures["translation"], "저는 사과를 먹지 않아요.");
    let rows = figures["weights"].as_array().unwrap();
    assert!(rows.iter().all(|row| {
        let sum: f64 = row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum();
        (sum - 1.0).abs() < 1e-3
    }));
    let many = printed(&["translate", "The cat sleeps.\nThe dog sleeps."]);
    assert_eq!(many.lines().count(), 2, "{many}");
}

#[test]
fn heads_and_map_and_bench_report() {
    let heads = json(&["heads", "--period", "16"]);
    let listed = heads["heads"].as_array().unwrap();
    assert!(listed.windows(2).all(|pair| pair[0]["induction"].as_f64() >= pair[1]["induction"].as_f64()));
    assert!(heads["tokens"].as_u64() >= Some(2000), "{}", heads["tokens"]);
    assert!(printed(&["heads", "--by", "previous", "--top", "3"]).contains("previous"));
    // An encoder's heads: what comes after is seen, and nothing is written.
    let encoder = ["heads", "The student reads two books.", "--model", "translate-en-ko", "--by", "next"];
    assert!(printed(&encoder).contains("separator") && json(&encoder)["heads"][0]["induction"].is_null());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, "What light through yonder window breaks? ".repeat(8)).unwrap();
    let map = json(&["map", path.to_str().unwrap(), "--pixels", "16"]);
    assert_eq!(map["pixels"].as_array().unwrap().len(), 16);
    assert!(printed(&["map", path.to_str().unwrap(), "--rows", "10..40"]).contains("30"));
    assert!(refused(&["map", path.to_str().unwrap(), "--rows", "10..100000"]).contains("100000"));
    let bench = json(&["bench", "--tokens", "64", "--heads", "2", "--dims", "16"]);
    assert_eq!(bench["works"].as_array().unwrap().len(), 5);
    assert!(refused(&["bench", "--tokens", "0"]).contains("at least 1"));
}

#[test]
fn an_image_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.png");
    // A stroke: black on white, as one would draw a 1.
    image::GrayImage::from_fn(56, 56, |x, y| {
        image::Luma([if (26..31).contains(&x) && (8..48).contains(&y) { 0 } else { 255 }])
    })
    .save(&path)
    .unwrap();
    let figures = json(&["see", "--image", path.to_str().unwrap()]);
    let classes: Vec<f64> = figures["classes"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect();
    let best = (0..classes.len()).max_by(|a, b| classes[*a].total_cmp(&classes[*b])).unwrap();
    assert_eq!(best, 1, "{classes:?}");
    assert!(printed(&["see", "--image", path.to_str().unwrap()]).contains("class"));
    std::fs::write(&path, b"no image").unwrap();
    assert!(refused(&["see", "--image", path.to_str().unwrap()]).contains("PNG or JPEG"));
}

#[test]
fn completions_and_the_manual_come_out() {
    assert!(printed(&["completions", "bash"]).contains("foveal"));
    assert!(printed(&["completions", "man"]).contains(".TH"));
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn training_leaves_a_model_that_other_commands_take() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("text.txt"), folder.path().join("model"));
    std::fs::write(&source, "the cat sat on the mat and the dog sat on the log. ".repeat(40)).unwrap();
    let (source, model) = (source.to_str().unwrap(), target.to_str().unwrap());
    let small = ["--steps", "6", "--dims", "16", "--heads", "2", "--layers", "1", "--context", "16", "--batch", "2"];
    let begin = [&["train", "text", source, "-d", model][..], &small].concat();
    assert!(printed(&begin).contains("held-out loss"));
    assert_eq!(lines(&target.join("losses.csv")), 7);
    assert!(refused(&begin).contains("--resume"));
    let longer: Vec<&str> = begin.iter().map(|argument| if *argument == "6" { "9" } else { argument }).collect();
    printed(&[&longer[..], &["--resume"]].concat());
    assert_eq!(lines(&target.join("losses.csv")), 10);
    assert!(printed(&["see", "the cat", "--model", model]).contains("the"));
    assert!(
        refused(&["train", "text", source, "-d", model, "--resume", "--dims", "15", "--heads", "2"])
            .contains("does not divide")
    );

    let pairs = folder.path().join("pairs.tsv");
    let body: String = (0..60).map(|i| format!("number {i}\t숫자 {i}\n")).collect();
    std::fs::write(&pairs, format!("{body}no tab here\n")).unwrap();
    let target = folder.path().join("pairs");
    let output = run(&[
        "train",
        "pairs",
        pairs.to_str().unwrap(),
        "-d",
        target.to_str().unwrap(),
        "--steps",
        "3",
        "--dims",
        "16",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("line 61"), "{}", text(&output.stderr));
    printed(&["translate", "number 3", "--model", target.to_str().unwrap()]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (arguments, said) in [
        (&["translate", "The cat sleeps.", "--beams", "0"][..], "1..=64"),
        (&["translate", "The cat sleeps.", "--beams", "100000"], "1..=64"),
        (&["heads", "--period", "0"], "--period"),
        (&["map", TO_BE, "--most", "0"], "--most"),
    ] {
        let output = run(arguments);
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn what_is_written_can_be_looked_at() {
    let greedy = printed(&["generate", "ROMEO:", "-n", "5"]);
    assert_eq!(printed(&["generate", "ROMEO:", "-n", "5", "--temperature", "0"]), greedy);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    printed(&["generate", "ROMEO:", "-n", "5", "-o", &path("a.json")]);
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(path("a.json")).unwrap()).unwrap();
    assert_eq!(format!("ROMEO:{}", figures["written"].as_str().unwrap()), greedy.trim_end());
    printed(&["generate", "ROMEO:", "-n", "5", "-o", &path("a.html")]);
    let page = std::fs::read_to_string(path("a.html")).unwrap();
    assert!(figures["written"].as_str().unwrap().split_whitespace().all(|word| page.contains(word)));
}

#[test]
fn numbers_in_files_name_their_tokens_and_bars_their_query() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.csv");
    printed(&["see", TO_BE, "--head", "all", "-o", path.to_str().unwrap()]);
    let csv = std::fs::read_to_string(&path).unwrap();
    assert!(csv.starts_with("panel,query,key,query token,key token,value\r\n"), "{csv:.80}");
    assert!(csv.contains("\"Layer 0, Head 0\",0,0,to,to,1\r\n"), "{csv:.200}");
    assert!(see(&["--view", "bars", "--token", "2"]).contains("Query 2: or"));
}

#[test]
fn every_command_reads_a_file_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, TO_BE).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(json(&["see", path]), json(&["see", TO_BE]));
    assert_eq!(json(&["map", path, "--pixels", "4"]), json(&["map", TO_BE, "--pixels", "4"]));
}

#[test]
fn a_file_that_cannot_be_written_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken.png");
    std::fs::create_dir(&path).unwrap();
    let error = refused(&["see", TO_BE, "-o", path.to_str().unwrap()]);
    assert_eq!(error.matches("taken.png").count(), 1, "{error}");
    assert_eq!(error.matches("irectory").count(), 1, "{error}");
}
