//! Attention on three tokens, small enough to follow with a pencil.

use foveal::{Attention, Mask, reference};
use foveal_models::layer::{Linear, MultiHeadAttention, Projection, Source};
use foveal_view::Heatmap;
use ndarray::{Array2, Axis, array};
use serde_json::{Value, json};

use crate::number::short;
use crate::{Bilingual, Knobs, Lab, Report, Result, Table, Text, Watch, text};

pub const LAB: Lab = Lab {
    name: "by-hand",
    title: Bilingual { en: "Attention by hand, step by step", ko: "손으로 따라 계산하는 어텐션" },
    summary: Bilingual {
        en: "Each query is compared with each key, the scores are divided by √d_k, softmax turns a row of scores into weights \
         that sum to 1, and the output is the average of the values with these weights. \
         Follow row q0: scores 2, 0, 1 become 1, 0, 0.5, then weights, then a mixture of the three values.",
        ko: "각 쿼리를 모든 키와 내적하여 점수를 얻고, 점수를 √d_k로 나눈 다음, 소프트맥스로 합이 1인 가중치를 만듭니다. \
         출력은 이 가중치로 구한 값(V)들의 가중 평균입니다. \
         q0 행을 따라가 보십시오. 점수 2, 0, 1이 1, 0, 0.5가 되고, 가중치가 되고, 세 값이 섞인 출력이 됩니다.",
    },
    knobs: &[],
    work,
};

fn work(_: &Knobs, _: Watch) -> Result<Report> {
    let x = array![[1., 0., 1., 0.], [0., 1., 0., 1.], [1., 1., 0., 0.]];
    let values = array![[1., 2., 3., 4.], [5., 6., 7., 8.], [9., 10., 11., 12.]];
    let first = Exercise::new(&Attention::new(), x.clone(), x, values)?;
    let second = Exercise::new(
        &Attention::new(),
        array![[1., 1.], [0., 1.]],
        array![[1., 0.], [0., 1.]],
        array![[2., 3.], [4., 5.]],
    )?;
    // Keys that are unit vectors make the queries the scores.
    let scores = array![[2.1, 1.5, 0.8, 1.2], [1.3, 2.5, 1.1, 0.9], [0.7, 1.8, 2.2, 1.4], [1.0, 1.6, 1.9, 2.3]];
    let hidden = Attention::new().scale(1.0).mask(Mask::causal());
    let causal = Exercise::new(&hidden, scores, Array2::eye(4), Array2::eye(4))?;

    let mut report = Report::new(json!({
        "first": first.figures(), "second": second.figures(), "causal": causal.figures(),
    }));
    for table in first.steps() {
        report = report.table(table);
    }
    report = report.table(second.on_one_line(text(
        "Second exercise: Q = [[1,1],[0,1]], K = [[1,0],[0,1]], V = [[2,3],[4,5]]",
        "두 번째 문제: Q = [[1,1],[0,1]], K = [[1,0],[0,1]], V = [[2,3],[4,5]]",
    )));
    report = report.table(causal.masked(text(
        "Causal exercise: a query sees no later key, so those scores become −∞ before the softmax",
        "인과 마스크 문제: 쿼리는 뒤에 오는 키를 볼 수 없으므로, 소프트맥스 전에 그 점수가 −∞가 됩니다",
    )));
    let two = TwoHeads::new()?;
    report.figures["two_heads"] = two.figures();
    report = report.table(two.table());
    let scenes = [
        (&first, text("Weights of the first exercise", "첫 번째 문제의 가중치")),
        (&causal, text("Weights of the causal exercise", "인과 마스크 문제의 가중치")),
    ];
    for (exercise, title) in scenes {
        report = report.scene(|language| {
            let (rows, columns) = (names("q", exercise.weights.nrows()), names("k", exercise.weights.ncols()));
            let weights = exercise.weights.mapv(|w| w as f32);
            Ok(Heatmap::new(weights, rows, columns)?.title(title.get(language)).language(language))
        })?;
    }
    Ok(report)
}

/// An exercise, solved in f64, and by the engine in f32 beside it.
struct Exercise {
    inputs: [Array2<f64>; 3],
    rows: Vec<reference::Row>,
    weights: Array2<f64>,
    output: Array2<f64>,
    /// How far the engine's output is from it.
    engine: f64,
}

impl Exercise {
    fn new(attention: &Attention, q: Array2<f64>, k: Array2<f64>, v: Array2<f64>) -> Result<Self> {
        let four = |x: &'_ Array2<f64>| x.clone().insert_axis(Axis(0)).insert_axis(Axis(0));
        let (q4, k4, v4) = (four(&q), four(&k), four(&v));
        let rows = (0..q.nrows()).map(|i| reference::row(attention, &q4, &k4, (0, 0), i));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let exact = reference::forward(attention, &q4, &k4, &v4)?;
        let single = |x: &ndarray::Array4<f64>| x.mapv(|x| x as f32);
        let fast = attention.forward(&single(&q4), &single(&k4), &single(&v4))?;
        let engine = exact.out.iter().zip(&fast.out).map(|(e, f)| (e - f64::from(*f)).abs()).fold(0.0, f64::max);
        let two = |x: ndarray::Array4<f64>| x.index_axis_move(Axis(0), 0).index_axis_move(Axis(0), 0);
        Ok(Exercise { inputs: [q, k, v], rows, weights: two(exact.weights), output: two(exact.out), engine })
    }

