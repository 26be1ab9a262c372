//! The reader of passages: its gradients, its two ways of running, and its answers.

use foveal_models::layer::{CrossEntropy, Parameters, Random};
use foveal_models::model::{Bert, BertConfig, Reader, ReaderConfig, Sentences};
use foveal_models::reading::{Asker, Limits, MARKS, Padded, ReaderTokens, reader_vocabulary};
use foveal_models::retrieval::{Ranked, rank_by_meaning};
use foveal_models::trace::{Capture, Kind, Probe};
use foveal_models::train::{Asked, Plan, Questions, Trainer};
use foveal_models::{Architecture, Checkpoint, Dtype, Error, Model, Tokenizer};

fn tokenizer() -> Tokenizer {
    let texts = ["Anna lives in Rome.", "Where does Tom live?", "Tom has the key."];
    reader_vocabulary(texts.repeat(4), '가'..='깋', 30).unwrap()
}

fn model(vocabulary: usize) -> Reader {
    let config = ReaderConfig { width: 16, heads: 2, hidden: 24, context: 64, ..ReaderConfig::small(vocabulary) };
    let config = ReaderConfig { encoder_layers: 2, decoder_layers: 2, ..config };
    let model = Reader::new(&config, &mut Random::new(3)).unwrap();
    assert_eq!(model.parameter_count() as u128, config.parameters());
    model
}

/// Two questions, of two passages and of one.
fn asked(tokens: &ReaderTokens) -> Vec<Asked> {
    let one = |question: &str, passages: &[&str], answer: Option<&str>| {
        let question = tokens.question(question).unwrap();
        let inputs = passages.iter().map(|passage| tokens.input(&question, passage).unwrap()).collect();
        Asked { inputs, answer: tokens.answer(answer).unwrap() }
    };
    let first = one("Where does Anna live?", &["Tom has the key.", "Anna lives in Rome."], Some("Rome"));
    vec![first, one("Who has it?", &["가 나는 Rome."], None)]
}

/// Inputs and targets of the answers, filled up.
fn written(tokens: &ReaderTokens, asked: &[Asked]) -> (Vec<u32>, Vec<u32>) {
    let longest = asked.iter().map(|asked| asked.answer.len()).max().unwrap() + 1;
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for (n, asked) in asked.iter().enumerate() {
        inputs.extend([&[tokens.begin][..], &asked.answer].concat());
        inputs.resize((n + 1) * longest, tokens.end);
        targets.extend([&asked.answer[..], &[tokens.end]].concat());
        targets.resize((n + 1) * longest, u32::MAX);
    }
    (inputs, targets)
}

#[test]
fn gradients_are_finite_differences() {
    let tokenizer = tokenizer();
    let (tokens, mut model) = (ReaderTokens::new(&tokenizer, 64).unwrap(), model(tokenizer.vocabulary()));
    let asked = asked(&tokens);
    let padded = Padded::new(asked.iter().map(|asked| asked.inputs.as_slice()));
    let (inputs, targets) = written(&tokens, &asked);
    let options = CrossEntropy { ignore: Some(u32::MAX), ..CrossEntropy::new() };
    let mut grad = model.zeros_like();
    let saved = model.forward(padded.batch(), &inputs, None).unwrap();
    model.backward(&saved, &options, &targets, &mut grad).unwrap();
    let loss = |model: &Reader| {
        let saved = model.forward(padded.batch(), &inputs, None).unwrap();
        f64::from(options.forward(&model.mixture(&saved).unwrap().log_probabilities(), &targets).unwrap().mean)
    };
    // Along the gradient of each tensor, and along random signs: f32 leaves 4 digits of a difference.
    let mut names = Vec::new();
    grad.visit("", &mut |name, gradient| names.push((name.to_owned(), gradient.to_owned())));
    for (name, gradient) in &names {
        let norm = gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        assert!(norm > 0.0, "{name} has no gradient");
        let step = (0.02 / norm.max(0.02)) as f32;
        let mut at = |shift: f32| {
            model.visit_mut("", &mut |other, mut parameter| {
                if other == name {
                    parameter.scaled_add(shift, gradient);
                }
            });
            loss(&model)
        };
        let (plus, _) = (at(step), at(-step));
        let minus = at(-step);
        at(step);
        let slope = (plus - minus) / (2.0 * f64::from(step));
        assert!((slope - norm * norm).abs() < 0.03 * norm * norm + 2e-4, "{name}: {} not {slope}", norm * norm);
    }
}

