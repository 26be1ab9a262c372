//! The file: template, style, program, and data as JSON and chunks.

use ndarray::Array2;
use serde::Serialize;

use super::encode::{THUMB, chunk, fitting_floor, thumbs};
use super::{Group, Kind, Page, Tokens};
use crate::colour::categorical;
use crate::scale::maximum;
use crate::svg::canvas::escape;
use crate::{Error, Palette, Theme};

const TEMPLATE: &str = include_str!("../../page/page.html");
const STYLE: &str = include_str!("../../page/page.css");
/// In the order in which they need one another.
const PROGRAM: [&str; 10] = [
    include_str!("../../page/words.js"),
    include_str!("../../page/data.js"),
    include_str!("../../page/painter.js"),
    include_str!("../../page/map.js"),
    include_str!("../../page/lines.js"),
    include_str!("../../page/overview.js"),
    include_str!("../../page/reading.js"),
    include_str!("../../page/app.js"),
    include_str!("../../page/save.js"),
    include_str!("../../page/events.js"),
];

#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    note: &'a str,
    language: &'a str,
    thumb: usize,
    /// The least step of values; 0 if each row has its own.
    floor: f32,
    palettes: Palettes,
    groups: Vec<GroupData<'a>>,
}

/// 256 colours each, as six hexadecimal digits.
#[derive(Serialize)]
struct Palettes {
    light: String,
    dark: String,
    light_mark: String,
    dark_mark: String,
}

#[derive(Serialize)]
struct GroupData<'a> {
    kind: &'static str,
    queries: TokenData<'a>,
    keys: TokenData<'a>,
    layers: usize,
    heads: usize,
    measures: Vec<&'static str>,
}

#[derive(Serialize)]
struct TokenData<'a> {
    labels: &'a [String],
    words: &'a [usize],
    word_labels: &'a [String],
    /// The numbers of the special ones.
    special: Vec<usize>,
}

impl<'a> From<&'a Tokens> for TokenData<'a> {
    fn from(tokens: &'a Tokens) -> Self {
        let special = (0..tokens.special.len()).filter(|&i| tokens.special[i]).collect();
        TokenData { labels: &tokens.labels, words: &tokens.words, word_labels: &tokens.word_labels, special }
    }
}

pub(super) fn page(page: &Page) -> Result<String, Error> {
    let program = PROGRAM.join("\n");
    let floor = floor(page, page.budget.saturating_sub(TEMPLATE.len() + STYLE.len() + program.len()))?;
    let groups = page.groups.iter().map(|group| GroupData {
        kind: match group.kind {
            Kind::Attention => "attention",
            Kind::Encoder => "encoder",
            Kind::Decoder => "decoder",
            Kind::Cross => "cross",
        },
        queries: (&group.queries).into(),
        keys: (&group.keys).into(),
        layers: group.weights.len(),
        heads: group.weights[0].len(),
        measures: measures(group).into_iter().map(|m| m.0).collect(),
    });
    let data = Data {
        title: &page.caption.title,
        note: &page.caption.note,
        language: page.caption.language.code(),
        thumb: THUMB,
        floor,
        palettes: Palettes {
            light: colours(Theme::Light),
            dark: colours(Theme::Dark),
            light_mark: categorical(Theme::Light, 1).hex(),
            dark_mark: categorical(Theme::Dark, 1).hex(),
        },
        groups: groups.collect(),
    };
    let json = serde_json::to_string(&data)
        .map_err(|e| Error::Internal { doing: "writing the page", problem: e.to_string() })?;
    let title = if page.caption.title.is_empty() { page.caption.language.attention() } else { &page.caption.title };
    Ok(fill(&[
        ("LANGUAGE", page.caption.language.code()),
        ("TITLE", &escape(title)),
        ("STYLE", STYLE),
        ("CHUNKS", &chunks(page, floor)?),
        // `</script>` in a label must not end the script.
        ("DATA", &json.replace('<', "\\u003c")),
        ("PROGRAM", &program),
    ]))
}

