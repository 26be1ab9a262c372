//! The reference and the kernels of every instruction set against PyTorch. `fixtures/make.py` made the numbers.

mod support;

use std::collections::HashMap;
use std::path::Path;

use foveal::{
    Align, Attention, Bias, Direction, Isa, Mask, Rope, RopeLayout, RopeScaling, alibi_slopes, positional_encoding,
    reference, t5_bucket,
};
use ndarray::{Array, ArrayD, Dimension};
use safetensors::{Dtype, SafeTensors};
use support::{assert_close, assert_close_f64, dynamic, narrow, widen};

/// One file of arrays. All numbers fit f64, whatever their type in the file.
struct Fixture(HashMap<String, ArrayD<f64>>);

impl Fixture {
    fn read(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("safetensors");
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let arrays = file.iter().map(|(name, tensor)| {
            let data = tensor.data();
            let numbers: Vec<f64> = match tensor.dtype() {
                Dtype::F32 => data.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x).into()).collect(),
                Dtype::F64 => data.as_chunks().0.iter().map(|x| f64::from_le_bytes(*x)).collect(),
                Dtype::I64 => data.as_chunks().0.iter().map(|x| i64::from_le_bytes(*x) as f64).collect(),
                Dtype::U8 | Dtype::BOOL => data.iter().map(|x| (*x).into()).collect(),
                other => panic!("{name} has type {other:?}"),
            };
            (name.to_owned(), ArrayD::from_shape_vec(tensor.shape(), numbers).unwrap())
        });
        Fixture(arrays.collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn get<D: Dimension>(&self, name: &str) -> Array<f64, D> {
        let array = self.0.get(name).unwrap_or_else(|| panic!("there is no {name}"));
        array.clone().into_dimensionality().unwrap()
    }

    fn get_f32<D: Dimension>(&self, name: &str) -> Array<f32, D> {
        narrow(&self.get(name))
    }
}

/// Forward and backward, by the reference and by every set of kernels.
fn check(name: &str, make: impl Fn(&Fixture) -> Attention) {
    let file = Fixture::read(name);
    let attention = make(&file);
    let (q, k, v, dout) = (file.get("q"), file.get("k"), file.get("v"), file.get("dout"));

    let fwd = reference::forward(&attention, &q, &k, &v).unwrap();
    let grads = reference::backward(&attention, &q, &k, &v, &dout).unwrap();
    let close = |what: &str, got: ArrayD<f64>, abs: f64| {
        assert_close_f64(&format!("{name}, reference, {what}"), got.view(), file.get(what).view(), abs, abs);
    };
    close("out", fwd.out.clone().into_dyn(), 1e-9);
    close("lse", fwd.lse.into_dyn(), 1e-9);
    close("dq", grads.dq.into_dyn(), 1e-9);
    close("dk", grads.dk.into_dyn(), 1e-9);
    close("dv", grads.dv.into_dyn(), 1e-9);
    assert_eq!(grads.dbias.is_some(), file.has("dbias"));
    if let Some(dbias) = grads.dbias {
        close("dbias", dbias, 1e-9);
    }
    if file.has("sdpa") {
        close("sdpa", fwd.out.into_dyn(), 1e-6);
    }

    let (q, k, v, dout) = (narrow(&q), narrow(&k), narrow(&v), narrow(&dout));
    for isa in Isa::available() {
        let attention = attention.clone().isa(isa);
        let close = |what: &str, got: ArrayD<f32>| {
            assert_close(&format!("{name}, {isa}, {what}"), got.view(), file.get(what).view(), 1e-5, 5e-6);
        };
        let fwd = attention.forward(&q, &k, &v).unwrap();
        let grads = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
        close("out", fwd.out.into_dyn());
        close("lse", fwd.lse.mapv(|lse| lse as f32).into_dyn());
        close("dq", grads.dq.into_dyn());
        close("dk", grads.dk.into_dyn());
        close("dv", grads.dv.into_dyn());
        assert_eq!(grads.dbias.is_some(), file.has("dbias"));
        if let Some(dbias) = grads.dbias {
            close("dbias", dbias);
        }
    }
}

/// One test a fixture, so that a failure does not hide the others.
macro_rules! cases {
    ($($name:ident: |$file:pat_param| $attention:expr;)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), |$file| $attention);
        })*
    };
}

