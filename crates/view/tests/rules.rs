//! What holds for every picture on every surface.

use foveal_view::{
    Bars, Chart, Compare, Depth, Error, Format, Grid, Group, Heatmap, Kind, Language, Layer, Lines, Look, Map, Page,
    Panels, Patches, Range, Scene, Steps, Terminal, Theme, Tokens,
};
use ndarray::{Array2, array};
use unicode_width::UnicodeWidthChar;

/// Labels that have broken other programs.
const LABELS: [&str; 8] =
    ["", " ", "어텐션", "漢字🙂", "a\tb\n", "\u{1b}[31mred", "</script><b>&\"", "e\u{301}\u{202e}x"];

fn label(i: usize) -> String {
    let mut label = LABELS[i % LABELS.len()].to_string();
    if i % 5 == 4 {
        label = label.repeat(12);
    }
    label
}

fn labels(count: usize) -> Vec<String> {
    (0..count).map(label).collect()
}

fn matrix(rows: usize, cols: usize, kind: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, cols), |(i, j)| match kind {
        0 => 0.0,
        1 => f32::NAN,
        2 => [f32::INFINITY, f32::NEG_INFINITY, -3.0, 1e30, 1e-30][(i + j) % 5],
        _ => ((i * 31 + j * 17) % 97) as f32 / 97.0,
    })
}

/// Every scene for a matrix of this shape.
fn scenes(rows: usize, cols: usize, kind: usize) -> Vec<Scene> {
    let m = || matrix(rows, cols, kind);
    let (q, k) = (labels(rows), labels(cols));
    let points = || m().iter().enumerate().map(|(i, v)| (i as f64, f64::from(*v))).collect::<Vec<_>>();
    let mut all: Vec<Scene> = vec![
        Heatmap::new(m(), q.clone(), k.clone()).unwrap().title(label(6)).note(label(3)).into(),
        Heatmap::alignment(m(), q.clone(), k.clone()).unwrap().max(0.0).steps(Steps::Log).into(),
        Bars::of_row(&m(), rows - 1, k.clone()).unwrap().token(cols + 7).title(label(2)).into(),
        Grid::heads(vec![m(), m(), m()]).unwrap().names([label(4)]).into(),
        Grid::layers(vec![vec![m(), m()], vec![m(), m()], vec![m(), m()]]).unwrap().row_names([label(3)]).into(),
        Lines::new(m(), q.clone(), k.clone()).unwrap().into(),
        Lines::heads(vec![(label(2), m()), (label(5), m())], q.clone(), k.clone()).unwrap().token(rows * 2).into(),
        Map::new(m(), 7..7 + rows * 100, 0..cols).unwrap().into(),
        Map::new(m(), 0..1, 0..1).unwrap().steps(Steps::Root).into(),
        Patches::grey(&matrix(5, 9, kind), m()).unwrap().query(0, cols).and(label(4), m()).unwrap().into(),
        Compare::new((label(4), m()), (label(6), matrix(rows, cols, 3)), q.clone(), k.clone()).unwrap().into(),
        Compare::new(("a", m()), ("b", m()), q, k).unwrap().panels(Panels::Difference).into(),
    ];
    if kind != 1 {
        let chart = Chart::new(label(6), label(2)).series(label(4), points()).series("", [(1.0, 2.0)]);
        all.push(chart.clone().into());
        all.push(chart.steps(Steps::Log, Steps::Log).from_zero().into());
    }
    all
}

/// Without the escape codes.
fn bare(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => while chars.next().is_some_and(|c| c != 'm') {},
            c => out.push(c),
        }
    }
    out
}

