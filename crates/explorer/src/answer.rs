//! Short answers about one run: maps, tiles, the arithmetic of a cell, the neurons of a query, what each head does.

use foveal_models::Trace;
use foveal_models::analysis::head_scores;
use foveal_models::trace::{Kind, LayerTrace};
use ndarray::s;
use serde_json::{Value, json};

use crate::asker::Asker;
use crate::fault::{Fault, Text};
use crate::matrix::Matrix;
use crate::reply::Reply;
use crate::request::{At, MOST_CELLS, MOST_KEYS, MOST_PIXELS, MapRequest, SiteKind, Span, TileRequest};
use crate::run::Run;

/// What rows and columns are called in errors.
const ROWS: (&str, &str) = ("rows", "행");
const COLS: (&str, &str) = ("columns", "열");

/// A rectangle as a picture.
pub fn map(run: &Run, request: &MapRequest, asker: &Asker) -> Result<Reply, Fault> {
    let matrix = Matrix::of(run, &request.at, request.measure)?;
    let (queries, keys) = matrix.dim();
    let (rows, cols) = (request.rows.within(ROWS, queries)?, request.cols.within(COLS, keys)?);
    let (height, width) = request.size;
    let most = (rows.len().min(MOST_PIXELS), cols.len().min(MOST_PIXELS));
    if !(1..=most.0).contains(&height) || !(1..=most.1).contains(&width) {
        return Err(Fault::request(
            format!(
                "{height} × {width} pixels do not fit here; ask for 1 to {} down and 1 to {} across",
                most.0, most.1
            ),
            format!(
                "픽셀 {height} × {width}은(는) 맞지 않습니다. 세로 1~{}, 가로 1~{} 사이로 정하십시오",
                most.0, most.1
            ),
        ));
    }
    Ok(Reply::matrix(&matrix.map(rows, cols, (height, width), request.pool, &asker.cancel)?))
}

/// A rectangle, exactly.
pub fn tile(run: &Run, request: &TileRequest) -> Result<Reply, Fault> {
    let matrix = Matrix::of(run, &request.at, request.measure)?;
    let (queries, keys) = matrix.dim();
    let (rows, cols) = (request.rows.within(ROWS, queries)?, request.cols.within(COLS, keys)?);
    let cells = rows.len() * cols.len();
    if cells > MOST_CELLS {
        return Err(Fault::request(
            format!("a tile of {cells} cells is too large; ask for at most {MOST_CELLS}, or for a map"),
            format!("칸이 {cells}개인 타일은 너무 큽니다. {MOST_CELLS}개까지 묻거나 지도를 요청하십시오"),
        ));
    }
    Ok(Reply::matrix(&matrix.tile(rows, cols)?))
}

/// The layer and head of a question that has no meaning for a mean.
fn one_head<'a>(run: &'a Run, at: &At) -> Result<(&'a LayerTrace, usize), Fault> {
    let layer = run.layer(run.site(at.site)?, at.layer)?;
    let head = usize::try_from(at.head).ok().filter(|head| *head < layer.heads()).ok_or_else(|| {
        Fault::request(
            format!("there is no head {}; there are {}, counted from 0", at.head, layer.heads()),
            format!("헤드 {}이(가) 없습니다. 0부터 세어 {}개가 있습니다", at.head, layer.heads()),
        )
    })?;
    Ok((layer, head))
}

/// The place of a query or a key.
fn one(index: usize, what: (&str, &str), limit: usize) -> Result<usize, Fault> {
    Span { start: index, end: index.saturating_add(1) }.within(what, limit).map(|range| range.start)
}

/// How one weight comes about.
pub fn cell(run: &Run, at: &At, query: usize, key: usize) -> Result<Reply, Fault> {
    let (layer, head) = one_head(run, at)?;
    let (query, key) = (one(query, ROWS, layer.queries())?, one(key, COLS, layer.keys())?);
    let cell = layer.cell(0, head, query, key)?;
    let mut answer = json!({
        "product": cell.product,
        "scale": cell.scale,
        "scaled": cell.scaled,
        "score": cell.visible.then_some(cell.score),
        "visible": cell.visible,
        "max": cell.max,
        "exp": cell.exp,
        "sum": cell.sum,
        "weight": cell.weight,
    });
    if let Some(norm) = cell.norm {
        answer["norm"] = json!(norm);
    }
    let group = layer.heads() / layer.k().dim().1;
    let (q, k) = (layer.q().to_f32(), layer.k().to_f32());
    let reply = Reply::new(answer).with(q.slice(s![0, head, query, ..])).with(k.slice(s![0, head / group, key, ..]));
    Ok(match (layer.v(), &cell.share) {
        (Some(v), Some(share)) => reply.with(v.to_f32().slice(s![0, head / group, key, ..])).with(share),
        _ => reply,
    })
}

/// A query and some keys, dimension by dimension.
pub fn neurons(run: &Run, at: &At, query: usize, keys: Span) -> Result<Reply, Fault> {
    let (layer, head) = one_head(run, at)?;
    let (query, keys) = (one(query, ROWS, layer.queries())?, keys.within(COLS, layer.keys())?);
    if keys.len() > MOST_KEYS {
        return Err(Fault::request(
            format!("{} keys are too many; ask for at most {MOST_KEYS}", keys.len()),
            format!("키 {}개는 너무 많습니다. {MOST_KEYS}개까지 요청하십시오", keys.len()),
        ));
    }
    let group = layer.heads() / layer.k().dim().1;
    let (q, k) = (layer.q().to_f32(), layer.k().to_f32());
    let reply = Reply::new(json!({})).with(q.slice(s![0, head, query, ..]));
    Ok(reply.with(k.slice(s![0, head / group, keys, ..])))
}

/// What each head does, layer by layer.
pub fn heads(run: &Run, kind: SiteKind, asker: &Asker) -> Result<Reply, Fault> {
    let site = run.site(kind)?;
    if site.kind == Kind::Cross {
        return Err(Fault::request(
            "the head report is about a sequence and itself; choose encoder or decoder attention",
            "헤드 보고서는 한 문장 안의 어텐션에 대한 것입니다. 인코더나 디코더를 고르십시오",
        ));
    }
    let ids = &run.reading.axes[site.queries].ids;
    let mut rows: Vec<Value> = Vec::new();
    for (n, &number) in site.layers.iter().enumerate() {
        asker.cancel.check()?;
        let (n, all) = (n + 1, site.layers.len());
        asker.progress(
            n as f64 / all as f64,
            &Text::new(format!("layer {n} of {all}"), format!("{all}개 층 중 {n}번째")),
        );
        let layer = run.layer(site, number)?;
        let alone = Trace::from_iter([(foveal_models::trace::Site { kind: site.kind, layer: number }, layer.clone())]);
        for scores in head_scores(&alone, site.kind, 0, ids, None)? {
            let head = scores.head.head;
            let first = layer.tile(0, head, 0..layer.queries(), 0..1)?.mean().unwrap_or(0.0);
            rows.push(json!({
                "layer": number,
                "head": head,
                "entropy": scores.entropy,
                "confidence": scores.confidence,
                "previous": scores.previous,
                "first": first,
                "same": scores.duplicate.unwrap_or(0.0),
            }));
        }
    }
    Ok(Reply::new(json!({ "rows": rows })))
}
