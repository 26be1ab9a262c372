use super::by_rows;
use crate::Result;
use crate::trace::LayerTrace;

/// A key that a query attends to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Which key.
    pub key: usize,
    /// With what weight.
    pub weight: f32,
}

/// For every query of a head the `k` keys that it attends to most, strongest first, of equals the earlier first; keys with
/// weight 0 are left out.
///
/// # Errors
/// If there is no such sequence or head.
pub fn top(layer: &LayerTrace, sequence: usize, head: usize, k: usize) -> Result<Vec<Vec<Link>>> {
    let mut table = Vec::with_capacity(layer.queries());
    by_rows(layer, (sequence, head), |_, weights| {
        for row in weights.outer_iter() {
            let links = row.iter().enumerate().map(|(key, &weight)| Link { key, weight });
            let mut links: Vec<Link> = links.filter(|link| link.weight > 0.0).collect();
            let stronger = |a: &Link, b: &Link| b.weight.total_cmp(&a.weight).then(a.key.cmp(&b.key));
            if k < links.len() {
                links.select_nth_unstable_by(k, stronger);
                links.truncate(k);
            }
            links.sort_unstable_by(stronger);
            table.push(links);
        }
    })?;
    Ok(table)
}