cases! {
    plain: |_| Attention::new();
    value_dim: |_| Attention::new();
    grouped: |_| Attention::new();
    scale: |_| Attention::new().scale(0.25);
    softcap: |_| Attention::new().scale(0.75).softcap(1.5);
    causal: |_| Attention::new().mask(Mask::causal());
    causal_first: |_| Attention::new().mask(Mask::causal()).align(Align::First);
    causal_last: |_| Attention::new().mask(Mask::causal()).align(Align::Last);
    causal_tall: |_| Attention::new().mask(Mask::causal());
    padding: |_| Attention::new().mask(Mask::padding([5, 0, 3]));
    window: |_| Attention::new().mask(Mask::window(3, 1));
    dense_mask: |file| Attention::new().mask(Mask::dense(file.get("keep").mapv(|keep| keep != 0.0)));
    alibi: |_| Attention::new().mask(Mask::causal()).bias(Bias::alibi_with(alibi_slopes(12).unwrap()));
    t5_both: |file| Attention::new().align(Align::Offsets([100].into())).bias(t5(file, Direction::Both));
    t5_backward: |file| Attention::new().mask(Mask::causal()).bias(t5(file, Direction::Backward));
    shaw: |file| Attention::new().bias(Bias::shaw(file.get_f32("bias")).unwrap());
    shaw_heads: |file| Attention::new().bias(Bias::shaw(file.get_f32("bias")).unwrap());
    bias_full: |file| Attention::new().bias(Bias::dense(file.get_f32("bias")));
    bias_heads: |file| Attention::new().bias(Bias::dense(file.get_f32("bias")));
    bias_keys: |file| Attention::new().bias(Bias::dense(file.get_f32("bias")));
    bias_shared: |file| Attention::new().bias(Bias::dense(file.get_f32("bias")));
    combined: |_| {
        let mask = Mask::causal().and(Mask::padding([11, 9]));
        Attention::new().mask(mask).scale(0.75).softcap(2.0).bias(Bias::alibi_with(alibi_slopes(6).unwrap()))
    };
}

fn t5(file: &Fixture, direction: Direction) -> Bias {
    Bias::t5(file.get_f32("bias"), direction, 128).unwrap()
}

#[test]
fn alibi_slopes_are_the_authors() {
    for (name, heads) in [("alibi", 12), ("combined", 6)] {
        let slopes = ndarray::Array1::from(alibi_slopes(heads).unwrap());
        assert_close(name, dynamic(&slopes), Fixture::read(name).get("bias").view(), 0.0, 1e-7);
    }
}

#[test]
fn t5_buckets_are_those_of_transformers() {
    let file = Fixture::read("t5_buckets");
    for (buckets, max_distance) in [(32, 128), (32, 20), (8, 16), (20, 100), (64, 256)] {
        for (way, direction) in [("both", Direction::Both), ("backward", Direction::Backward)] {
            let name = format!("{way}_{buckets}_{max_distance}");
            for (want, distance) in file.get::<ndarray::Ix1>(&name).iter().zip(-300..) {
                let got = t5_bucket(distance, direction, buckets, max_distance).unwrap();
                assert_eq!(got as f64, *want, "{name} at distance {distance}");
            }
        }
    }
}

#[test]
fn rope_turns_and_turns_back() {
    let file = Fixture::read("rope");
    let positions = file.get::<ndarray::Ix2>("positions").mapv(|p| p as usize);
    for (layout_name, layout) in [("halves", RopeLayout::Halves), ("interleaved", RopeLayout::Interleaved)] {
        let rope = Rope::new(8).unwrap();
        for (scaling, rope) in [
            ("none", rope),
            ("linear", rope.scaling(RopeScaling::Linear(4.0))),
            ("ntk", rope.scaling(RopeScaling::Ntk(4.0))),
            ("base", rope.base(500_000.0)),
        ] {
            let (rope, name) = (rope.layout(layout), format!("{layout_name}_{scaling}"));
            let mut x = file.get_f32("x");
            rope.rotate_at(&mut x, &positions).unwrap();
            assert_close(&name, dynamic(&x), file.get(&name).view(), 1e-6, 1e-6);
            let mut dx = file.get_f32("dout");
            rope.rotate_back_at(&mut dx, &positions).unwrap();
            assert_close(&name, dynamic(&dx), file.get(&format!("{name}_dx")).view(), 1e-6, 1e-6);
        }
    }
}

#[test]
fn sinusoidal_positions() {
    let pe = widen(&positional_encoding(40, 16).unwrap());
    assert_close_f64("positions", dynamic(&pe), Fixture::read("sinusoidal").get("pe").view(), 1e-7, 0.0);
}
