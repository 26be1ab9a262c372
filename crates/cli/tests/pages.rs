//! Pages that commands write: what they hold, and what they open with. A browser uses them in crates/view/tests/browser.

mod support;

use serde_json::Value;
use support::{json, printed};

/// What a page says about itself.
fn meta(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    printed(&[arguments, &["-o", path.to_str().unwrap()]].concat());
    let html = std::fs::read_to_string(path).unwrap();
    let data = html.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    for (site, stored) in data["sites"].as_array().unwrap().iter().enumerate() {
        for layer in 0..stored["layers"].as_array().unwrap().len() {
            assert!(html.contains(&format!("id=\"q-{site}-{layer}-0\"")), "queries of layer {layer}");
        }
    }
    data["meta"].clone()
}

#[test]
fn a_page_opens_with_what_the_terminal_shows() {
    let text = "ROMEO: But soft, what light";
    let shown = json(&["see", text]);
    let meta = meta(&["see", text]);
    let site = &meta["runs"][0]["sites"][0];
    assert_eq!(site["salient"], serde_json::json!([shown["heads"][0]["layer"], shown["heads"][0]["head"]]));
    assert_eq!(meta["view"]["unit"], Value::Null, "words are whole unless pieces are asked for");
    assert_eq!(meta["digits"], 4);
    assert_eq!(site["measures"], serde_json::json!(["weights", "norms", "rollout"]));
    assert!(!meta["runs"][0]["next"].as_array().unwrap().is_empty());
}

#[test]
fn options_reach_the_page() {
    let asked = ["--layer", "1", "--head", "2", "--tokens", "tokens", "--view", "lines", "--token", "3", "--dark"];
    let meta =
        meta(&[&["see", "To be, or not to be", "--show", "norm", "--lang", "ko", "--values"], &asked[..]].concat());
    assert_eq!(meta["runs"][0]["sites"][0]["salient"], serde_json::json!([1, 2]));
    let view = &meta["view"];
    for (key, value) in [("unit", "tokens"), ("view", "lines"), ("pin", "3"), ("theme", "dark"), ("measure", "norms")] {
        assert_eq!(view[key], value, "{key}");
    }
    assert_eq!(meta["language"], "ko");
}

#[test]
fn a_translation_holds_all_three_kinds() {
    let meta = meta(&["translate", "The student reads two books."]);
    let run = &meta["runs"][0];
    let kinds: Vec<&str> = run["sites"].as_array().unwrap().iter().map(|site| site["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["encoder", "decoder", "cross"]);
    assert_eq!(meta["view"]["site"], "cross");
    assert_eq!(run["axes"].as_array().unwrap().len(), 2);
    assert!(run["written"].as_str().is_some_and(|text| !text.is_empty()));
}

#[test]
fn a_map_is_a_page_of_its_layer() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    std::fs::write(&text, "to be or not to be, that is the question ".repeat(12)).unwrap();
    let meta = meta(&["map", text.to_str().unwrap(), "--layer", "2", "--head", "1", "--rows", "20..60"]);
    let site = &meta["runs"][0]["sites"][0];
    assert_eq!((&site["layers"], &site["salient"]), (&serde_json::json!([2]), &serde_json::json!([2, 1])));
    assert!(meta["view"]["at"].as_str().unwrap().starts_with("20,0,60,"));
}
