// 쿼리 `queries`개, 키 `keys`개의 인과 마스크입니다. 쿼리마다 한 행이고, 볼 수 있는 곳이 true입니다.
// 마지막 쿼리는 마지막 키에 서 있습니다.

pub fn causal(queries: usize, keys: usize) -> Vec<Vec<bool>> {
    (0..queries).map(|i| (0..keys).map(|j| visible(i, j, queries, keys)).collect()).collect()
}

fn visible(i: usize, j: usize, queries: usize, keys: usize) -> bool {
    todo!("{queries}개 가운데 쿼리 {i}이(가) {keys}개 가운데 키 {j}을(를) 볼 수 있습니까?")
}
