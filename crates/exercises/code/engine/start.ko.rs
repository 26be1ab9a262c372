// 라이브러리로 하는 인과 어텐션: 어느 토큰도 뒤에 오는 토큰을 보지 못합니다. 스케일은 정하지 않으면 1/√d입니다.

use foveal::ndarray::Array4;
use foveal::{Attention, Mask};

pub fn attend(q: &Array4<f32>, k: &Array4<f32>, v: &Array4<f32>) -> Result<Array4<f32>, foveal::Error> {
    let attention = Attention::new();
    todo!("{attention:?}의 출력, {:?}, {:?}, {:?}, {:?}", q.dim(), k.dim(), v.dim(), Mask::none())
}