#[test]
fn writing_token_by_token_is_the_forward_pass() {
    let tokenizer = tokenizer();
    let (tokens, model) = (ReaderTokens::new(&tokenizer, 64).unwrap(), model(tokenizer.vocabulary()));
    let asked = asked(&tokens);
    let padded = Padded::new(asked.iter().map(|asked| asked.inputs.as_slice()));
    let (inputs, _) = written(&tokens, &asked);
    let saved = model.forward(padded.batch(), &inputs, None).unwrap();
    let together = model.mixture(&saved).unwrap().log_probabilities();
    let rows = inputs.len() / 2;
    for (n, asked) in asked.iter().enumerate() {
        // Passages are encoded one by one, and no other is in the batch.
        let (mut encoded, mut read) = (Vec::new(), Vec::new());
        for input in &asked.inputs {
            let one = Padded::new([std::slice::from_ref(input)]);
            encoded.push(model.encode(one.batch(), &mut Probe::default()).unwrap());
            read.extend_from_slice(&input.tokens[input.start..]);
        }
        let views: Vec<_> = encoded.iter().map(|rows| rows.view()).collect();
        let encoded = ndarray::concatenate(ndarray::Axis(0), &views).unwrap();
        let passages = model.fuse(&encoded, read.clone()).unwrap();
        let mut probe = Probe::new(Capture::All);
        let alone = model.write(&inputs[n * rows..(n + 1) * rows], &passages, &mut probe).unwrap();
        for (i, row) in alone.outer_iter().enumerate() {
            let error = (&row - &together.row(n * rows + i)).fold(0.0f32, |max, x| max.max(x.abs()));
            assert!(error < 1e-4, "question {n}, row {i}: {error}");
        }
        let trace = probe.into_trace();
        for layer in 0..2 {
            assert_eq!(trace.layer(Kind::Cross, layer).unwrap().weights(0, 1).unwrap().dim(), (rows, read.len()));
        }
    }
}

#[test]
fn a_reader_is_saved_and_opened() {
    let (tokenizer, folder) = (tokenizer(), tempfile::tempdir().unwrap());
    let model = model(tokenizer.vocabulary());
    model.save(folder.path(), Dtype::F32).unwrap();
    tokenizer.save(folder.path()).unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.architecture().unwrap(), Architecture::Reader);
    let Model::Reader(again) = Model::load(&checkpoint).unwrap() else { panic!("another model") };
    assert_eq!(again, model);
    let open = foveal_models::OpenModel::of(&checkpoint).unwrap();
    let asker = Asker::new(&open, Limits { least: 0.0, ..Limits::default() }).unwrap();
    let answered = asker.ask("Where does Anna live?", &["Tom has the key.", "Anna lives in Rome. 🙂"]).unwrap();
    let weights = answered.weights();
    assert_eq!(weights.len(), 2);
    assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-4, "{weights:?}");
    assert_eq!(answered.attention.dim(), (answered.written.len(), answered.places.len()));
    let text = "Anna lives in Rome. 🙂";
    let words = answered.words(1, text);
    assert_eq!(
        words.iter().map(|(word, _)| &text[word.clone()]).collect::<Vec<_>>(),
        ["Anna", "lives", "in", "Rome.", "🙂"]
    );
    assert!(words.iter().map(|(_, weight)| weight).sum::<f32>() <= weights[1] + 1e-5);
}

