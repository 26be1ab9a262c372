pub fn causal(queries: usize, keys: usize) -> Vec<Vec<bool>> {
    (0..queries).map(|i| (0..keys).map(|j| visible(i, j, queries, keys)).collect()).collect()
}

fn visible(i: usize, j: usize, queries: usize, keys: usize) -> bool {
    j + queries > i + keys
}
