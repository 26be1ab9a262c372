//! Questions, as docs/page.md describes them. What is not understood is refused here, before anything is computed.

use std::ops::Range;

use foveal_models::trace::{Head, Kind};
use serde::Deserialize;

use crate::fault::Fault;

/// Longest side of a map, in pixels.
pub const MOST_PIXELS: usize = 1024;
/// Most cells of a tile.
pub const MOST_CELLS: usize = 1 << 20;
/// Most keys of a neuron view.
pub const MOST_KEYS: usize = 512;
/// Most tokens written at a time.
pub const MOST_WRITTEN: usize = 4096;

/// A question.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Request {
    /// What there is.
    Meta {},
    /// Read a text or an image.
    Run(RunRequest),
    /// All heads at a glance.
    Overview {
        /// Which run.
        run: String,
        /// Which attention.
        site: SiteKind,
        /// What the pixels show.
        #[serde(default)]
        measure: Measure,
    },
    /// A rectangle as a picture.
    Map(MapRequest),
    /// A rectangle, exactly.
    Tile(TileRequest),
    /// How one weight comes about.
    Cell {
        /// Which head.
        at: At,
        /// Which query.
        query: usize,
        /// Which key.
        key: usize,
    },
    /// Queries and keys, dimension by dimension.
    Neurons {
        /// Which head.
        at: At,
        /// Which query.
        query: usize,
        /// Which keys.
        keys: Span,
    },
    /// What may come next, with heads switched off.
    Predict {
        /// Which run.
        run: String,
        /// Which heads.
        off: Vec<HeadName>,
    },
    /// Write on.
    Generate(GenerateRequest),
    /// What each head does.
    Heads {
        /// Which run.
        run: String,
        /// Which attention.
        site: SiteKind,
    },
}

/// What is to be read, and with what.
#[derive(Clone, Debug, Default, Deserialize, Hash, PartialEq, Eq)]
pub struct RunRequest {
    /// The id of a model in [`Catalog`](crate::Catalog).
    pub model: String,
    /// The text; for a question, the question.
    #[serde(default)]
    pub text: Option<String>,
    /// What to look for the answer in, one passage a line.
    #[serde(default)]
    pub passages: Option<String>,
    /// A PNG or JPEG in base64.
    #[serde(default)]
    pub image: Option<String>,
    /// Heads that are switched off.
    #[serde(default)]
    pub off: Vec<HeadName>,
}

/// Which attention of a model.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum SiteKind {
    /// Of an encoder to itself.
    Encoder,
    /// Of a decoder to its past.
    Decoder,
    /// Of a decoder to the encoder.
    Cross,
    /// The only one there is.
    Attention,
}

impl SiteKind {
    /// As the models call it; `Attention` is any.
    pub fn kind(self) -> Option<Kind> {
        match self {
            SiteKind::Encoder => Some(Kind::Encoder),
            SiteKind::Decoder => Some(Kind::Decoder),
            SiteKind::Cross => Some(Kind::Cross),
            SiteKind::Attention => None,
        }
    }
}

/// Kind, layer and head.
pub type HeadName = (SiteKind, usize, usize);

/// The head of this name.
///
/// # Errors
/// If it does not say which attention.
pub fn head_of((site, layer, head): HeadName) -> Result<Head, Fault> {
    let kind = site.kind().ok_or_else(|| {
        Fault::request(
            "a head to switch off is [kind, layer, head], the kind being encoder, decoder or cross",
            "끌 헤드는 [종류, 층, 헤드]로 쓰며 종류는 encoder, decoder, cross 중 하나입니다",
        )
    })?;
    Ok(Head::new(kind, layer, head))
}

/// What numbers are asked for.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Weights.
    #[default]
    Weights,
    /// ‖w·v·W_o‖.
    Norms,
    /// Rollout up to this layer.
    Rollout,
}

impl Measure {
    /// As it stands in a request.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Weights => "weights",
            Measure::Norms => "norms",
            Measure::Rollout => "rollout",
        }
    }
}

/// How the numbers of a pixel become one.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Pool {
    /// The largest.
    #[default]
    Max,
    /// Their mean.
    Mean,
}

