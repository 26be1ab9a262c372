pub fn attention(q: &[Vec<f64>], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<Vec<f64>> {
    q.iter().map(|query| attend(query, k, v)).collect()
}

fn attend(query: &[f64], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<f64> {
    let dot = |key: &Vec<f64>| key.iter().zip(query).map(|(x, y)| x * y).sum::<f64>();
    let scores: Vec<f64> = k.iter().map(|key| dot(key)).collect();
    let max = scores.iter().fold(f64::MIN, |max, score| max.max(*score));
    let exponentials: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    (0..v[0].len()).map(|c| v.iter().zip(&exponentials).map(|(row, e)| e / sum * row[c]).sum()).collect()
}
