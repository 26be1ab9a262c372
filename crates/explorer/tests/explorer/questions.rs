//! Questions about passages: the answer, and the attention over them.

use foveal_explorer::{Asker, Request};
use foveal_models::OpenModel;
use foveal_models::reading::{Asker as Reader, Limits};
use foveal_view::Language;
use serde_json::{Value, json};

use crate::support::{ask, at, inside, numbers};

const PASSAGES: &str = "Tom has the brass key.\n\nAnna lives in Rome.\n  The concert begins at seven o'clock.";

fn put(question: &str, passages: &str, off: Value) -> Value {
    json!({ "kind": "run", "model": "reader", "text": question, "passages": passages, "off": off })
}

#[test]
fn an_answer_comes_with_its_passages() {
    let explorer = inside();
    let meta = ask(&explorer, json!({ "kind": "meta" })).unwrap().head;
    let reader = meta["models"].as_array().unwrap().iter().find(|model| model["id"] == "reader").unwrap();
    assert_eq!(reader["reads"], json!(["question"]));
    let run = ask(&explorer, put("Where does Anna live?", PASSAGES, json!([]))).unwrap().head;
    assert_eq!(run["written"], "Rome");
    let passages = run["passages"].as_array().unwrap();
    let texts: Vec<&str> = passages.iter().map(|passage| passage["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Tom has the brass key.", "Anna lives in Rome.", "The concert begins at seven o'clock."]);

    // The shares are those of the library.
    let open = OpenModel::open("reader").unwrap();
    let answered = Reader::new(&open, Limits::default()).unwrap().ask("Where does Anna live?", &texts).unwrap();
    for (passage, weight) in passages.iter().zip(answered.weights()) {
        assert!((passage["weight"].as_f64().unwrap() - f64::from(weight)).abs() < 1e-6, "{passage}");
    }
    assert_eq!(answered.passage(), Some(1));

    // The keys of a passage are its words, and the weights that a tile shows sum up to its share.
    let keys = &run["axes"][0];
    let range = |passage: &Value, end: usize| passage["keys"][end].as_u64().unwrap() as usize;
    let count = keys["labels"].as_array().unwrap().len();
    assert_eq!((range(&passages[0], 0), range(&passages[2], 1)), (0, count));
    assert!(passages.windows(2).all(|pair| range(&pair[0], 1) == range(&pair[1], 0)));
    let words: Vec<&str> = keys["word_labels"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let second = ["<q>", "Anna", "lives", "in", "Rome.", "</s>"];
    assert!(words.windows(second.len()).any(|part| part == second), "{words:?}");
    let site = run["sites"].as_array().unwrap().iter().find(|site| site["kind"] == "cross").unwrap();
    let (heads, rows) = (site["heads"].as_u64().unwrap() as usize, run["axes"][1]["labels"].as_array().unwrap().len());
    let layers = site["layers"].as_array().unwrap().len();
    let mut sum = 0.0;
    for layer in 0..layers {
        let tile = json!({ "kind": "tile", "at": at(&run, "cross", layer, -1), "rows": [0, rows],
                           "cols": [range(&passages[1], 0), range(&passages[1], 1)] });
        sum += numbers(&ask(&explorer, tile).unwrap().buffers[0]).iter().sum::<f32>();
    }
    let share = passages[1]["weight"].as_f64().unwrap();
    assert!((f64::from(sum) / (layers * rows) as f64 - share).abs() < 1e-3, "{heads} heads: {sum} {share}");
    assert_eq!(run["axes"][1]["labels"].as_array().unwrap().len(), answered.written.len());
}

#[test]
fn what_is_not_there_is_refused_and_heads_can_be_switched_off() {
    let explorer = inside();
    let refused = ask(&explorer, put("Where does Zelda live?", PASSAGES, json!([]))).unwrap().head;
    assert_eq!(refused["written"], "not in these passages");
    let korean = ask(&explorer, put("영희는 어디에 살아요?", PASSAGES, json!([]))).unwrap().head;
    assert_eq!(korean["written"], "이 글에는 답이 없습니다");
    let all = ask(&explorer, put("Where does Anna live?", PASSAGES, json!([]))).unwrap().head;
    let off: Vec<Value> = (0..4).map(|head| json!(["cross", 1, head])).collect();
    let without = ask(&explorer, put("Where does Anna live?", PASSAGES, json!(off))).unwrap().head;
    assert_ne!(all["id"], without["id"]);
    let fault = ask(&explorer, put("Where?", PASSAGES, json!([["cross", 9, 0]]))).unwrap_err();
    assert!(fault.text.of(Language::English).contains("head"), "{fault}");
}

#[test]
fn of_many_passages_the_best_are_read() {
    let explorer = inside();
    let mut many: Vec<String> = (0..60).map(|n| format!("It rained for {n} days and {n} nights.")).collect();
    many.insert(41, "Anna lives in Rome.".to_owned());
    let run = ask(&explorer, put("Where does Anna live?", &many.join("\n"), json!([]))).unwrap().head;
    let passages = run["passages"].as_array().unwrap();
    assert_eq!(passages.len(), 10);
    assert!(passages.iter().any(|passage| passage["text"] == "Anna lives in Rome."));
}

#[test]
fn an_answer_can_be_stopped() {
    let explorer = inside();
    let asker = Asker::patient(Language::English);
    asker.cancel.cancel();
    let request = Request::parse(put("Where does Anna live?", PASSAGES, json!([])).to_string().as_bytes()).unwrap();
    assert!(explorer.ask(&request, &asker).is_err());
}
