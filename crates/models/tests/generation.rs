//! Generation: the cache, the limits of the context, the trace of what was written.

use foveal_models::Error;
use foveal_models::generate::{Choice, End, GenerateOptions, Overflow, Sampler, Sampling, Session};
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Gpt2, Gpt2Config, LanguageModel, Llama, LlamaConfig};
use foveal_models::trace::{Capture, Head, Kind, Probe, Site};
use ndarray::{Array1, Axis};

fn gpt2(context: usize) -> Gpt2 {
    let config = Gpt2Config { vocabulary: 23, context, width: 24, heads: 3, layers: 2, ..Gpt2Config::nano() };
    let mut model = Gpt2::new(&config, &mut Random::new(9)).unwrap();
    model.visit_mut("", &mut |_, mut parameter| parameter.mapv_inplace(|x| if x == 1.0 { x } else { 8.0 * x }));
    model
}

fn llama() -> Llama {
    let config = LlamaConfig { vocabulary: 23, context: 40, width: 24, head_dim: 6, ..LlamaConfig::nano() };
    let mut model = Llama::new(&config, &mut Random::new(9)).unwrap();
    model.visit_mut("", &mut |_, mut parameter| parameter.mapv_inplace(|x| if x == 1.0 { x } else { 8.0 * x }));
    model
}

/// The scores after the last token, from a run without a cache.
fn scores(model: &dyn LanguageModel, tokens: &[u32]) -> Array1<f32> {
    let hidden = model.infer(tokens, 1, None, &mut Probe::default()).unwrap();
    model.logits(hidden.view()).unwrap().index_axis_move(Axis(0), tokens.len() - 1)
}

fn best(scores: &Array1<f32>) -> u32 {
    (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap() as u32
}

fn near(a: &Array1<f32>, b: &Array1<f32>) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4)
}

#[test]
fn with_a_cache_it_writes_what_it_would_without() {
    let (gpt2, llama) = (gpt2(40), llama());
    for model in [&gpt2 as &dyn LanguageModel, &llama] {
        let mut session = Session::new(model);
        let options = GenerateOptions { most: 20, ..GenerateOptions::default() };
        let written: Vec<u32> = session.generate(&[5, 3, 8], options).unwrap().map(Result::unwrap).collect();
        let mut tokens = vec![5, 3, 8];
        for token in written {
            assert_eq!(token, best(&scores(model, &tokens)));
            tokens.push(token);
        }
        assert_eq!(session.tokens(), tokens);
    }
}

