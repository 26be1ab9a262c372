//! Models opened in one place: what comes with them, and what is observed while they read.

use std::path::Path;

use foveal_models::generate::beam::BosEos;
use foveal_models::layer::Random;
use foveal_models::model::{
    Bert, BertConfig, Gpt2, Gpt2Config, Llama, LlamaConfig, Transformer, TransformerConfig, Vit, VitConfig,
};
use foveal_models::trace::{Kind, Probe};
use foveal_models::translation::{Languages, Vocabulary};
use foveal_models::{Architecture, Checkpoint, Dtype, Error, Observation, OpenModel, ReadOptions, Tokenizer};

const TEXT: &str = "the cat sat on the mat and the dog sat on the log";

/// Large weights, so that predictions and attention are far from even.
fn gpt2(folder: &Path) -> Gpt2 {
    let tokenizer = Tokenizer::of_characters(TEXT).unwrap();
    let vocabulary = tokenizer.vocabulary();
    let config =
        Gpt2Config { vocabulary, context: 64, width: 24, heads: 3, layers: 2, hidden: 48, ..Gpt2Config::nano() };
    let mut model = Gpt2::new(&config, &mut Random::new(1)).unwrap();
    enlarge(&mut model);
    model.save(folder, Dtype::F16).unwrap();
    tokenizer.save(folder).unwrap();
    model
}

fn enlarge(model: &mut impl foveal_models::layer::Parameters) {
    model.visit_mut("", &mut |name, mut parameter| {
        if name.ends_with("weight") && parameter.ndim() == 2 {
            parameter.mapv_inplace(|x| x * 8.0);
        }
    });
}

fn llama(folder: &Path) {
    let tokenizer = Tokenizer::of_characters(TEXT).unwrap();
    let config = LlamaConfig { vocabulary: tokenizer.vocabulary(), context: 64, ..LlamaConfig::nano() };
    Llama::new(&config, &mut Random::new(2)).unwrap().save(folder, Dtype::F32).unwrap();
    tokenizer.save(folder).unwrap();
}

fn bert(folder: &Path) {
    let words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "##s"];
    let vocabulary = words.len();
    let config =
        BertConfig { vocabulary, context: 32, width: 16, layers: 2, heads: 4, hidden: 32, ..BertConfig::minilm() };
    Bert::new(&config, &mut Random::new(3)).unwrap().save(folder, Dtype::F32).unwrap();
    std::fs::write(folder.join("vocab.txt"), words.join("\n")).unwrap();
}

fn translator(folder: &Path) {
    let train = |texts: [&str; 2]| Vocabulary::words().train(texts).unwrap();
    let languages = Languages {
        source: train(["the cat sleeps", "a dog"]),
        target: train(["고양이가 자요", "개 한 마리"]),
    };
    let config = TransformerConfig {
        source_vocabulary: languages.source.vocabulary(),
        target_vocabulary: languages.target.vocabulary(),
        context: 16,
        width: 16,
        heads: 2,
        hidden: 32,
        encoder_layers: 2,
        decoder_layers: 1,
        ..TransformerConfig::small()
    };
    let mut model = Transformer::new(&config, &mut Random::new(4)).unwrap();
    enlarge(&mut model);
    model.save(folder, Dtype::F32).unwrap();
    languages.save(folder).unwrap();
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

fn of_kind(kind: Kind) -> ReadOptions {
    ReadOptions { kind: Some(kind), ..ReadOptions::default() }
}

#[test]
fn a_language_model_comes_with_all_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("my-model");
    let model = gpt2(&folder);
    let config = folder.join("config.json");
    let ended = std::fs::read_to_string(&config).unwrap().replacen('{', "{\"eos_token_id\": [7, 3],", 1);
    std::fs::write(&config, ended).unwrap();
    let open = OpenModel::open(path(&folder)).unwrap();
    assert_eq!((open.name.as_str(), open.path()), ("my-model", Some(folder.as_path())));
    assert_eq!(open.stop, [3, 7]);
    assert!(open.translator().is_err() && open.session().is_ok());
    let known = open.summary();
    let sizes = (known.architecture, known.dtype, known.heads, known.width, known.context);
    assert_eq!(sizes, (Architecture::Gpt2, Some(Dtype::F16), 3, 24, 64));
    assert_eq!(known.layers, [(Kind::Decoder, 2)]);
    assert_eq!(known.vocabulary, Some(open.tokenizer().unwrap().vocabulary()));
    let mut counted = 0;
    foveal_models::layer::Parameters::visit(&model, "", &mut |_, parameter| counted += parameter.len() as u128);
    assert_eq!(known.parameters, counted);
    let said = known.to_string();
    assert!(said.starts_with("gpt2, 2 decoder layers of 3 heads, width 24, ") && said.contains("in F16"), "{said}");
    assert!(!format!("{open:?}").contains("0."), "no weights in {open:?}");
    // The same through a checkpoint that is open already, and through its file of weights.
    let again = OpenModel::of(&Checkpoint::open(&folder).unwrap()).unwrap();
    assert_eq!((again.name, again.stop), (open.name.clone(), open.stop.clone()));
    assert_eq!(OpenModel::open(path(&folder.join("model.safetensors"))).unwrap().summary(), known);
}