    fn each(&self, of: fn(&reference::Cell) -> f64) -> Vec<Vec<f64>> {
        self.rows.iter().map(|row| row.cells.iter().map(of).collect()).collect()
    }

    /// A table for each step.
    fn steps(&self) -> Vec<Table> {
        let keys = names("k", self.weights.ncols());
        let [q, _, v] = &self.inputs;
        let columns = names("d", self.output.ncols());
        let mut inputs = Table::new(beside(&[&[""], &refs(&columns), &refs(&columns)]))
            .title(text("0. Given: Q = K │ V", "0. 주어진 행렬: Q = K │ V"));
        let mut scores = Table::new(beside(&[&[""], &refs(&keys), &refs(&keys)]))
            .title(text("1. Scores Q·Kᵀ │ divided by √d_k = √4 = 2", "1. 점수 Q·Kᵀ │ √d_k = √4 = 2로 나눈 점수"));
        let softmax = [refs(&keys), vec!["Σ"]].concat();
        let mut weights = Table::new(beside(&[&[""], &softmax, &refs(&keys)])).title(text(
            "2. Softmax: e^(score − largest) │ divided by their sum: the weights",
            "2. 소프트맥스: e^(점수 − 최댓값) │ 합으로 나눈 가중치",
        ));
        let mut output =
            Table::new(beside(&[&[""], &refs(&columns)])).title(text("3. Output: weights · V", "3. 출력: 가중치 · V"));
        for (i, row) in self.rows.iter().enumerate() {
            let cells = |of: fn(&reference::Cell) -> f64| row.cells.iter().map(of).collect::<Vec<_>>();
            let exp = [cells(|cell| cell.exp), vec![row.sum]].concat();
            inputs.row(beside(&[&[i.to_string()], &shorts(q.row(i)), &shorts(v.row(i))]));
            scores.row(beside(&[
                &[format!("q{i}")],
                &shorts(&cells(|cell| cell.product)),
                &shorts(&cells(|cell| cell.scaled)),
            ]));
            weights.row(beside(&[&[format!("q{i}")], &fives(&exp), &fives(&cells(|cell| cell.weight))]));
            output.row(beside(&[&[format!("q{i}")], &fives(self.output.row(i))]));
        }
        vec![inputs, scores, weights, output]
    }

    /// Scores, scaled scores, weights and output beside one another.
    fn on_one_line(&self, title: Text) -> Table {
        let head = ["", "Q·Kᵀ", "", "÷ √2", "", "softmax", "", "· V"];
        let mut table = Table::new(beside(&[&[""], &head[..2], &head[2..4], &head[4..6], &head[6..]])).title(title);
        for (i, row) in self.rows.iter().enumerate() {
            let cells = |of: fn(&reference::Cell) -> f64| row.cells.iter().map(of).collect::<Vec<_>>();
            let (products, scaled) = (shorts(&cells(|cell| cell.product)), shorts(&cells(|cell| cell.scaled)));
            let (weights, output) = (fives(&cells(|cell| cell.weight)), fives(self.output.row(i)));
            table.row(beside(&[&[format!("q{i}")], &products, &scaled, &weights, &output]));
        }
        table
    }

    /// Scores with what is hidden, and weights.
    fn masked(&self, title: Text) -> Table {
        let keys = names("k", self.weights.ncols());
        let mut table = Table::new(beside(&[&[""], &refs(&keys), &refs(&keys)])).title(title);
        for (i, row) in self.rows.iter().enumerate() {
            let cells = |of: fn(&reference::Cell) -> f64| row.cells.iter().map(of).collect::<Vec<_>>();
            let (scores, weights) = (shorts(&cells(|cell| cell.score)), fives(&cells(|cell| cell.weight)));
            table.row(beside(&[&[format!("q{i}")], &scores, &weights]));
        }
        table
    }

    fn figures(&self) -> Value {
        let rows = |x: &Array2<f64>| x.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        let [q, k, v] = self.inputs.each_ref().map(rows);
        json!({
            "q": q, "k": k, "v": v,
            "scores": self.each(|cell| cell.product),
            "scaled": self.each(|cell| cell.scaled),
            "visible": self.rows.iter().map(|row| row.cells.iter().map(|cell| cell.visible).collect()).collect::<Vec<Vec<bool>>>(),
            "exp": self.each(|cell| cell.exp),
            "sum": self.rows.iter().map(|row| row.sum).collect::<Vec<_>>(),
            "weights": rows(&self.weights),
            "output": rows(&self.output),
            "engine_difference": self.engine,
        })
    }
}

