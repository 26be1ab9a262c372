//! What a head looks at, as a class that it can be held to.
//!
//! A class c says which keys $K_c(i)$ query i would look at: the token before, the speaker's name, … Its share of a head is
//! the weight on these keys, of all weight that is not left at a sink, from the queries that have any such key:
//!
//! $$ s_c = \frac{\sum_i \sum_{j \in K_c(i) \setminus S} A_{ij}}{\sum_i a_i}, \qquad
//!    u_c = \frac{\sum_i a_i \, |K_c(i) \setminus S| \,/\, n_i}{\sum_i a_i}, \qquad
//!    a_i = 1 - \sum_{j \in S} A_{ij} $$
//!
//! with S the sinks, the first token and special tokens, and $n_i$ the keys that query i sees beside them. $u_c$ is the share of a
//! head that spreads the same weight evenly. A head *is* of a class where $s_c \ge 0.5$ and $s_c \ge 3 u_c$.
//!
//! Sinks are discounted because trained heads leave their weight there when they find nothing to look at: most of it, in most
//! heads of a large model. How much that is stands beside the classes; a head that leaves nearly all of its weight there is of the
//! class of its sink.

use std::ops::Range;

use super::by_rows;
use crate::layer::expect;
use crate::trace::{Head, Kind, LayerTrace, Trace};
use crate::{Encoding, Result};

/// The least share of a class.
pub const LEAST_SHARE: f64 = 0.5;
/// The least ratio of that share to the one of a head with equal weights.
pub const LEAST_RATIO: f64 = 3.0;
/// The least weight beside the sinks that a head is classed by; under it, it is of the class of its sink.
pub const LEAST_ACTIVE: f64 = 0.05;
/// Queries that must have a key of the class, as a share of all: what is seen in a handful of places is no habit.
pub const LEAST_QUERIES: f64 = 0.05;
/// Tokens before that count as near.
const NEAR: usize = 3;

/// What a head may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeadClass {
    /// The token before.
    Previous,
    /// The token after.
    Next,
    /// The token itself.
    Own,
    /// The three tokens before.
    Near,
    /// Other pieces of the same word.
    Word,
    /// Other tokens that are equal to this one.
    Same,
    /// What came after an equal token before.
    Induction,
    /// Punctuation.
    Punctuation,
    /// Line ends.
    LineEnd,
    /// The first token of the line.
    LineStart,
    /// The name of the one who speaks.
    Speaker,
    /// The first token: a sink.
    First,
    /// Special tokens after the first: a sink.
    Separator,
}

impl HeadClass {
    /// All there are.
    pub const ALL: [HeadClass; 13] = [
        HeadClass::Previous,
        HeadClass::Next,
        HeadClass::Own,
        HeadClass::Near,
        HeadClass::Word,
        HeadClass::Same,
        HeadClass::Induction,
        HeadClass::Punctuation,
        HeadClass::LineEnd,
        HeadClass::LineStart,
        HeadClass::Speaker,
        HeadClass::First,
        HeadClass::Separator,
    ];

    /// What it is called in a report.
    pub fn name(self) -> &'static str {
        match self {
            HeadClass::Previous => "previous",
            HeadClass::Next => "next",
            HeadClass::Own => "own",
            HeadClass::Near => "near",
            HeadClass::Word => "word",
            HeadClass::Same => "same",
            HeadClass::Induction => "induction",
            HeadClass::Punctuation => "punctuation",
            HeadClass::LineEnd => "line end",
            HeadClass::LineStart => "line start",
            HeadClass::Speaker => "speaker",
            HeadClass::First => "first",
            HeadClass::Separator => "separator",
        }
    }

    /// Whether its keys are those where weight is left that is not needed.
    pub fn is_sink(self) -> bool {
        matches!(self, HeadClass::First | HeadClass::Separator)
    }
}

/// A class and a head: its share, and that of equal weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassShare {
    /// The class.
    pub class: HeadClass,
    /// Of the weight beside the sinks; for the sinks, of all weight.
    pub share: f64,
    /// The same of a head that spreads its weight evenly.
    pub uniform: f64,
    /// The queries that have such a key, as a share of all.
    pub queries: f64,
}

impl ClassShare {
    /// Whether the head is of this class.
    pub fn holds(&self) -> bool {
        self.queries >= LEAST_QUERIES && self.share >= LEAST_SHARE && self.share >= LEAST_RATIO * self.uniform
    }

    /// How many times the share of equal weights it is.
    pub fn ratio(&self) -> f64 {
        if self.uniform > 0.0 { self.share / self.uniform } else { 0.0 }
    }
}

/// One head and all classes.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadClasses {
    /// Which head.
    pub head: Head,
    /// The share of its weight that is left at the first token and at special tokens.
    pub sink: f64,
    /// In the order of [`HeadClass::ALL`].
    pub shares: Vec<ClassShare>,
}

