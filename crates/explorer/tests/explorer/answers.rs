//! What each kind of question is answered.

use std::sync::{Arc, Mutex};

use base64::Engine;
use foveal_explorer::{Asker, Catalog, Code, Explorer, Request};
use foveal_models::trace::{Head, Kind, Probe};
use foveal_models::{Model, OpenModel};
use foveal_view::Language;
use serde_json::{Value, json};

use crate::support::{ask, at, digit, inside, numbers, over, run, save_llama};

const TEXT: &str = "To be or not to be, that is the question";

#[test]
fn what_there_is() {
    let explorer = inside();
    let meta = ask(&explorer, json!({ "kind": "meta" })).unwrap().head;
    assert_eq!(meta["digits"], 4);
    assert!(meta["runs"].as_array().unwrap().is_empty());
    let names: Vec<&str> =
        meta["models"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert!(
        ["shakespeare", "translate-en-ko", "digits", "reader"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    let read = run(&explorer, "shakespeare", TEXT);
    let meta = ask(&explorer, json!({ "kind": "meta" })).unwrap().head;
    assert_eq!((&meta["runs"][0], &meta["view"]["run"]), (&read, &read["id"]));
}

#[test]
fn a_run_describes_itself() {
    let explorer = inside();
    let read = run(&explorer, "shakespeare", TEXT);
    let seen = OpenModel::open("shakespeare").unwrap().observe(TEXT).unwrap();
    let axis = &read["axes"][0];
    assert_eq!(axis["labels"], json!(seen.queries.labels));
    let words: Vec<&str> = axis["word_labels"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words, seen.queries.words().labels);
    let site = &read["sites"][0];
    assert_eq!(site["kind"], "decoder");
    assert_eq!(site["measures"], json!(["weights", "norms", "rollout"]));
    let (layer, head) = seen.salient_head(None).unwrap();
    assert_eq!(site["salient"], json!([layer, head]));
    for (shown, expected) in read["next"].as_array().unwrap().iter().zip(&seen.predictions) {
        assert_eq!((&shown["token"], &shown["label"]), (&json!(expected.token), &json!(expected.label)));
        assert!((shown["p"].as_f64().unwrap() - f64::from(expected.probability)).abs() < 1e-5);
    }
    // The same again is found, not computed.
    assert_eq!(run(&explorer, "shakespeare", TEXT)["id"], read["id"]);
    assert_ne!(run(&explorer, "shakespeare", "To be")["id"], read["id"]);
}

#[test]
fn heads_switched_off_change_the_prediction() {
    let explorer = inside();
    let read = run(&explorer, "shakespeare", TEXT);
    let same = ask(&explorer, json!({ "kind": "predict", "run": read["id"], "off": [] })).unwrap().head;
    let near = |a: &Value, b: &Value| (a["p"].as_f64().unwrap() - b["p"].as_f64().unwrap()).abs() < 1e-6;
    assert!(same["base"].as_array().unwrap().iter().zip(same["changed"].as_array().unwrap()).all(|(a, b)| near(a, b)));
    let off = json!([["decoder", 0, 1], ["decoder", 1, 3]]);
    let other = ask(&explorer, json!({ "kind": "predict", "run": read["id"], "off": off })).unwrap().head;
    let open = OpenModel::open("shakespeare").unwrap();
    let model = open.model.as_language_model().unwrap();
    let ids = open.tokenizer().unwrap().encode(TEXT).unwrap().ids().to_vec();
    let heads = [Head::new(Kind::Decoder, 0, 1), Head::new(Kind::Decoder, 1, 3)];
    let expected = foveal_models::analysis::ablate(model, &ids, &heads).unwrap();
    let lists = [("base", &expected.next), ("changed", &expected.next_without)];
    for (name, distribution) in lists {
        for entry in other[name].as_array().unwrap() {
            let p = f64::from(distribution[entry["token"].as_u64().unwrap() as usize].exp());
            assert!((entry["p"].as_f64().unwrap() - p).abs() < 1e-5, "{name} {entry} {p}");
        }
    }
    let tokens = |name: &str| -> Vec<Value> {
        other[name].as_array().unwrap().iter().map(|entry| entry["token"].clone()).collect()
    };
    assert_eq!(tokens("base"), tokens("changed"));
    let ps: Vec<f64> = other["base"].as_array().unwrap().iter().map(|entry| entry["p"].as_f64().unwrap()).collect();
    assert!(ps.is_sorted_by(|a, b| a >= b));
    // A run of its own with the same heads off predicts the same.
    let alone = json!({ "kind": "run", "model": "shakespeare", "text": TEXT, "off": off });
    let alone = ask(&explorer, alone).unwrap().head;
    let first = &alone["next"][0];
    let changed = other["changed"].as_array().unwrap().iter().find(|entry| entry["token"] == first["token"]).unwrap();
    assert!(near(changed, first));
}

#[test]
fn writing_on_token_by_token() {
    let explorer = inside();
    let read = run(&explorer, "shakespeare", TEXT);
    let request = json!({
        "kind": "generate", "run": read["id"], "count": 6, "temperature": 0, "seed": 1, "watch": ["decoder", 1, 2],
    });
    let parts = Arc::new(Mutex::new(Vec::new()));
    let kept = parts.clone();
    let asker = Asker::new(Language::English, move |part| kept.lock().unwrap().push(part));
    let request = Request::parse(request.to_string().as_bytes()).unwrap();
    let written = explorer.ask(&request, &asker).unwrap().head;
    let parts = parts.lock().unwrap();
    assert_eq!(parts.len(), 6);
    let open = OpenModel::open("shakespeare").unwrap();
    let tokenizer = open.tokenizer().unwrap();
    let prompt = tokenizer.encode(TEXT).unwrap();
    let options = foveal_models::generate::GenerateOptions { most: 6, ..Default::default() };
    let mut session = open.session().unwrap();
    let expected: Vec<u32> = session.generate(prompt.ids(), options).unwrap().map(Result::unwrap).collect();
    let tokens: Vec<u32> = parts.iter().map(|part| part.head["token"].as_u64().unwrap() as u32).collect();
    assert_eq!(tokens, expected);
    // Greedy: each is the most probable; the first as the run had said.
    assert_eq!(parts[0].head["p"], read["next"][0]["p"]);
    let text: String = parts.iter().map(|part| part.head["text"].as_str().unwrap()).collect();
    assert_eq!(written["written"], json!(text));
    assert_eq!(written["axes"][0]["labels"].as_array().unwrap().len(), prompt.len() + 6);
    // The weights that came with a token are those of the run at the end.
    for (n, part) in parts.iter().enumerate() {
        let row = prompt.len() - 1 + n;
        let tile = json!({ "kind": "tile", "at": at(&written, "decoder", 1, 2), "rows": [row, row + 1], "cols": [0, row + 1] });
        assert_eq!(part.buffers, ask(&explorer, tile).unwrap().buffers);
    }
}

#[test]
fn a_translation_and_an_image() {
    let explorer = inside();
    let read = run(&explorer, "translate-en-ko", "The student reads two books.");
    assert!(!read["written"].as_str().unwrap().is_empty());
    let kinds: Vec<&str> =
        read["sites"].as_array().unwrap().iter().map(|site| site["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["encoder", "decoder", "cross"]);
    assert_eq!(read["sites"][2]["measures"], json!(["weights", "norms"]));
    let heads = read["sites"][2]["heads"].as_u64().unwrap();
    let layers = read["sites"][2]["layers"].as_array().unwrap().iter();
    let without: Vec<Value> =
        layers.flat_map(|layer| (0..heads).map(move |head| json!(["cross", layer, head]))).collect();
    let request =
        json!({ "kind": "run", "model": "translate-en-ko", "text": "The student reads two books.", "off": without });
    let blind = ask(&explorer, request).unwrap().head;
    assert_ne!(blind["written"], read["written"], "without cross-attention nothing is known of the text");

    let image = base64::engine::general_purpose::STANDARD.encode(digit());
    let read = ask(&explorer, json!({ "kind": "run", "model": "digits", "image": image })).unwrap().head;
    let OpenModel { model: Model::Vit(model), .. } = OpenModel::open("digits").unwrap() else { panic!() };
    let pixels = foveal_explorer::image::decode(&model, &digit()).unwrap();
    let hidden = model.infer(&model.preprocessor().values(&pixels), &mut Probe::default()).unwrap();
    let scores = model.classify(&hidden).unwrap();
    let best = (0..10).max_by(|a, b| scores[[0, *a]].total_cmp(&scores[[0, *b]])).unwrap();
    assert_eq!(read["next"][0]["token"], json!(best));
    assert_eq!(read["image"]["width"], json!(model.config().grid()));
    let changed = json!({ "kind": "predict", "run": read["id"], "off": [["encoder", 0, 0]] });
    let changed = ask(&explorer, changed).unwrap().head;
    assert_ne!(changed["base"], changed["changed"]);
}

#[test]
fn all_heads_at_a_glance_and_in_numbers() {
    let explorer = inside();
    let read = run(&explorer, "shakespeare", TEXT);
    let n = read["axes"][0]["labels"].as_array().unwrap().len();
    let overview =
        ask(&explorer, json!({ "kind": "overview", "run": read["id"], "site": "decoder", "measure": "weights" }));
    let overview = overview.unwrap();
    let site = &read["sites"][0];
    let (layers, heads) = (site["layers"].as_array().unwrap().len(), site["heads"].as_u64().unwrap() as usize);
    assert_eq!((&overview.head["rows"], &overview.head["sampled"]), (&json!(n), &json!(false)));
    assert_eq!(overview.buffers[0].len(), layers * heads * n * n);
    // Small texts are not pooled: codes are those of the weights.
    let tile = json!({ "kind": "tile", "at": at(&read, "decoder", 1, 2), "rows": [0, n], "cols": [0, n] });
    let weights = numbers(&ask(&explorer, tile).unwrap().buffers[0]);
    let max = overview.head["max"][heads + 2].as_f64().unwrap() as f32;
    for (code, weight) in overview.buffers[0][(heads + 2) * n * n..].iter().zip(&weights) {
        assert_eq!(*code, (254.0 * (weight / max).sqrt()).round() as u8);
    }
    let report = ask(&explorer, json!({ "kind": "heads", "run": read["id"], "site": "decoder" })).unwrap().head;
    let row = &report["rows"][heads + 2];
    let first: f32 = weights.iter().step_by(n).sum::<f32>() / n as f32;
    assert!((row["first"].as_f64().unwrap() - f64::from(first)).abs() < 1e-6);
    let previous: f32 = (1..n).map(|i| weights[i * n + i - 1]).sum::<f32>() / (n - 1) as f32;
    assert!((row["previous"].as_f64().unwrap() - f64::from(previous)).abs() < 1e-6);
}

#[test]
fn neurons_multiply_to_the_cell() {
    let explorer = inside();
    let read = run(&explorer, "shakespeare", TEXT);
    let place = at(&read, "decoder", 1, 1);
    let neurons = ask(&explorer, json!({ "kind": "neurons", "at": place, "query": 5, "keys": [2, 5] })).unwrap();
    let (q, k) = (numbers(&neurons.buffers[0]), numbers(&neurons.buffers[1]));
    for (n, key) in (2..5).enumerate() {
        let cell = ask(&explorer, json!({ "kind": "cell", "at": place, "query": 5, "key": key })).unwrap();
        let product: f64 = q.iter().zip(&k[n * q.len()..]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        assert!((product - cell.head["product"].as_f64().unwrap()).abs() < 1e-9);
        // share = w · v · W_o, and ‖v · W_o‖ is the norm.
        let share = numbers(&cell.buffers[3]);
        let length = share.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let expected = cell.head["weight"].as_f64().unwrap() * cell.head["norm"].as_f64().unwrap();
        assert!((length - expected).abs() < 1e-5 * (1.0 + expected));
    }
}

#[test]
fn a_long_text_is_sampled_and_fits() {
    let folder = tempfile::tempdir().unwrap();
    save_llama(folder.path(), 2, 64, 1.0);
    let long = "to be ".repeat(3900);
    let (explorer, id) = over(folder.path(), None);
    let refused = ask(&explorer, json!({ "kind": "run", "model": id, "text": long })).unwrap_err();
    assert_eq!(refused.code, Code::Request);
    let (explorer, id) = over(folder.path(), Some(8192));
    let read = run(&explorer, &id, &long);
    let n = read["axes"][0]["labels"].as_array().unwrap().len();
    assert!(n > 3000);
    let overview = json!({ "kind": "overview", "run": read["id"], "site": "decoder", "measure": "weights" });
    let overview = ask(&explorer, overview).unwrap().head;
    assert_eq!((&overview["sampled"], overview["max"].as_array().unwrap().len()), (&json!(true), 8));
    // A map in strips is the engine's.
    let open = over(folder.path(), Some(8192)).0;
    let model = open.catalog().model(&id).unwrap();
    let layer = model.observe(&long).unwrap().trace.layer(Kind::Decoder, 1).unwrap().clone();
    let map =
        json!({ "kind": "map", "at": at(&read, "decoder", 1, 3), "rows": [0, n], "cols": [0, n], "size": [1001, 900] });
    let map = numbers(&ask(&explorer, map).unwrap().buffers[0]);
    let expected = layer.map((0, 3), 0..n, 0..n, (1001, 900), foveal::Pool::Max).unwrap();
    assert!(map.iter().eq(&expected));
    // Room for less than that.
    let (explorer, id) = over(folder.path(), Some(8192));
    let explorer = explorer.memory(1 << 20);
    let refused = ask(&explorer, json!({ "kind": "run", "model": id, "text": long })).unwrap_err();
    assert!(refused.text.of(Language::English).contains("--memory"), "{refused}");
}

#[test]
fn runs_are_forgotten_when_there_is_no_room() {
    let explorer = Explorer::new(Catalog::new().with_inside()).memory(3 << 20);
    let first = run(&explorer, "shakespeare", TEXT);
    for n in 0..40 {
        run(&explorer, "shakespeare", &format!("{n} {TEXT} {TEXT}"));
        assert!(explorer.bytes() <= 3 << 20);
    }
    let tile = json!({ "kind": "tile", "at": at(&first, "decoder", 0, 0), "rows": [0, 1], "cols": [0, 1] });
    assert_eq!(ask(&explorer, tile).unwrap_err().code, Code::Gone);
}

#[test]
fn long_work_shows_progress_and_can_be_stopped() {
    let explorer = Arc::new(inside());
    let parts = Arc::new(Mutex::new(Vec::new()));
    let kept = parts.clone();
    let asker = Asker::new(Language::Korean, move |part| kept.lock().unwrap().push(part.head));
    let request = json!({ "kind": "run", "model": "shakespeare", "text": TEXT });
    let request = Request::parse(request.to_string().as_bytes()).unwrap();
    explorer.ask(&request, &asker).unwrap();
    let what = parts.lock().unwrap()[0]["what"].as_str().unwrap().to_owned();
    assert_eq!(what, "shakespeare 여는 중");
    // Stopped by its own first part.
    let stopped = Arc::new(Mutex::new(None::<foveal_explorer::Cancel>));
    let cancel = stopped.clone();
    let asker = Asker::new(Language::English, move |_| cancel.lock().unwrap().as_ref().unwrap().cancel());
    *stopped.lock().unwrap() = Some(asker.cancel.clone());
    let request = json!({ "kind": "run", "model": "shakespeare", "text": "another text" });
    let request = Request::parse(request.to_string().as_bytes()).unwrap();
    assert_eq!(explorer.ask(&request, &asker).unwrap_err().code, Code::Stopped);
}

#[test]
fn bad_questions_are_refused_in_both_languages() {
    let explorer = inside();
    let read = run(&explorer, "shakespeare", TEXT);
    let n = read["axes"][0]["labels"].as_array().unwrap().len();
    let good = at(&read, "decoder", 0, 0);
    let tile = |at: Value, rows: Value, cols: Value| json!({ "kind": "tile", "at": at, "rows": rows, "cols": cols });
    let huge = u64::MAX;
    let bad = [
        (json!({ "kind": "run", "model": "nothing", "text": "x" }), Code::Request),
        (json!({ "kind": "run", "model": "../shakespeare", "text": "x" }), Code::Request),
        (json!({ "kind": "run", "model": "/etc/passwd", "text": "x" }), Code::Request),
        (json!({ "kind": "run", "model": "shakespeare" }), Code::Request),
        (json!({ "kind": "run", "model": "shakespeare", "text": "" }), Code::Request),
        (json!({ "kind": "run", "model": "shakespeare", "text": "a ".repeat(5000) }), Code::Request),
        (json!({ "kind": "run", "model": "shakespeare", "image": "AAAA" }), Code::Request),
        (json!({ "kind": "run", "model": "shakespeare", "text": "x", "passages": "y" }), Code::Request),
        (json!({ "kind": "run", "model": "reader", "text": "Who?" }), Code::Request),
        (json!({ "kind": "run", "model": "reader", "text": "Who?", "passages": " \n\n" }), Code::Request),
        (json!({ "kind": "run", "model": "reader", "text": " ", "passages": "Anna lives in Rome." }), Code::Request),
        (json!({ "kind": "run", "model": "reader", "text": "who ".repeat(2000), "passages": "Anna." }), Code::Request),
        (json!({ "kind": "run", "model": "shakespeare", "text": "x", "off": [["decoder", 99, 0]] }), Code::Request),
        (json!({ "kind": "run", "model": "digits", "text": "x" }), Code::Request),
        (json!({ "kind": "run", "model": "digits", "image": "not base64!" }), Code::Request),
        (json!({ "kind": "run", "model": "digits", "image": "AAAA" }), Code::Request),
        (tile(at(&json!({ "id": "none" }), "decoder", 0, 0), json!([0, 1]), json!([0, 1])), Code::Gone),
        (tile(at(&read, "cross", 0, 0), json!([0, 1]), json!([0, 1])), Code::Request),
        (tile(at(&read, "decoder", 99, 0), json!([0, 1]), json!([0, 1])), Code::Request),
        (tile(at(&read, "decoder", 0, 99), json!([0, 1]), json!([0, 1])), Code::Request),
        (tile(at(&read, "decoder", 0, -2), json!([0, 1]), json!([0, 1])), Code::Request),
        (tile(good.clone(), json!([0, n + 1]), json!([0, 1])), Code::Request),
        (tile(good.clone(), json!([3, 2]), json!([0, 1])), Code::Request),
        (tile(good.clone(), json!([0, 0]), json!([0, 1])), Code::Request),
        (tile(good.clone(), json!([0, huge]), json!([0, huge])), Code::Request),
        (json!({ "kind": "map", "at": good, "rows": [0, n], "cols": [0, n], "size": [0, 1] }), Code::Request),
        (json!({ "kind": "map", "at": good, "rows": [0, n], "cols": [0, n], "size": [1, huge] }), Code::Request),
        (json!({ "kind": "map", "at": good, "rows": [0, 1], "cols": [0, n], "size": [2, 1] }), Code::Request),
        (json!({ "kind": "cell", "at": good, "query": n, "key": 0 }), Code::Request),
        (json!({ "kind": "cell", "at": good, "query": 0, "key": huge }), Code::Request),
        (json!({ "kind": "cell", "at": at(&read, "decoder", 0, -1), "query": 0, "key": 0 }), Code::Request),
        (json!({ "kind": "neurons", "at": good, "query": 0, "keys": [0, 10_000] }), Code::Request),
        (json!({ "kind": "predict", "run": read["id"], "off": [["attention", 0, 0]] }), Code::Request),
        (json!({ "kind": "predict", "run": "none", "off": [] }), Code::Gone),
        (json!({ "kind": "generate", "run": read["id"], "count": 0 }), Code::Request),
        (json!({ "kind": "generate", "run": read["id"], "count": huge }), Code::Request),
        (json!({ "kind": "generate", "run": read["id"], "count": 1, "temperature": -1 }), Code::Request),
        (json!({ "kind": "generate", "run": read["id"], "count": 1, "temperature": 1e300 }), Code::Request),
        (json!({ "kind": "generate", "run": read["id"], "count": 1, "watch": ["decoder", 99, 0] }), Code::Request),
        (json!({ "kind": "heads", "run": read["id"], "site": "cross" }), Code::Request),
        (json!({ "kind": "overview", "run": read["id"], "site": "encoder", "measure": "weights" }), Code::Request),
    ];
    for (request, code) in bad {
        let fault = ask(&explorer, request.clone()).unwrap_err();
        assert_eq!(fault.code, code, "{request}: {fault}");
        let korean = fault.text.of(Language::Korean);
        assert!(korean.chars().any(|c| ('가'..='힣').contains(&c)), "{korean}");
    }
}