/// One word X = [1, 2] through two heads of width 1: all entries of the first head's matrices are 0.5, of the second's 0.3, and
/// those of W_O are named, since it is what mixes the heads.
struct TwoHeads {
    /// Q, K, V of each head; they are equal.
    projected: [f64; 2],
    /// What each head gives.
    heads: [f64; 2],
    /// The heads joined, through W_O.
    output: Array2<f64>,
    /// How far the layer's output is from it.
    engine: f64,
}

/// W_O of the example, [2, 2]: the sum and the difference of the heads.
const MIXING: [[f64; 2]; 2] = [[1.0, 1.0], [1.0, -1.0]];

impl TwoHeads {
    fn new() -> Result<Self> {
        let x = array![[1.0, 2.0]];
        let weight = |entry: f64| Array2::from_elem((2, 1), entry);
        let heads = [0.5, 0.3].map(|entry| {
            let projected = x.dot(&weight(entry));
            Exercise::new(&Attention::new(), projected.clone(), projected.clone(), projected)
        });
        let [first, second] = heads;
        let (first, second) = (first?, second?);
        let outputs = [first.output[[0, 0]], second.output[[0, 0]]];
        let output = Array2::from(vec![outputs]).dot(&Array2::from(MIXING.to_vec()));
        // The layer keeps its weights [outputs, inputs]: row h of W_q is head h.
        let rows = array![[0.5f32, 0.5], [0.3, 0.3]];
        let linear = |weight: Array2<f32>| Linear { weight: weight.into(), bias: None };
        let projection = Projection::Separate { q: linear(rows.clone()), k: linear(rows.clone()), v: linear(rows) };
        let mixing = Array2::from(MIXING.to_vec()).mapv(|w| w as f32).reversed_axes();
        let layer = MultiHeadAttention::from_parts(projection, linear(mixing), 2, 2)?;
        let (y, _) = layer.infer(&x.mapv(|x| x as f32), 1, Source::Own, &Attention::new())?;
        let engine = y.iter().zip(&output).map(|(y, out)| (f64::from(*y) - out).abs()).fold(0.0, f64::max);
        Ok(TwoHeads { projected: [first.inputs[0][[0, 0]], second.inputs[0][[0, 0]]], heads: outputs, output, engine })
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            text("head", "헤드"),
            "W_Q = W_K = W_V".into(),
            "q = k = v = X·W".into(),
            text("softmax of one score", "점수 하나의 소프트맥스"),
            text("output", "출력"),
        ])
        .text_columns([1])
        .title(text(
            "Two heads: X = [1, 2] is one word of width 2, each head has width 1 and so matrices of 2 × 1",
            "두 헤드: X = [1, 2]는 너비 2인 단어 하나이고, 헤드마다 너비가 1이므로 행렬은 2 × 1입니다",
        ));
        for (h, entry) in ["0.5", "0.3"].into_iter().enumerate() {
            table.row([
                (h + 1).to_string(),
                format!("[[{entry}], [{entry}]]"),
                format!("1·{entry} + 2·{entry} = {}", short(self.projected[h])),
                "1".to_owned(),
                short(self.heads[h]),
            ]);
        }
        let list = |numbers: &[f64]| format!("[{}]", shorts(numbers).join(", "));
        let (joined, output) = (list(&self.heads), list(self.output.as_slice().unwrap_or_default()));
        table.row([text("joined", "이어 붙임"), joined.clone().into()]);
        table.row(["· W_O".to_owned(), format!("{joined}·[[1, 1], [1, −1]] = {output}")]);
        table
    }

    fn figures(&self) -> Value {
        json!({
            "x": [[1, 2]], "weights": [[[0.5], [0.5]], [[0.3], [0.3]]], "projected": self.projected,
            "outputs": self.heads, "joined": self.heads, "w_o": MIXING, "output": self.output.as_slice(),
            "engine_difference": self.engine,
        })
    }
}

fn names(letter: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{letter}{i}")).collect()
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn shorts<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> Vec<String> {
    numbers.into_iter().map(|x| short(*x)).collect()
}

/// Five decimals, but an exact 0 and an exact 1 without any: a mask left them.
fn fives<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> Vec<String> {
    numbers.into_iter().map(|x| if *x == 0.0 || *x == 1.0 { format!("{x}") } else { format!("{x:.5}") }).collect()
}

/// Groups of cells with a rule between them.
fn beside<S: AsRef<str>>(groups: &[&[S]]) -> Vec<String> {
    let groups = groups.iter().map(|group| group.iter().map(|cell| cell.as_ref().to_owned()).collect::<Vec<_>>());
    groups.collect::<Vec<_>>().join(&["│".to_owned()][..])
}