#[test]
fn bad_questions_are_told() {
    let tokenizer = tokenizer();
    let (tokens, model) = (ReaderTokens::new(&tokenizer, 64).unwrap(), model(tokenizer.vocabulary()));
    let asker = Asker::of(&model, tokens, Limits::default());
    assert!(matches!(asker.ask("Who?", &[] as &[&str]), Err(Error::TooShort { .. })));
    assert!(matches!(asker.ask(&"who ".repeat(40), &["Tom."]), Err(Error::Context { .. })));
    assert!(matches!(asker.ask(&"왜".repeat(100_000), &["Tom."]), Err(Error::Context { .. })));
    // A passage is cut to what there is room for, and odd characters are only bytes.
    for passage in ["", " ", "🙂🙃", &"Tom has the key. ".repeat(100), "日本語 العربية"] {
        asker.ask("Who has the key?", &[passage]).unwrap();
    }
    assert!(ReaderTokens::new(&Tokenizer::of_characters("abc").unwrap(), 64).is_err());
    let question = tokens.question("Who?").unwrap();
    let input = tokens.input(&question, &"Tom has the key. ".repeat(100)).unwrap();
    assert!(input.tokens.len() == 64 && input.marks.iter().all(|mark| (*mark as usize) < MARKS));
}

/// Copying alone: names that never come twice, answers that no vocabulary could learn.
#[test]
fn a_small_reader_learns_to_copy() {
    let tokenizer = tokenizer();
    let tokens = ReaderTokens::new(&tokenizer, 64).unwrap();
    let syllables: Vec<char> = ('가'..='깋').collect();
    let draw = |random: &mut Random| -> Vec<Asked> {
        let mut name = || (0..2).map(|_| syllables[random.below(syllables.len())]).collect::<String>();
        let mut one = || {
            let question = tokens.question("key?").unwrap();
            let answer = name();
            let inputs = vec![tokens.input(&question, &format!("key {answer}.")).unwrap()];
            Asked { inputs, answer: tokens.answer(Some(&answer)).unwrap() }
        };
        (0..16).map(|_| one()).collect()
    };
    let held_out = draw(&mut Random::new(77));
    let task = Questions::new(draw, held_out, (tokens.begin, tokens.end)).unwrap();
    let plan = Plan { steps: 250, warmup: 10, peak: 5e-3, evaluate_every: 250, ..Plan::default() };
    let mut trainer = Trainer::new(&task, model(tokenizer.vocabulary()), plan).unwrap();
    trainer.run(&mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let loss = trainer.records().last().unwrap().held_out.unwrap();
    assert!(loss < 0.7, "{loss} nats a token; without a pointer it is {:.1}", (syllables.len() as f32).ln() / 2.0);
}

/// Each passage by itself, with a passage that is longer than the model can see.
#[test]
fn meaning_ranks_by_the_cosine_of_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = Tokenizer::of_characters("abcdefghijklmnopqrstuvwxyz .").unwrap();
    let config = BertConfig {
        vocabulary: tokenizer.vocabulary(),
        context: 16,
        width: 16,
        layers: 2,
        heads: 4,
        ..BertConfig::minilm()
    };
    let config = BertConfig { hidden: 32, ..config };
    Bert::new(&config, &mut Random::new(3)).unwrap().save(folder.path(), Dtype::F32).unwrap();
    tokenizer.save(folder.path()).unwrap();
    let open = foveal_models::OpenModel::of(&Checkpoint::open(folder.path()).unwrap()).unwrap();
    let Model::Bert(bert) = &open.model else { panic!("another model") };
    let passages: Vec<String> =
        (0..20).map(|n| format!("{} {}", "abc".repeat(1 + n % 7), "xyz".repeat(n % 3))).collect();
    let ranked = rank_by_meaning(&open, "what is abc", &passages).unwrap();
    let vector = |text: &str| {
        let ids: Vec<u32> = open.tokenizer().unwrap().encode(text).unwrap().ids().to_vec();
        let ids = if ids.len() > 16 { [&ids[..15], &ids[ids.len() - 1..]].concat() } else { ids };
        bert.embed(&Sentences::new(&[ids]), &mut Probe::default()).unwrap().row(0).mapv(f64::from)
    };
    let question = vector("what is abc");
    for Ranked { passage, score } in &ranked {
        let other = vector(&passages[*passage]);
        let cosine = other.dot(&question) / (other.dot(&other) * question.dot(&question)).sqrt();
        assert!((f64::from(*score) - cosine).abs() < 1e-4, "{passage}: {score} {cosine}");
    }
    assert!(ranked.len() == 20 && ranked.is_sorted_by(|a, b| a.score >= b.score));
}