fn width(line: &str) -> usize {
    line.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[test]
fn nothing_panics_and_no_line_is_too_wide() {
    for (rows, cols) in [(1, 1), (1, 5), (7, 3), (3, 70), (90, 80), (230, 4)] {
        for kind in 0..4 {
            for scene in scenes(rows, cols, kind) {
                for theme in [Theme::Light, Theme::Dark] {
                    let svg = scene.svg(&Look::new().theme(theme)).unwrap();
                    assert!(!svg.contains("NaN\"") && !svg.contains("inf\""), "{scene:?}");
                }
                for columns in [0, 20, 33, 60, 200] {
                    for depth in [Depth::True, Depth::Ansi256, Depth::Plain] {
                        let text = scene.terminal(&Terminal::new(columns).depth(depth)).unwrap();
                        assert!(depth != Depth::Plain || !text.contains('\x1b'));
                        for line in text.lines() {
                            let line = bare(line);
                            assert!(width(&line) <= columns.max(20), "{columns}: {line:?} of {scene:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn svg_is_well_formed_and_drawable() {
    for (rows, cols) in [(1, 1), (7, 3), (3, 70)] {
        for kind in [1, 2, 3] {
            for scene in scenes(rows, cols, kind) {
                let png = scene.png(&Look::new().scale(0.2)).unwrap();
                assert!(png.starts_with(b"\x89PNG"));
                for format in [Format::Html, Format::Json, Format::Csv] {
                    assert!(!scene.render(format, &Look::new()).unwrap().is_empty());
                }
            }
        }
    }
}

#[test]
fn cells_stand_under_their_labels_whatever_their_width() {
    let weights = array![[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]];
    for tokens in
        [["a", "b", "c"], ["어텐션", "은", "그림이다"], ["🙂", "漢字", "x"], [" 가", "나", "다다다다다다다다다"]]
    {
        let scene = Scene::from(Heatmap::new(weights.clone(), tokens, tokens).unwrap());
        let text = scene.terminal(&Terminal::new(60).depth(Depth::Plain)).unwrap();
        // The columns where the numbers begin are the same in every row.
        let starts: Vec<Vec<usize>> = text
            .lines()
            .filter(|line| line.matches("0.").count() == 3)
            .map(|line| line.match_indices("0.").map(|(at, _)| width(&line[..at])).collect())
            .collect();
        assert_eq!(starts.len(), 3, "{text}");
        assert!(starts.iter().all(|s| *s == starts[0]), "{text}");
    }
}

#[test]
fn a_value_that_is_no_number_is_not_drawn_as_a_zero() {
    let draw = |value: f32| {
        let scene = Scene::from(Heatmap::new(array![[value, 1.0], [0.5, 0.5]], ["a", "b"], ["a", "b"]).unwrap());
        let text = |depth| scene.terminal(&Terminal::new(40).depth(depth)).unwrap();
        [scene.svg(&Look::new()).unwrap(), text(Depth::Plain), text(Depth::True), text(Depth::Ansi256)]
    };
    for ((nan, zero), one) in draw(f32::NAN).iter().zip(&draw(0.0)).zip(&draw(1.0)) {
        assert!(nan != zero && nan != one);
    }
    // Also where cells are pooled to pixels.
    let mut large = Array2::from_elem((300, 300), 0.0);
    let clean = Scene::from(Map::new(large.clone(), 0..300, 0..300).unwrap());
    large[[150, 150]] = f32::NAN;
    let broken = Scene::from(Map::new(large, 0..300, 0..300).unwrap());
    let plain = Terminal::new(60).depth(Depth::Plain);
    assert!(broken.terminal(&plain).unwrap().contains('?') && !clean.terminal(&plain).unwrap().contains('?'));
}

#[test]
fn nothing_to_draw_and_wrong_counts_are_errors() {
    let empty = || Array2::<f32>::zeros((0, 3));
    let none: [&str; 0] = [];
    assert!(matches!(Heatmap::new(empty(), none, ["a", "b", "c"]), Err(Error::Empty { .. })));
    assert!(matches!(Heatmap::new(Array2::zeros((3, 0)), ["a", "b", "c"], none), Err(Error::Empty { .. })));
    assert!(matches!(Heatmap::new(Array2::zeros((2, 1)), ["a"], ["a"]), Err(Error::Count { expected: 2, got: 1, .. })));
    assert!(matches!(Bars::new([], none), Err(Error::Empty { .. })));
    assert!(matches!(Bars::of_row(&Array2::zeros((2, 2)), 2, ["a", "b"]), Err(Error::Value { .. })));
    assert!(Grid::heads(vec![]).is_err() && Grid::heads(vec![empty()]).is_err() && Grid::layers(vec![]).is_err());
    assert!(Grid::layers(vec![vec![matrix(2, 2, 3)], vec![]]).is_err());
    assert!(Lines::heads(vec![], ["a"], ["a"]).is_err());
    assert!(Map::new(empty(), 0..3, 0..3).is_err() && Map::new(matrix(2, 2, 3), 3..3, 0..2).is_err());
    assert!(Patches::grey(&empty(), matrix(2, 2, 3)).is_err());
    let patches = Patches::grey(&matrix(4, 4, 3), matrix(2, 2, 3)).unwrap();
    assert!(matches!(patches.and("x", matrix(3, 2, 3)), Err(Error::Shape { .. })));
    assert!(Compare::new(("a", matrix(2, 2, 3)), ("b", matrix(2, 3, 3)), ["a", "b"], ["a", "b"]).is_err());
    let chart = Scene::from(Chart::new("x", "y").series("s", [(f64::NAN, 1.0)]));
    assert!(chart.svg(&Look::new()).is_err() && chart.terminal(&Terminal::new(80)).is_err());
    assert!(Page::new(vec![]).html().is_err());
    let tokens = Tokens::new(["a", "b"]);
    assert!(Group::new(Kind::Cross, tokens.clone().words([0]), tokens.clone()).is_err());
    let group = Group::new(Kind::Cross, tokens.clone(), tokens).unwrap();
    let layer = |heads: usize, cols: usize| Layer::weights(vec![matrix(2, cols, 3); heads]).unwrap();
    assert!(Layer::weights(vec![]).is_err() && group.clone().layer(layer(1, 3)).is_err());
    assert!(Page::new(vec![group.clone()]).html().is_err());
    assert!(group.layer(layer(1, 2)).unwrap().layer(layer(2, 2)).is_err());
    assert!(layer(1, 2).norms(matrix(1, 3, 2)).is_err());
}

#[test]
fn scales_of_a_png_are_checked() {
    let scene = Scene::from(Heatmap::new(array![[1.0]], ["a"], ["a"]).unwrap());
    for scale in [0.0, -1.0, f32::NAN, 17.0] {
        assert!(matches!(scene.png(&Look::new().scale(scale)), Err(Error::Value { .. })));
    }
    let tall = Scene::from(Lines::new(matrix(90, 80, 3), labels(90), labels(80)).unwrap());
    assert!(matches!(tall.png(&Look::new().scale(16.0)), Err(Error::TooLarge { .. })));
}

#[test]
fn files_are_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::from(Heatmap::new(array![[1.0]], ["a"], ["a"]).unwrap());
    for ending in ["svg", "png", "html", "json", "csv", "SVG"] {
        let path = folder.path().join(format!("picture.{ending}"));
        scene.save(&path, &Look::new()).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > 0);
    }
    for name in ["picture", "picture.gif", ".png"] {
        let error = scene.save(folder.path().join(name), &Look::new()).unwrap_err();
        assert!(matches!(error, Error::Format { .. }) && error.to_string().contains(".svg, .png"), "{error}");
    }
    let absent = folder.path().join("no such folder/picture.svg");
    assert!(matches!(scene.save(absent, &Look::new()), Err(Error::Io { .. })));
    // Nothing temporary is left behind.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 6);
}

#[test]
fn a_page_holds_everything_and_lets_no_label_out() {
    let tokens = Tokens::new(labels(8)).words([0, 0, 1, 1, 1, 2, 3, 4]).special((0..8).map(|i| i == 0));
    let group = Group::new(Kind::Attention, tokens.clone(), tokens)
        .unwrap()
        .layer(Layer::weights(vec![matrix(8, 8, 3); 2]).and_then(|layer| layer.norms(matrix(2, 8, 2))).unwrap())
        .unwrap();
    let html = Page::new(vec![group]).title("</title><script>alert(1)</script>{{DATA}}").html().unwrap();
    assert!(!html.contains("<script>alert") && !html.contains("</script><b>"));
    for id in ["w-0-0", "norm-0-0", "small-0-weights", "small-0-norms", "wasm", "worker", "messages", "data"] {
        assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
    }
    // Nothing is fetched: no address but those of the two namespaces.
    for (at, _) in html.match_indices("://") {
        assert!(
            html[..at].ends_with("http") && html[at..].starts_with("://www.w3.org/"),
            "{}",
            &html[at - 20..at + 40]
        );
    }
}

/// A picture of heads is the same from whole matrices and from pixels of them.
#[test]
fn a_grid_of_pooled_panels_is_the_same_picture() {
    for (heads, rows, cols) in [(2, 300, 300), (9, 500, 200), (12, 7, 450), (12, 20, 20)] {
        // Of finite values: an infinite one hides the largest of its block, which the colours are scaled by.
        let whole: Vec<Array2<f32>> = (0..heads).map(|head| matrix(rows, cols, 3) / (1 + head) as f32).collect();
        let pooled = |columns: usize| -> Vec<Array2<f32>> {
            let (height, width) = Grid::pixels(columns, (rows, cols));
            assert!(height <= rows && width <= cols);
            whole.iter().map(|values| foveal_view::pool(values.view(), height, width)).collect()
        };
        let svg = |grid: Grid| Scene::from(grid).svg(&Look::new()).unwrap();
        let small = Grid::heads(pooled(Grid::columns(heads))).unwrap().pooled_from((rows, cols));
        assert_eq!(svg(small), svg(Grid::heads(whole.clone()).unwrap()), "{heads} heads of {rows} × {cols}");
        let small = Grid::layers(vec![pooled(heads)]).unwrap().pooled_from((rows, cols));
        assert_eq!(svg(small), svg(Grid::layers(vec![whole.clone()]).unwrap()), "{heads} heads of {rows} × {cols}");
    }
}

#[test]
fn curves_that_lie_on_one_another_are_all_seen() {
    let points = || (0..20).map(|x| (f64::from(x), 1.0 + f64::from(x)));
    let chart = Chart::new("x", "y").series("first", points()).series("second", points()).series("third", points());
    let text = Scene::from(chart).terminal(&Terminal::new(80).depth(Depth::Plain)).unwrap();
    let (picture, _) = text.split_once("└").expect("an axis");
    for mark in ['*', 'o', '+'] {
        assert!(picture.contains(mark), "{mark} is hidden:\n{text}");
    }
}

#[test]
fn maps_with_colours_of_their_own_tell_their_largest_values() {
    let map = |most: f32| Array2::from_shape_fn((2, 2), |(i, j)| most * (i + j) as f32 / 2.0);
    let patches = Patches::grey(&Array2::zeros((4, 4)), map(0.25)).unwrap().and("second", map(0.5)).unwrap();
    let scene = Scene::from(patches.range(Range::Own));
    let picture = scene.svg(&Look::new()).unwrap();
    for part in ["0.25", "0.5", "largest"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    assert!(scene.terminal(&Terminal::new(100)).unwrap().contains("largest"));
}

#[test]
fn values_below_zero_have_colours_of_their_own() {
    let heatmap = |value: f32| Scene::from(Heatmap::new(Array2::from_elem((1, 2), value), ["a"], ["b", "c"]).unwrap());
    let picture = heatmap(-0.5).svg(&Look::new()).unwrap();
    assert!(picture.contains("−0.5") || picture.contains("-0.5"), "{picture}");
    assert_ne!(picture, heatmap(0.5).svg(&Look::new()).unwrap());
}

#[test]
fn a_policy_allows_the_page_its_own_program_and_nothing_else() {
    let served = Page::served(Language::Korean).unwrap();
    let policy = served.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    for part in
        ["default-src 'none'", "script-src 'sha256-", "'wasm-unsafe-eval'", "style-src 'sha256-", "worker-src blob:"]
    {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(
        !policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'") && policy.contains("connect-src 'self'")
    );
    assert!(Page::framed(Language::English).unwrap().contains("connect-src 'none'"));
    assert!(served.contains("lang=\"ko\"") && served.contains("data-source=\"server\""));
}