#[test]
fn what_a_language_model_reads_is_observed() {
    let folder = tempfile::tempdir().unwrap();
    gpt2(folder.path());
    let open = OpenModel::open(path(folder.path())).unwrap();
    let seen = open.observe("the dog sat").unwrap();
    assert_eq!((seen.kind, seen.layers(), seen.heads()), (Kind::Decoder, vec![0, 1], 3));
    assert_eq!(seen.queries, seen.keys);
    assert_eq!(seen.queries.labels.concat(), "the dog sat");
    assert_eq!(seen.queries.words().labels, ["the", "dog", "sat"]);
    // Probabilities from the definition, in f64.
    let model = open.model.as_language_model().unwrap();
    let ids = open.tokenizer().unwrap().encode("the dog sat").unwrap().ids().to_vec();
    let hidden = model.infer(&ids, 1, None, &mut Probe::default()).unwrap();
    let logits = model.logits(hidden.view()).unwrap();
    let exp: Vec<f64> = logits.row(ids.len() - 1).iter().map(|x| f64::from(*x).exp()).collect();
    let sum: f64 = exp.iter().sum();
    assert_eq!(seen.predictions.len(), 5);
    assert!(seen.predictions.windows(2).all(|pair| pair[0].probability >= pair[1].probability));
    let best = (0..exp.len()).max_by(|a, b| exp[*a].total_cmp(&exp[*b])).unwrap();
    assert_eq!(seen.predictions[0].token as usize, best);
    for next in &seen.predictions {
        let expected = exp[next.token as usize] / sum;
        assert!((f64::from(next.probability) - expected).abs() < 1e-5, "{next:?}, expected {expected}");
        assert_eq!(next.label, open.tokenizer().unwrap().describe(&[next.token]).unwrap().labels()[0]);
    }
    // The head that looks most at others, from the dense weights.
    let n = ids.len();
    let mut scores = Vec::new();
    for (layer, head) in (0..2).flat_map(|layer| (0..3).map(move |head| (layer, head))) {
        let weights = seen.layer(layer).unwrap().weights(0, head).unwrap();
        let others = |i: usize| (1..n).filter(|j| *j != i).map(|j| weights[[i, j]]).fold(0.0, f32::max);
        scores.push(((layer, head), (0..n).map(others).sum::<f32>()));
    }
    let salient = |layer: Option<usize>| {
        let of_layer = scores.iter().filter(|((l, _), _)| layer.is_none_or(|layer| layer == *l));
        of_layer.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
    };
    assert_eq!(seen.salient_head(None).unwrap(), salient(None));
    assert_eq!(seen.salient_head(Some(1)).unwrap(), salient(Some(1)));
    assert!(matches!(seen.salient_head(Some(9)), Err(Error::NotCaptured { .. })));
    let error = Observation::of(&open, "the dog", &of_kind(Kind::Encoder)).unwrap_err();
    assert!(error.to_string().contains("no encoder attention"), "{error}");
}