impl HeadClasses {
    /// What the head is called: of the classes that hold, the one that is furthest from chance. The sinks come last: they name a
    /// head of which nothing else holds. None if nothing does.
    pub fn class(&self) -> Option<ClassShare> {
        let of = |sinks: bool| {
            let classes = self.shares.iter().filter(|share| share.class.is_sink() == sinks && share.holds());
            classes.max_by(|a, b| a.ratio().total_cmp(&b.ratio())).copied()
        };
        let active = (1.0 - self.sink >= LEAST_ACTIVE).then(|| of(false)).flatten();
        active.or_else(|| of(true))
    }

    /// The share of a class.
    pub fn of(&self, class: HeadClass) -> Option<ClassShare> {
        self.shares.iter().find(|share| share.class == class).copied()
    }
}

/// The classes of the heads of a model, over any number of texts.
///
/// ```
/// use foveal_models::Tokenizer;
/// use foveal_models::analysis::classes::ClassCounts;
/// use foveal_models::layer::Random;
/// use foveal_models::model::{Gpt2, Gpt2Config, LanguageModel};
/// use foveal_models::trace::{Capture, Kind, Probe};
///
/// let text = "to be or not to be";
/// let tokenizer = Tokenizer::of_characters(text)?;
/// let model = Gpt2::new(&Gpt2Config { vocabulary: 8, ..Gpt2Config::nano() }, &mut Random::new(1))?;
/// let encoding = tokenizer.encode(text)?;
/// let mut probe = Probe::new(Capture::All);
/// model.infer(encoding.ids(), 1, None, &mut probe)?;
/// let mut counts = ClassCounts::default();
/// counts.add(&probe.into_trace(), Kind::Decoder, 0, &encoding)?;
/// assert!(counts.heads().iter().all(|head| head.class().is_none())); // it has learned nothing yet
/// # Ok::<(), foveal_models::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClassCounts {
    heads: Vec<(Head, Counts)>,
    tokens: usize,
}

/// Sums over the queries of one head.
#[derive(Clone, Debug, Default)]
struct Counts {
    queries: usize,
    /// Weight left at the sinks.
    sink: f64,
    classes: [Sums; HeadClass::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Queries that have such a key.
    queries: usize,
    /// Their weight beside the sinks, how much of it is on such keys, and how much would be if it were spread evenly.
    active: f64,
    on: f64,
    even: f64,
}

impl ClassCounts {
    /// Adds a text that a model has read, `sequence` of the trace.
    ///
    /// # Errors
    /// If there is no such sequence, or the encoding is of another text.
    pub fn add(&mut self, trace: &Trace, kind: Kind, sequence: usize, encoding: &Encoding) -> Result<()> {
        let keys = Keys::of(encoding, kind == Kind::Decoder);
        let mut added = Vec::new();
        for (number, layer) in trace.of_kind(kind) {
            expect("the tokens of the trace", &[layer.queries(), layer.keys()], &[encoding.len(), encoding.len()])?;
            for head in 0..layer.heads() {
                added.push((Head::new(kind, number, head), count(layer, (sequence, head), &keys)?));
            }
        }
        self.tokens += encoding.len();
        for (head, counts) in added {
            match self.heads.iter_mut().find(|(other, _)| *other == head) {
                Some((_, sum)) => sum.add(&counts),
                None => self.heads.push((head, counts)),
            }
        }
        Ok(())
    }

    /// The tokens so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// All heads, in the order of layers.
    pub fn heads(&self) -> Vec<HeadClasses> {
        self.heads.iter().map(|(head, counts)| counts.head(*head)).collect()
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.queries += other.queries;
        self.sink += other.sink;
        for (sums, other) in self.classes.iter_mut().zip(&other.classes) {
            sums.queries += other.queries;
            sums.active += other.active;
            sums.on += other.on;
            sums.even += other.even;
        }
    }

