use super::answer::attend;
use foveal::ndarray::Array4;

// Sizes T, S, D and that of a value; then q, k and v, row by row.
pub fn run(case: &[f64]) -> Vec<f64> {
    let [t, s, d, values] = [0, 1, 2, 3].map(|at| case[at] as usize);
    let mut rest = case[4..].iter().map(|number| *number as f32);
    let mut array =
        |tokens: usize, dim: usize| Array4::from_shape_fn((1, 1, tokens, dim), |_| rest.next().unwrap_or(0.0));
    let (q, k, v) = (array(t, d), array(s, d), array(s, values));
    let out = attend(&q, &k, &v).unwrap_or_else(|error| panic!("{error}"));
    out.iter().map(|number| f64::from(*number)).collect()
}