#[test]
fn the_trace_of_a_text_written_token_by_token_is_that_of_the_whole() {
    let (gpt2, llama) = (gpt2(40), llama());
    for model in [&gpt2 as &dyn LanguageModel, &llama] {
        let mut session = Session::new(model).watched_by(Probe::new(Capture::Layers(vec![1])));
        session
            .generate(&[5, 3, 8, 1], GenerateOptions { most: 9, ..GenerateOptions::default() })
            .unwrap()
            .for_each(drop);
        let mut probe = Probe::new(Capture::All);
        model.infer(session.tokens(), 1, None, &mut probe).unwrap();
        let (parts, whole) = (session.trace(), probe.into_trace());
        assert!(matches!(parts.layer(Kind::Decoder, 0), Err(Error::NotCaptured { .. })));
        let (parts, whole) = (parts.layer(Kind::Decoder, 1).unwrap(), whole.layer(Kind::Decoder, 1).unwrap());
        assert_eq!((parts.queries(), parts.keys()), (13, 13));
        for head in 0..parts.heads() {
            let (a, b) = (parts.weights(0, head).unwrap(), whole.weights(0, head).unwrap());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }
}

#[test]
fn reading_for_the_last_token_alone_is_reading() {
    let (gpt2, llama) = (gpt2(40), llama());
    let tokens: Vec<u32> = (0..17).map(|i| i * 5 % 23).collect();
    for model in [&gpt2 as &dyn LanguageModel, &llama] {
        let last = model.shape().layers - 1;
        for capture in [Capture::None, Capture::Layers(vec![0]), Capture::All] {
            // The text in two pieces, without a head of the last layer and one of the first.
            let off = [0, last].map(|layer| Head { site: Site { kind: Kind::Decoder, layer }, head: 1 });
            let probe = Probe::new(capture).without(off);
            let (mut whole, mut parts) = (probe.clone(), probe);
            let (mut whole_cache, mut cache) = (model.cache(1, 40), model.cache(1, 40));
            let hidden = model.infer(&tokens, 1, Some(&mut whole_cache), &mut whole).unwrap();
            for (piece, end) in [(&tokens[..11], 11), (&tokens[11..], 17)] {
                let got = model.infer_last(piece, &mut cache, &mut parts).unwrap();
                assert_eq!(got.nrows(), 1);
                assert!(near(&got.row(0).to_owned(), &hidden.row(end - 1).to_owned()));
            }
            for (got, want) in cache.iter().zip(&whole_cache) {
                assert_eq!(got.len(), 17);
                assert!(got.k().to_f32().iter().zip(&want.k().to_f32()).all(|(got, want)| (got - want).abs() < 1e-4));
                assert!(got.v().to_f32().iter().zip(&want.v().to_f32()).all(|(got, want)| (got - want).abs() < 1e-4));
            }
            let (parts, whole) = (parts.into_trace(), whole.into_trace());
            for layer in 0..=last {
                let (parts, whole) = (parts.layer(Kind::Decoder, layer), whole.layer(Kind::Decoder, layer));
                assert_eq!(parts.is_ok(), whole.is_ok());
                if let (Ok(parts), Ok(whole)) = (parts, whole) {
                    let (parts, whole) = (parts.weights(0, 0).unwrap(), whole.weights(0, 0).unwrap());
                    assert!(parts.iter().zip(&whole).all(|(got, want)| (got - want).abs() < 1e-5));
                }
            }
        }
        let nothing = model.infer_last(&[], &mut model.cache(1, 40), &mut Probe::default());
        assert!(matches!(nothing, Err(Error::TooShort { .. })));
    }
}

#[test]
fn the_end_of_the_context_is_an_error_or_the_window_slides() {
    let model = gpt2(16);
    let long: Vec<u32> = (0..17).map(|i| i % 23).collect();
    let mut session = Session::new(&model);
    assert!(matches!(session.feed(&long), Err(Error::Context { tokens: 17, limit: 16 })));
    assert!(session.tokens().is_empty(), "nothing was read");
    let mut generation =
        session.generate(&long[..10], GenerateOptions { most: 50, ..GenerateOptions::default() }).unwrap();
    let written: Vec<_> = generation.by_ref().collect();
    assert_eq!(generation.end(), Some(End::Failed));
    assert!(matches!(written.last(), Some(Err(Error::Context { tokens: 17, limit: 16 }))) && written.len() == 7);

    let mut session = Session::new(&model).on_overflow(Overflow::Slide).watched_by(Probe::new(Capture::All));
    let mut generation =
        session.generate(&long[..10], GenerateOptions { most: 50, ..GenerateOptions::default() }).unwrap();
    assert_eq!(generation.by_ref().filter(Result::is_ok).count(), 50);
    assert_eq!(generation.end(), Some(End::Length));
    // Whatever has slid, the next scores are those of the window by itself.
    let first = session.first();
    let window = session.tokens()[first..].to_vec();
    assert!(first > 0 && window.len() <= 16);
    assert_eq!(session.trace().layer(Kind::Decoder, 0).unwrap().queries(), window.len());
    let next = session.feed(&[7]).unwrap();
    let window = [&session.tokens()[session.first()..]].concat();
    assert!(near(&next, &scores(&model, &window)));
    // A text longer than the context, at once: its end.
    let mut session = Session::new(&model).on_overflow(Overflow::Slide);
    assert!(near(&session.feed(&long).unwrap(), &scores(&model, &long[1..])));
}

#[test]
fn chance_is_the_same_for_a_seed_and_stop_tokens_stop() {
    let model = gpt2(64);
    let write = |seed, stop: Vec<u32>| {
        let sampling = Sampling { temperature: 1.5, top_k: Some(10), top_p: Some(0.95) };
        let options = GenerateOptions { most: 30, choice: Choice::Sample(sampling), seed, stop };
        let mut session = Session::new(&model);
        let mut generation = session.generate(&[1, 2], options).unwrap();
        let written: Vec<u32> = generation.by_ref().map(Result::unwrap).collect();
        (written, generation.end().unwrap())
    };
    let (tokens, end) = write(4, vec![]);
    assert_eq!((tokens.len(), end), (30, End::Length));
    assert_eq!(write(4, vec![]).0, tokens);
    assert_ne!(write(5, vec![]).0, tokens);
    let stop = tokens[7];
    let at = tokens.iter().position(|token| *token == stop).unwrap();
    assert_eq!(write(4, vec![stop]), (tokens[..at].to_vec(), End::Stop(stop)));
}

/// With so many tokens that the likeliest are looked for by themselves.
#[test]
fn from_a_large_vocabulary_it_chooses_what_it_would_from_all_scores() {
    let config = Gpt2Config { vocabulary: 9000, layers: 1, ..Gpt2Config::nano() };
    let gpt2 = Gpt2::new(&config, &mut Random::new(9)).unwrap();
    let config = LlamaConfig { vocabulary: 9000, layers: 1, tied: false, ..LlamaConfig::nano() };
    let llama = Llama::new(&config, &mut Random::new(9)).unwrap();
    let sampling = Sampling { temperature: 0.7, top_k: Some(10), top_p: Some(0.9) };
    for model in [&gpt2 as &dyn LanguageModel, &llama] {
        for choice in [Choice::Greedy, Choice::Sample(sampling)] {
            let options = GenerateOptions { most: 30, choice, seed: 3, stop: Vec::new() };
            let mut session = Session::new(model);
            let written: Vec<u32> = session.generate(&[1, 2], options).unwrap().map(Result::unwrap).collect();
            let (mut session, mut sampler) = (Session::new(model), Sampler::new(choice, 3).unwrap());
            let mut scores = session.feed(&[1, 2]).unwrap();
            for token in written {
                assert_eq!(sampler.choose((0..).zip(scores).collect()).unwrap(), token);
                scores = session.feed(&[token]).unwrap();
            }
        }
    }
}

#[test]
fn a_failed_read_leaves_the_text_as_it_was() {
    let model = gpt2(32);
    let mut session = Session::new(&model);
    session.feed(&[1, 2, 3]).unwrap();
    assert!(matches!(session.feed(&[4, 23]), Err(Error::TokenId { id: 23, vocabulary: 23 })));
    assert!(matches!(session.feed(&[]), Err(Error::TooShort { .. })));
    let next = session.feed(&[4]).unwrap();
    assert!(near(&next, &scores(&model, &[1, 2, 3, 4])));
}

mod encoder_decoder {
    use foveal_models::generate::beam::{BosEos, Search, greedy, search, watch};
    use foveal_models::layer::{CrossEntropy, Parameters, Random};
    use foveal_models::model::transformer::Batch;
    use foveal_models::model::{Transformer, TransformerConfig};
    use foveal_models::trace::{Capture, Kind};

    const FRAME: BosEos = BosEos { begin: 0, end: 1, unsure: None };
    const VOCABULARY: u32 = 6;

    fn model() -> Transformer {
        let config = TransformerConfig {
            source_vocabulary: 9,
            target_vocabulary: VOCABULARY as usize,
            ..TransformerConfig::small()
        };
        let config = TransformerConfig { context: 12, width: 16, heads: 2, hidden: 32, tied: false, ..config };
        let mut model = Transformer::new(&config, &mut Random::new(2)).unwrap();
        model.head.as_mut().unwrap().visit_mut("", &mut |_, mut weight| weight *= 4.0);
        model
    }

    /// ln p of a whole sequence, by one pass over it.
    fn log_probability(model: &Transformer, source: &[u32], target: &[u32]) -> f32 {
        let inputs = [&[FRAME.begin], target].concat();
        let goals = [target, &[FRAME.end]].concat();
        let batch = Batch { tokens: source, lengths: &[source.len()] };
        let (logits, _) = model.forward(batch, &inputs, None).unwrap();
        let loss = CrossEntropy::new().forward(&logits, &goals).unwrap();
        -loss.mean * loss.counted as f32
    }

    #[test]
    fn a_wide_beam_finds_the_best_of_all_sequences() {
        let (model, source) = (model(), [3, 7, 2, 5]);
        // All sequences of at most three tokens that end.
        let mut all = vec![vec![]];
        for length in 1..=3 {
            let longer: Vec<Vec<u32>> = all
                .iter()
                .filter(|tokens: &&Vec<u32>| tokens.len() == length - 1)
                .flat_map(|tokens| (0..VOCABULARY).filter(|t| *t != FRAME.end).map(|t| [&tokens[..], &[t]].concat()))
                .collect();
            all.extend(longer);
        }
        let wide = Search { beams: 300, most: 4, length_penalty: 0.0 };
        let best = all
            .iter()
            .max_by(|a, b| log_probability(&model, &source, a).total_cmp(&log_probability(&model, &source, b)));
        let found = search(&model, &source, FRAME, wide).unwrap();
        assert_eq!(&found[0].tokens, best.unwrap());
        for hypothesis in &found[..5] {
            let exact = log_probability(&model, &source, &hypothesis.tokens);
            assert!(hypothesis.ended && (hypothesis.log_probability - exact).abs() < 1e-4);
        }
    }

    #[test]
    fn one_beam_is_greedy_and_many_sources_do_not_disturb_each_other() {
        let model = model();
        let sources: Vec<Vec<u32>> =
            (0..70).map(|i| (0..1 + i % 7).map(|j| ((i * 5 + j * 3) % 9) as u32).collect()).collect();
        let together = greedy(&model, &sources, FRAME, 8).unwrap();
        for (source, written) in sources.iter().zip(&together) {
            let alone = search(&model, source, FRAME, Search { beams: 1, most: 8, length_penalty: 1.0 }).unwrap();
            assert_eq!(alone[0].tokens, written.tokens);
            assert!((alone[0].log_probability - written.log_probability).abs() < 1e-4);
        }
        assert!(greedy(&model, &[vec![]], FRAME, 8).is_err() && search(&model, &[], FRAME, Search::default()).is_err());
    }

    #[test]
    fn the_three_attentions_are_told_apart() {
        let trace = watch(&model(), &[3, 7, 2, 5], &[4, 4], FRAME, Capture::All).unwrap();
        assert_eq!(trace.kinds(), [Kind::Encoder, Kind::Decoder, Kind::Cross]);
        let size = |kind| trace.layer(kind, 1).map(|layer| (layer.queries(), layer.keys())).unwrap();
        assert_eq!((size(Kind::Encoder), size(Kind::Decoder), size(Kind::Cross)), ((4, 4), (3, 3), (3, 4)));
    }
}