    fn head(&self, head: Head) -> HeadClasses {
        let of_all = |x: f64| x / self.queries.max(1) as f64;
        let shares = HeadClass::ALL.into_iter().zip(&self.classes).map(|(class, sums)| {
            let of_active = |x: f64| if sums.active > 0.0 { x / sums.active } else { 0.0 };
            let queries = of_all(sums.queries as f64);
            ClassShare { class, share: of_active(sums.on), uniform: of_active(sums.even), queries }
        });
        HeadClasses { head, sink: of_all(self.sink), shares: shares.collect() }
    }
}

fn count(layer: &LayerTrace, at: (usize, usize), keys: &Keys) -> Result<Counts> {
    let mut counts = Counts::default();
    by_rows(layer, at, |rows, weights| {
        for (i, row) in rows.zip(weights.outer_iter()) {
            let on = |keys: &[usize]| keys.iter().map(|&j| f64::from(row[j])).sum::<f64>();
            let seen = keys.seen[i];
            let sinks = &keys.sinks[..keys.sinks.partition_point(|j| *j < seen)];
            let (sink, others) = (on(sinks), seen - sinks.len());
            // The first tokens see too little to choose from.
            if seen <= NEAR + 1 {
                continue;
            }
            counts.queries += 1;
            counts.sink += sink;
            for ((class, sums), of_class) in HeadClass::ALL.into_iter().zip(&mut counts.classes).zip(&keys.of) {
                let looked_at = &of_class[i];
                if looked_at.is_empty() {
                    continue;
                }
                let (active, of) = if class.is_sink() { (1.0, seen) } else { (1.0 - sink, others) };
                sums.queries += 1;
                sums.active += active;
                sums.on += on(looked_at);
                sums.even += active * looked_at.len() as f64 / of.max(1) as f64;
            }
        }
    })?;
    Ok(counts)
}

/// Which keys each query would look at.
struct Keys {
    seen: Vec<usize>,
    /// The first token and special ones, in order.
    sinks: Vec<usize>,
    /// By class and query.
    of: Vec<Vec<Vec<usize>>>,
}

impl Keys {
    fn of(encoding: &Encoding, causal: bool) -> Self {
        let n = encoding.len();
        let sinks: Vec<usize> = (0..n).filter(|&j| j == 0 || encoding.spans()[j].is_none()).collect();
        let seen: Vec<usize> = (1..=n).map(|i| if causal { i } else { n }).collect();
        let places = Places::of(encoding);
        let of_query = |class: HeadClass, i: usize| -> Vec<usize> {
            let is_sink = |j: &usize| sinks.binary_search(j).is_ok();
            let keys = places.keys(class, i, seen[i]).into_iter().filter(|j| *j < seen[i]);
            keys.filter(|j| is_sink(j) == class.is_sink()).collect()
        };
        let of = HeadClass::ALL.map(|class| (0..n).map(|i| of_query(class, i)).collect()).to_vec();
        Keys { seen, sinks, of }
    }
}

/// What is known of the tokens of a text.
struct Places<'a> {
    encoding: &'a Encoding,
    marks: Vec<usize>,
    line_ends: Vec<usize>,
    /// The first token of each token's line.
    line: Vec<usize>,
    /// The tokens of the last speaker's name before each token.
    speaker: Vec<Range<usize>>,
}

impl<'a> Places<'a> {
    fn of(encoding: &'a Encoding) -> Self {
        let labels = encoding.labels();
        let all = |is: fn(&str) -> bool| (0..labels.len()).filter(|&j| is(&labels[j])).collect();
        let (mut line, mut speaker) = (Vec::new(), Vec::new());
        let (mut start, mut name) = (0, 0..0);
        for (i, label) in labels.iter().enumerate() {
            line.push(start);
            speaker.push(name.clone());
            // "ROMEO:" alone on its line: from here on it is he who speaks.
            if label == ":" && labels.get(i + 1).is_some_and(|next| is_line_end(next)) {
                name = start..i;
            }
            if is_line_end(label) {
                start = i + 1;
            }
        }
        Places { encoding, marks: all(is_mark), line_ends: all(is_line_end), line, speaker }
    }

    /// The keys of a class for query i, which sees the first `seen` tokens; those beyond may be among them.
    fn keys(&self, class: HeadClass, i: usize, seen: usize) -> Vec<usize> {
        let (ids, words) = (self.encoding.ids(), self.encoding.words());
        let others = |is: &dyn Fn(usize) -> bool| (0..seen).filter(|&j| j != i && is(j)).collect();
        let before = |keys: &[usize]| keys.iter().copied().filter(|j| *j != i).collect();
        match class {
            HeadClass::Previous => i.checked_sub(1).into_iter().collect(),
            HeadClass::Next => vec![i + 1],
            HeadClass::Own => vec![i],
            HeadClass::Near => (i.saturating_sub(NEAR)..i).collect(),
            HeadClass::Word => others(&|j| words[i].is_some() && words[j] == words[i]),
            HeadClass::Same => others(&|j| ids[j] == ids[i]),
            HeadClass::Induction => others(&|j| j > 0 && j < i && ids[j - 1] == ids[i]),
            HeadClass::Punctuation => before(&self.marks),
            HeadClass::LineEnd => before(&self.line_ends),
            HeadClass::LineStart => before(&[self.line[i]]),
            HeadClass::Speaker => self.speaker[i].clone().collect(),
            HeadClass::First => vec![0],
            HeadClass::Separator => others(&|j| j > 0 && self.encoding.spans()[j].is_none()),
        }
    }
}

fn is_line_end(label: &str) -> bool {
    label.contains('\n')
}

fn is_mark(label: &str) -> bool {
    let word = label.trim_matches([' ', '▁']);
    !word.is_empty() && word.chars().all(|c| c.is_ascii_punctuation())
}
