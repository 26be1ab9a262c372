//! Every type of GGUF's against what the `gguf` package of llama.cpp makes of it.

mod support;

use foveal_models::{Checkpoint, Dtype};

#[test]
fn every_type_as_llama_cpp_reads_it() {
    let checkpoint = Checkpoint::open(support::fixture("checkpoints/quants.gguf")).unwrap();
    let types = [
        Dtype::F16,
        Dtype::BF16,
        Dtype::Q4_0,
        Dtype::Q4_1,
        Dtype::Q5_0,
        Dtype::Q5_1,
        Dtype::Q8_0,
        Dtype::Q4_K,
        Dtype::Q5_K,
        Dtype::Q6_K,
    ];
    assert_eq!(checkpoint.names().len(), 2 * types.len());
    for dtype in types {
        let tensor = checkpoint.tensor(&dtype.to_string()).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &[3, 512][..]));
        let expected = checkpoint.array(&format!("{dtype}.expected"), &[3, 512]).unwrap();
        let got = tensor.to_f32().unwrap();
        let largest = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
            // The products of the scales may be rounded in another order.
            assert!((got - expected).abs() <= 1e-6 * largest, "{dtype} at {i}: {got} instead of {expected}");
        }
    }
}