/// The template with its marks replaced; what is put in is not searched again.
fn fill(parts: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(TEMPLATE.len() + parts.iter().map(|p| p.1.len()).sum::<usize>());
    let mut rest = TEMPLATE;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find("}}").map_or(rest.len(), |end| start + end);
        let name = &rest[start + 2..end];
        out.push_str(parts.iter().find(|p| p.0 == name).map_or("", |p| p.1));
        rest = rest.get(end + 2..).unwrap_or("");
    }
    out + rest
}

/// Name and layers of what a group can show. A rollout is a layer of one.
fn measures(group: &Group) -> Vec<(&'static str, Vec<&[Array2<f32>]>)> {
    let mut all = vec![("weights", group.weights.iter().map(Vec::as_slice).collect::<Vec<_>>())];
    if !group.norms.is_empty() {
        all.push(("norms", group.norms.iter().map(Vec::as_slice).collect()));
    }
    if !group.rollout.is_empty() {
        all.push(("rollout", group.rollout.iter().map(std::slice::from_ref).collect()));
    }
    all
}

/// The least step with which the page fits into its budget.
fn floor(page: &Page, budget: usize) -> Result<f32, Error> {
    let heads: Vec<&Array2<f32>> = page
        .groups
        .iter()
        .flat_map(|group| measures(group).into_iter().flat_map(|(_, layers)| layers.into_iter().flatten()))
        .collect();
    let thumbs: usize = heads.iter().map(|head| head.nrows().min(THUMB) * head.ncols().min(THUMB)).sum();
    let labels = |tokens: &Tokens| tokens.labels.iter().map(|label| label.len() + 16).sum::<usize>();
    let texts: usize = page.groups.iter().map(|group| labels(&group.queries) + labels(&group.keys)).sum();
    fitting_floor(&heads, budget.saturating_sub(thumbs + texts))
}

/// All chunks, each in a script of its own that no browser runs.
fn chunks(page: &Page, floor: f32) -> Result<String, Error> {
    let mut jobs: Vec<(String, Job)> = Vec::new();
    for (g, group) in page.groups.iter().enumerate() {
        for (name, layers) in measures(group) {
            let job = |(l, heads)| (format!("{name}-{g}-{l}"), Job::Layer { heads, of_largest: name == "norms" });
            jobs.extend(layers.iter().copied().enumerate().map(job));
            jobs.push((format!("{name}-{g}-thumbs"), Job::Thumbs(layers)));
        }
    }
    let done = in_parallel(&jobs, |(_, job)| match job {
        Job::Layer { heads, of_largest: false } => chunk(heads, |_| floor),
        Job::Layer { heads, of_largest: true } => chunk(heads, |head| floor * maximum(head) as f32),
        Job::Thumbs(layers) => thumbs(layers.iter().copied().flatten()),
    });
    let mut out = String::new();
    for ((id, _), data) in jobs.iter().zip(done) {
        out.push_str(&format!("<script type=\"text/plain\" id=\"{id}\">{}</script>\n", data?));
    }
    Ok(out)
}

/// What there is to compress.
enum Job<'a> {
    /// `of_largest`: the floor is a part of each head's largest value.
    Layer {
        heads: &'a [Array2<f32>],
        of_largest: bool,
    },
    Thumbs(Vec<&'a [Array2<f32>]>),
}

/// The results in the order of the jobs, computed by as many threads as there are processors.
fn in_parallel<T: Sync, R: Send>(jobs: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len().max(1));
    let work = &work;
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let every = |first: usize| jobs.iter().enumerate().skip(first).step_by(threads);
        let running: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || every(first).map(|(k, job)| (k, work(job))).collect::<Vec<_>>()))
            .collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    results.sort_by_key(|(k, _)| *k);
    results.into_iter().map(|(_, result)| result).collect()
}

fn colours(theme: Theme) -> String {
    (0..256).map(|i| Palette::Paper.colour(theme, f64::from(i) / 255.0).hex().split_off(1)).collect()
}
