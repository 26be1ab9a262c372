//! The numbers of a scene as CSV and JSON.

use ndarray::Array2;
use serde_json::{Value, json};

use crate::scene::{GridKind, Scene};

/// CSV as RFC 4180 has it, in UTF-8. A matrix keeps its form: keys in the first line, a query at the beginning of each
/// line. Whatever has several matrices or curves is a list, one number a line.
pub(crate) fn csv(scene: &Scene) -> String {
    let mut out = Csv::default();
    match scene {
        Scene::Heatmap(scene) => {
            out.row([""].into_iter().chain(scene.cols.iter().map(String::as_str)));
            for (label, row) in scene.rows.iter().zip(scene.values.outer_iter()) {
                let numbers: Vec<String> = row.iter().map(|v| v.to_string()).collect();
                out.row([label.as_str()].into_iter().chain(numbers.iter().map(String::as_str)));
            }
        }
        Scene::Bars(scene) => {
            out.row(["key", "value"]);
            for (label, value) in scene.labels.iter().zip(&scene.values) {
                out.row([label.as_str(), &value.to_string()]);
            }
        }
        Scene::Grid(scene) => {
            let tokens = scene
                .tokens
                .as_ref()
                .filter(|(queries, keys)| scene.panels.iter().all(|panel| panel.dim() == (queries.len(), keys.len())));
            match tokens {
                Some(_) => out.row(["panel", "query", "key", "query token", "key token", "value"]),
                None => out.row(["panel", "query", "key", "value"]),
            }
            for (k, panel) in scene.panels.iter().enumerate() {
                let name = match scene.kind {
                    GridKind::Heads => scene.name(k),
                    GridKind::LayersHeads => {
                        format!("{}, {}", scene.row_name(k / scene.columns), scene.name(k % scene.columns))
                    }
                };
                let Some((queries, keys)) = tokens else {
                    out.matrix(&[&name], panel, |i| i.to_string(), |j| j.to_string());
                    continue;
                };
                for ((i, j), value) in panel.indexed_iter() {
                    let numbers = [i.to_string(), j.to_string(), value.to_string()];
                    let [query, key, value] = numbers.each_ref().map(String::as_str);
                    out.row([name.as_str(), query, key, &queries[i], &keys[j], value]);
                }
            }
        }
        Scene::Lines(scene) => {
            out.row(["head", "query", "key", "value"]);
            for (name, weights) in &scene.heads {
                out.matrix(&[name], weights, |i| scene.queries[i].clone(), |j| scene.keys[j].clone());
            }
        }
        Scene::Map(scene) => {
            out.row(["query", "key", "value"]);
            let (rows, cols) = scene.pixels.dim();
            let first = |range: &std::ops::Range<usize>, k: usize, count: usize| {
                (range.start + k * range.len() / count).to_string()
            };
            out.matrix(&[], &scene.pixels, |i| first(&scene.queries, i, rows), |j| first(&scene.keys, j, cols));
        }
        Scene::Patches(scene) => {
            out.row(["map", "row", "column", "value"]);
            for (name, map) in &scene.maps {
                out.matrix(&[name], map, |i| i.to_string(), |j| j.to_string());
            }
        }
        Scene::Chart(scene) => {
            out.row(["series", scene.x_name.as_str(), scene.y_name.as_str()]);
            for series in &scene.series {
                for (x, y) in &series.points {
                    out.row([series.name.as_str(), &x.to_string(), &y.to_string()]);
                }
            }
        }
        Scene::Compare(scene) => {
            out.row(["query", "key", scene.first.0.as_str(), scene.second.0.as_str(), "difference"]);
            let difference = scene.difference();
            for ((i, j), first) in scene.first.1.indexed_iter() {
                let numbers = [*first, scene.second.1[[i, j]], difference[[i, j]]].map(|v| v.to_string());
                out.row([&scene.rows[i], &scene.cols[j], &numbers[0], &numbers[1], &numbers[2]].map(String::as_str));
            }
        }
    }
    out.text
}

#[derive(Default)]
struct Csv {
    text: String,
}

