use foveal::ndarray::Array4;
use foveal::{Attention, Mask};

pub fn attend(q: &Array4<f32>, k: &Array4<f32>, v: &Array4<f32>) -> Result<Array4<f32>, foveal::Error> {
    let attention = Attention::new().mask(Mask::causal());
    Ok(attention.forward(q, k, v)?.out)
}