/// From a to before b.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(from = "(usize, usize)")]
pub struct Span {
    /// a.
    pub start: usize,
    /// b.
    pub end: usize,
}

impl From<(usize, usize)> for Span {
    fn from((start, end): (usize, usize)) -> Self {
        Span { start, end }
    }
}

impl Span {
    /// The range, which must have something in it and end by `limit`.
    pub fn within(self, what: (&str, &str), limit: usize) -> Result<Range<usize>, Fault> {
        let Span { start, end } = self;
        if start < end && end <= limit {
            return Ok(start..end);
        }
        Err(Fault::request(
            format!("the {} from {start} to before {end} are not there; there are {limit}, counted from 0", what.0),
            format!("{} {start}부터 {end} 앞까지는 없습니다. 0부터 세어 {limit}개가 있습니다", what.1),
        ))
    }
}

/// One matrix.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct At {
    /// Which run.
    pub run: String,
    /// Which attention.
    pub site: SiteKind,
    /// Which layer.
    pub layer: usize,
    /// Which head; −1 is the mean of all.
    pub head: i64,
}

/// A rectangle as a picture.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct MapRequest {
    /// Of which matrix.
    pub at: At,
    /// Of which numbers.
    #[serde(default)]
    pub measure: Measure,
    /// Queries.
    pub rows: Span,
    /// Keys.
    pub cols: Span,
    /// Pixels down and across.
    pub size: (usize, usize),
    /// How they are made.
    #[serde(default)]
    pub pool: Pool,
}

/// A rectangle, exactly.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct TileRequest {
    /// Of which matrix.
    pub at: At,
    /// Of which numbers.
    #[serde(default)]
    pub measure: Measure,
    /// Queries.
    pub rows: Span,
    /// Keys.
    pub cols: Span,
}

/// How to write on.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct GenerateRequest {
    /// After which run.
    pub run: String,
    /// Tokens at most.
    pub count: usize,
    /// 0 is greedy.
    #[serde(default)]
    pub temperature: f32,
    /// What chance follows from.
    #[serde(default)]
    pub seed: u64,
    /// Heads that are switched off.
    #[serde(default)]
    pub off: Vec<HeadName>,
    /// A head whose weights come with every token.
    #[serde(default)]
    pub watch: Option<(SiteKind, usize, i64)>,
}

impl Request {
    /// A question from JSON.
    ///
    /// # Errors
    /// If it is no JSON, of no known kind, or lacks a field.
    pub fn parse(json: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(json).map_err(|error| {
            Fault::request(
                format!("the request is not understood: {error}; docs/page.md lists what can be asked"),
                format!("요청을 이해할 수 없습니다: {error}. 물을 수 있는 것은 docs/page.md에 있습니다"),
            )
        })
    }

    /// Whether it carries an image, and may be larger for that.
    pub fn has_image(&self) -> bool {
        matches!(self, Request::Run(RunRequest { image: Some(_), .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood() {
        assert_eq!(Request::parse(br#"{"kind":"meta"}"#).unwrap(), Request::Meta {});
        let tile = br#"{"kind":"tile","at":{"run":"r","site":"cross","layer":1,"head":-1},"measure":"norms","rows":[0,4],"cols":[2,3]}"#;
        let Request::Tile(tile) = Request::parse(tile).unwrap() else { panic!() };
        assert_eq!((tile.at.head, tile.measure, tile.rows.end), (-1, Measure::Norms, 4));
        let predict = br#"{"kind":"predict","run":"r","off":[["decoder",4,3]]}"#;
        assert!(matches!(Request::parse(predict).unwrap(), Request::Predict { off, .. } if head_of(off[0]).is_ok()));
    }

    #[test]
    fn what_is_not() {
        let bad: [&[u8]; 10] = [
            b"",
            b"null",
            b"[]",
            b"{}",
            b"{",
            b"\xff",
            br#"{"kind":"nothing"}"#,
            br#"{"kind":"tile"}"#,
            br#"{"kind":"map","at":{"run":"r","site":"cross","layer":-1,"head":0},"rows":[0,1],"cols":[0,1],"size":[1,1]}"#,
            br#"{"kind":"generate","run":"r","count":3,"temperature":NaN}"#,
        ];
        for bad in bad {
            assert!(Request::parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