impl Csv {
    fn row<'a>(&mut self, fields: impl IntoIterator<Item = &'a str>) {
        for (k, field) in fields.into_iter().enumerate() {
            if k > 0 {
                self.text.push(',');
            }
            let quoted = field.contains(['"', ',', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ');
            match quoted {
                true => self.text.push_str(&format!("\"{}\"", field.replace('"', "\"\""))),
                false => self.text.push_str(field),
            }
        }
        self.text.push_str("\r\n");
    }

    fn matrix(
        &mut self,
        names: &[&str],
        values: &Array2<f32>,
        row: impl Fn(usize) -> String,
        col: impl Fn(usize) -> String,
    ) {
        for ((i, j), value) in values.indexed_iter() {
            let fields = [row(i), col(j), value.to_string()];
            self.row(names.iter().copied().chain(fields.iter().map(String::as_str)));
        }
    }
}

/// One object; matrices are arrays of rows, and what is no finite number is `null`.
pub(crate) fn json(scene: &Scene) -> Value {
    let caption = scene.caption();
    let mut object = match scene {
        Scene::Heatmap(scene) => {
            json!({"kind": "heatmap", "queries": scene.rows, "keys": scene.cols, "values": rows(&scene.values)})
        }
        Scene::Bars(scene) => json!({
            "kind": "bars", "labels": scene.labels, "token": scene.token,
            "values": scene.values.iter().map(|v| finite(f64::from(*v))).collect::<Vec<_>>(),
        }),
        Scene::Grid(scene) => json!({
            "kind": "grid", "columns": scene.columns,
            "panels": scene.panels.iter().map(rows).collect::<Vec<_>>(),
            "queries": scene.tokens.as_ref().map(|tokens| &tokens.0),
            "keys": scene.tokens.as_ref().map(|tokens| &tokens.1),
        }),
        Scene::Lines(scene) => json!({
            "kind": "lines", "queries": scene.queries, "keys": scene.keys, "token": scene.token,
            "heads": named(&scene.heads),
        }),
        Scene::Map(scene) => json!({
            "kind": "map", "values": rows(&scene.pixels),
            "queries": [scene.queries.start, scene.queries.end], "keys": [scene.keys.start, scene.keys.end],
        }),
        Scene::Patches(scene) => json!({"kind": "patches", "maps": named(&scene.maps), "query": scene.query}),
        Scene::Chart(scene) => json!({
            "kind": "chart", "x": scene.x_name, "y": scene.y_name,
            "series": scene.series.iter().map(|s| json!({
                "name": s.name,
                "points": s.points.iter().map(|p| [finite(p.0), finite(p.1)]).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        }),
        Scene::Compare(scene) => json!({
            "kind": "compare", "queries": scene.rows, "keys": scene.cols,
            "matrices": named([&scene.first, &scene.second]), "difference": rows(&scene.difference()),
        }),
    };
    if let Some(fields) = object.as_object_mut() {
        fields.insert("title".into(), caption.title.clone().into());
        fields.insert("note".into(), caption.note.clone().into());
    }
    object
}

fn named<'a>(matrices: impl IntoIterator<Item = &'a (String, Array2<f32>)>) -> Vec<Value> {
    matrices.into_iter().map(|(name, values)| json!({"name": name, "values": rows(values)})).collect()
}

fn rows(values: &Array2<f32>) -> Vec<Vec<Value>> {
    values.outer_iter().map(|row| row.iter().map(|v| single(*v)).collect()).collect()
}

/// The shortest decimal that reads back as the same f32: not 0.10000000149.
fn single(value: f32) -> Value {
    if value.is_finite() { value.to_string().parse::<f64>().map_or(Value::Null, finite) } else { Value::Null }
}

fn finite(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use crate::{Chart, Heatmap, Scene};

    #[test]
    fn csv_quotes_what_must_be_quoted() {
        let scene: Scene = Heatmap::new(array![[0.1, 0.9]], ["say \"hi\""], [" a", "b,\n"]).unwrap().into();
        assert_eq!(super::csv(&scene), ",\" a\",\"b,\n\"\r\n\"say \"\"hi\"\"\",0.1,0.9\r\n");
    }

    #[test]
    fn json_has_short_numbers_and_null_for_nan() {
        let scene: Scene = Heatmap::new(array![[0.1, f32::NAN]], ["q"], ["a", "b"]).unwrap().title("T").into();
        let text = super::json(&scene).to_string();
        assert!(text.contains("[[0.1,null]]") && text.contains("\"title\":\"T\""), "{text}");
        let chart: Scene = Chart::new("x", "y").series("s", [(1.0, f64::INFINITY)]).into();
        assert!(super::json(&chart).to_string().contains("[1.0,null]"));
    }
}
