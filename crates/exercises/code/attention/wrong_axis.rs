pub fn attention(q: &[Vec<f64>], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let scale = 1.0 / (q[0].len() as f64).sqrt();
    let dot = |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let exponentials: Vec<Vec<f64>> =
        q.iter().map(|query| k.iter().map(|key| (scale * dot(query, key)).exp()).collect()).collect();
    let sums: Vec<f64> = (0..k.len()).map(|j| exponentials.iter().map(|row| row[j]).sum()).collect();
    let mix = |row: &Vec<f64>, c: usize| (0..k.len()).map(|j| row[j] / sums[j] * v[j][c]).sum::<f64>();
    exponentials.iter().map(|row| (0..v[0].len()).map(|c| mix(row, c)).collect()).collect()
}
