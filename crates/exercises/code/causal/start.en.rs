// The causal mask of `queries` queries on `keys` keys, a row for each query: true where it may look.
// The last query stands at the last key.

pub fn causal(queries: usize, keys: usize) -> Vec<Vec<bool>> {
    (0..queries).map(|i| (0..keys).map(|j| visible(i, j, queries, keys)).collect()).collect()
}

fn visible(i: usize, j: usize, queries: usize, keys: usize) -> bool {
    todo!("may query {i} of {queries} see key {j} of {keys}?")
}