#[test]
fn llama_and_bert_open_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    llama(folder.path());
    let open = OpenModel::open(path(folder.path())).unwrap();
    assert_eq!(open.summary().architecture, Architecture::Llama);
    assert_eq!(open.observe("the mat").unwrap().queries.len(), 7);

    let folder = tempfile::tempdir().unwrap();
    bert(folder.path());
    let open = OpenModel::open(path(folder.path())).unwrap();
    assert_eq!(open.summary().layers, [(Kind::Encoder, 2)]);
    let seen = open.observe("The cats sat").unwrap();
    assert_eq!(seen.queries.labels, ["[CLS]", "The", "cat", "s", "sat", "[SEP]"]);
    assert_eq!(seen.queries.special, [true, false, false, false, false, true]);
    assert_eq!(seen.queries.words().labels, ["[CLS]", "The", "cats", "sat", "[SEP]"]);
    assert_eq!(seen.queries.words().special, [true, false, false, false, true]);
    assert!(seen.predictions.is_empty() && seen.written.is_none() && seen.kind == Kind::Encoder);
    assert!(matches!(open.session().map(drop), Err(Error::Unfit { .. })));
}

#[test]
fn a_translator_writes_and_is_observed() {
    let folder = tempfile::tempdir().unwrap();
    translator(folder.path());
    let open = OpenModel::open(path(folder.path())).unwrap();
    let (source, target) = (open.tokenizer().unwrap(), open.target_tokenizer().unwrap());
    assert!(source.id("▁cat").is_some() && target.id("▁cat").is_none());
    assert!(target.id("▁자요").is_some() && source.id("▁자요").is_none());
    let BosEos { begin, end, .. } = open.bos_eos().unwrap();
    assert_eq!((target.token(begin).unwrap(), target.token(end).unwrap()), ("<s>".to_owned(), "</s>".to_owned()));
    let known = open.summary();
    assert_eq!(known.layers, [(Kind::Encoder, 2), (Kind::Decoder, 1), (Kind::Cross, 1)]);
    assert!(known.to_string().contains("2 encoder + 1 decoder + 1 cross layers"), "{known}");
    let cross = open.observe("the cat sleeps").unwrap();
    let written = cross.written.as_ref().unwrap();
    assert_eq!((cross.kind, cross.keys.len()), (Kind::Cross, 3));
    assert_eq!(cross.queries.len(), written.tokens.len() + 1);
    assert_eq!(cross.queries.labels.last().map(String::as_str), Some("</s>"));
    assert_eq!(written.text, target.decode(&written.tokens).unwrap().trim());
    assert_eq!(cross.layer(0).unwrap().weights(0, 1).unwrap().dim(), (cross.queries.len(), 3));
    for (kind, sides) in
        [(Kind::Encoder, (3, 3)), (Kind::Decoder, (written.tokens.len() + 1, written.tokens.len() + 1))]
    {
        let seen = Observation::of(&open, "the cat sleeps", &of_kind(kind)).unwrap();
        assert_eq!((seen.queries.len(), seen.keys.len()), sides);
        assert_eq!(seen.layer(0).unwrap().weights(0, 0).unwrap().dim(), sides);
    }
}

#[test]
fn what_cannot_be_is_said() {
    let folder = tempfile::tempdir().unwrap();
    Vit::new(&VitConfig::digits(), &mut Random::new(1)).unwrap().save(folder.path(), Dtype::F32).unwrap();
    let open = OpenModel::open(path(folder.path())).unwrap();
    assert_eq!((open.summary().context, open.summary().vocabulary), (50, None));
    let error = open.observe("a text").unwrap_err();
    assert!(matches!(error, Error::NoText { .. }) && error.to_string().contains("give it an image"), "{error}");
    assert!(OpenModel::open("/no/such/model").is_err());
    // Without its tokenizer a language model does not open.
    let folder = tempfile::tempdir().unwrap();
    gpt2(folder.path());
    std::fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    assert!(OpenModel::open(path(folder.path())).unwrap_err().to_string().contains("tokenizer.json"));
}

#[cfg(feature = "inside")]
#[test]
fn models_inside_open_by_name() {
    for asset in &foveal_assets::MODELS {
        let open = OpenModel::open(asset.name).unwrap();
        assert_eq!((open.name.as_str(), open.path()), (asset.name, None));
        assert_eq!(open.summary().dtype, Some(Dtype::F16));
        assert_eq!(open.tokenizer().is_ok(), asset.tokenizer.is_some());
    }
    assert!(OpenModel::inside("no-such-model").is_none());
}
