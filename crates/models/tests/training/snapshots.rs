//! Attention kept at steps of a run: what is kept, what is on disk, what is refused.

use foveal::Attention;
use foveal_models::checkpoint::write_whole;
use foveal_models::layer::Random;
use foveal_models::trace::{Kind, LayerTrace, Site, Trace};
use foveal_models::train::Snapshots;
use ndarray::{Array4, s};

/// Two layers of cross-attention, two heads, three queries on four keys: another for each seed.
fn trace(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut layer = |number| {
        let mut heads = |tokens| -> Array4<f32> { random.normal((1, 2, tokens, 5), 1.0) };
        let layer = LayerTrace::builder(Attention::new(), heads(3), heads(4)).build().unwrap();
        (Site { kind: Kind::Cross, layer: number }, layer)
    };
    Trace::from_iter([layer(0), layer(1)])
}

fn labels(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn what_is_kept_comes_back_from_disk() {
    let mut snapshots = Snapshots::new(labels("학생은 읽어요 </s>"), labels("the student reads ."));
    // Steps whose names sort otherwise as text than as numbers.
    for step in [0, 9, 10, 250] {
        snapshots.keep(step, &trace(step as u64), Kind::Cross).unwrap();
    }
    for (step, layers) in &snapshots.frames {
        let trace = trace(*step as u64);
        assert_eq!(layers.len(), 2);
        for (number, kept) in layers.iter().enumerate() {
            assert_eq!(kept.dim(), (2, 3, 4));
            for head in 0..2 {
                let weights = trace.layer(Kind::Cross, number).unwrap().weights(0, head).unwrap();
                assert_eq!(kept.slice(s![head, .., ..]), weights);
                assert!(weights.outer_iter().all(|row| (row.sum() - 1.0).abs() < 1e-5));
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshots.safetensors");
    snapshots.save(&path).unwrap();
    assert_eq!(Snapshots::load(&path).unwrap(), snapshots);
    // As any reader of the format finds them.
    let bytes = std::fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.len(), 8);
    assert_eq!(file.tensor("step.00000250.layer.1").unwrap().shape(), [2, 3, 4]);
}

#[test]
fn what_is_no_film_is_refused() {
    let mut snapshots = Snapshots::new(labels("a b c"), labels("a b c d"));
    let error = snapshots.keep(0, &trace(1), Kind::Encoder).unwrap_err();
    assert!(error.to_string().contains("encoder attention"), "{error}");
    assert!(snapshots.frames.is_empty(), "a step that cannot be kept leaves no frame");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshots.safetensors");
    snapshots.keep(3, &trace(1), Kind::Cross).unwrap();
    snapshots.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let renamed = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = whole.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut bytes = whole.clone();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        write_whole(&path, |file| file.write_all(&bytes)).unwrap();
        Snapshots::load(&path).unwrap_err().to_string()
    };
    assert!(renamed("queries", "querier").contains("no snapshots of attention"));
    assert!(renamed("layer.0", "layer.7").contains("not all there"));
    assert!(renamed("step.00000003.layer.1", "step.0000000x.layer.1").contains("expected step.N.layer.N"));
    std::fs::remove_file(&path).unwrap();
    assert!(Snapshots::load(&path).is_err());
}
