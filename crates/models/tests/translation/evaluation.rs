//! Pairs that are held out, and how a translator does on them.

use std::collections::BTreeSet;

use foveal_models::generate::beam::{Search, search};
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Transformer, TransformerConfig};
use foveal_models::trace::Kind;
use foveal_models::translation::attention::Reading;
use foveal_models::translation::score::Tokens;
use foveal_models::translation::{Evaluation, Judged, Languages, LinkedPair, Split, Vocabulary};

#[test]
fn a_split_loses_nothing_and_is_the_same_each_time() {
    for (count, held) in [(0, 0), (1, 0), (2, 1), (19, 1), (40, 2), (399, 19), (30_000, 1000)] {
        let split = Split::at_random((0..count).collect(), 7);
        assert_eq!((split.held_out.len(), split.learned.len()), (held, count - held), "of {count}");
        let all: BTreeSet<usize> = split.learned.iter().chain(&split.held_out).copied().collect();
        assert_eq!(all.len(), count, "all of {count}, and none twice");
        assert_eq!(split, Split::at_random((0..count).collect(), 7));
    }
    assert_ne!(Split::at_random((0..400).collect(), 7), Split::at_random((0..400).collect(), 8));
    // By chance, not the first ones.
    let far = Split::at_random((0..400).collect::<Vec<usize>>(), 7).held_out;
    assert!(far.iter().any(|n| *n > 200) && far.iter().any(|n| *n < 200), "{far:?}");
}

#[test]
fn scores_are_those_of_sacrebleu() {
    let judged = |translation: &str, expected: &str| Judged {
        source: String::new(),
        translation: translation.into(),
        expected: expected.into(),
    };
    let pairs = [("학생이 책을 읽어요.", "학생이 책을 읽었어요."), ("집이 커요.", "집이 커요.")];
    let evaluation = Evaluation { judged: pairs.iter().map(|(a, b)| judged(a, b)).collect() };
    assert_eq!(evaluation.exact_match(), 50.0);
    assert_eq!(format!("{:.2}", evaluation.bleu(Tokens::Mteval)), "54.11");
    assert_eq!(format!("{:.2}", evaluation.chrf()), "62.74");
}

/// A translator with large random weights, which writes something.
fn translator() -> (Languages, Transformer) {
    let train = |texts: [&str; 2]| Vocabulary::words().train(texts).unwrap();
    let languages = Languages {
        source: train(["the cat sleeps here", "a dog eats"]),
        target: train(["고양이가 여기 자요", "개가 먹어요"]),
    };
    let sizes = TransformerConfig {
        source_vocabulary: languages.source.vocabulary(),
        target_vocabulary: languages.target.vocabulary(),
        context: 12,
        width: 16,
        heads: 2,
        hidden: 32,
        encoder_layers: 1,
        decoder_layers: 2,
        ..TransformerConfig::small()
    };
    let mut model = Transformer::new(&sizes, &mut Random::new(9)).unwrap();
    model.visit_mut("", &mut |name, mut parameter| {
        if name.ends_with("weight") && parameter.ndim() == 2 {
            parameter.mapv_inplace(|x| x * 3.0);
        }
    });
    (languages, model)
}

#[test]
fn an_evaluation_holds_what_the_model_writes() {
    let (languages, model) = translator();
    let pairs = [("the cat sleeps", "고양이가 자요"), ("a dog eats here", "개가 여기 먹어요")];
    let evaluation = Evaluation::of(&languages, &model, pairs).unwrap();
    for (judged, (source, expected)) in evaluation.judged.iter().zip(pairs) {
        assert_eq!((judged.source.as_str(), judged.expected.as_str()), (source, expected));
        // One at a time, by a search of one beam.
        let ids = languages.source.encode_bare(source).unwrap().ids().to_vec();
        let greedy = Search { beams: 1, most: 12, ..Search::default() };
        let found = search(&model, &ids, languages.bos_eos().unwrap(), greedy).unwrap();
        assert_eq!(judged.translation, languages.target.decode(&found[0].tokens).unwrap().trim());
    }
    assert!(languages.translate(&model, [""]).is_err());
}

#[test]
fn alignments_are_scored_by_their_definition() {
    let (languages, model) = translator();
    // Every word is a token of its own, so words need no merging here.
    let pair = LinkedPair {
        source: "the cat sleeps here".into(),
        target: "고양이가 여기 자요".into(),
        sure: vec![(1, 0), (3, 1)],
        possible: vec![(1, 0), (3, 1), (2, 2), (0, 0)],
    };
    let example = languages.example(&pair.source, &pair.target).unwrap();
    assert_eq!((example.source.len(), example.target.len()), (4, 3));
    let trace = languages.watch(&model, &example).unwrap();
    let aligners = languages.align(&model, [&pair]).unwrap();
    assert_eq!(aligners.len(), 2 * (2 + 1) * 2, "two layers, two heads and their mean, two readings");
    assert!(aligners.windows(2).all(|pair| pair[0].score.error_rate() <= pair[1].score.error_rate()));
    for aligner in &aligners {
        let layer = trace.layer(Kind::Cross, aligner.layer).unwrap();
        let heads = aligner.head.map_or(vec![0, 1], |head| vec![head]);
        let weight = |i: usize, j: usize| heads.iter().map(|h| layer.weights(0, *h).unwrap()[[i, j]]).sum::<f32>();
        let first = usize::from(aligner.reading == Reading::Having);
        let found: Vec<(usize, usize)> = (0..3)
            .map(|word| {
                let row = |j: &usize| weight(word + first, *j);
                ((0..4).max_by(|a, b| row(a).total_cmp(&row(b))).unwrap(), word)
            })
            .collect();
        // The alignment error rate (Och 2003): 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
        let among = |links: &[(usize, usize)]| found.iter().filter(|link| links.contains(link)).count();
        let rate = 1.0 - (among(&pair.sure) + among(&pair.possible)) as f64 / (found.len() + pair.sure.len()) as f64;
        assert!((aligner.score.error_rate() - rate).abs() < 1e-9, "{aligner:?}, expected {rate}");
    }
}

#[test]
fn languages_come_back_from_their_folder() {
    let (languages, _) = translator();
    let folder = tempfile::tempdir().unwrap();
    languages.save(folder.path()).unwrap();
    let again = Languages::open(folder.path()).unwrap();
    let pair = ("the cat sleeps", "개가 자요");
    assert_eq!(again.example(pair.0, pair.1).unwrap(), languages.example(pair.0, pair.1).unwrap());
    assert_eq!(again.bos_eos().unwrap(), languages.bos_eos().unwrap());
    std::fs::remove_dir_all(folder.path().join("target")).unwrap();
    assert!(Languages::open(folder.path()).unwrap_err().to_string().contains("target"));
}
