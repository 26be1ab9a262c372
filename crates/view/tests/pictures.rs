//! Pictures against committed ones. `UPDATE_PICTURES=1 cargo test -p foveal-view --test pictures` draws them anew; look
//! at what changed before committing it.

use std::fs;
use std::path::{Path, PathBuf};

use foveal_view::{
    Bars, Chart, Compare, Depth, Grid, Heatmap, Language, Lines, Look, Map, Palette, Patches, Range, Scene, Steps,
    Terminal, Theme,
};
use ndarray::{Array2, array};

fn scenes() -> Vec<(&'static str, Scene)> {
    let english = ["A", " cat", " sat", ".\n"];
    let korean = ["나는", " 책을", " 읽었다", "."];
    let causal = array![
        [1.0, 0.0, 0.0, 0.0],
        [0.231_48, 0.768_52, 0.0, 0.0],
        [0.117_84, 0.354_02, 0.528_14, 0.0],
        [0.111_72, 0.203_57, 0.274_78, 0.409_93]
    ];
    let even = Array2::from_elem((4, 4), 0.25);
    let mut broken = causal.clone();
    broken[[2, 1]] = f32::NAN;
    let wide = Array2::from_shape_fn((4, 6), |(i, j)| if i == j || (i == 3 && j > 3) { 0.6 } else { 0.08 });
    let ramp = Array2::from_shape_fn((24, 24), |(i, j)| if j > i { 0.0 } else { 0.5f32.powi((i - j) as i32 / 2) });
    let digit =
        Array2::from_shape_fn((8, 8), |(i, j)| if (2..6).contains(&j) && (1..7).contains(&i) { 0.9 } else { 0.1 });
    let patches = Array2::from_shape_fn((4, 4), |(i, j)| (i * 4 + j) as f32 / 120.0);
    vec![
        ("heatmap", Heatmap::new(causal.clone(), english, english).unwrap().title("Causal").note("layer 0").into()),
        (
            "heatmap-korean",
            Heatmap::new(causal.clone(), korean, korean).unwrap().title("어텐션").language(Language::Korean).into(),
        ),
        ("heatmap-nan", Heatmap::new(broken, english, english).unwrap().axes("from", "to").into()),
        (
            "alignment",
            Heatmap::alignment(wide, korean, ["I", "have", "read", "a", "<book>", "&c."])
                .unwrap()
                .title("Cross")
                .into(),
        ),
        ("bars", Bars::of_row(&causal, 3, english).unwrap().token(3).title("What “.” attends to").into()),
        ("heads", Grid::heads(vec![causal.clone(), even.clone(), ramp.clone()]).unwrap().range(Range::Own).into()),
        (
            "layers",
            Grid::layers(vec![vec![causal.clone(), even.clone()], vec![even.clone(), causal.clone()]])
                .unwrap()
                .title("All heads")
                .into(),
        ),
        ("lines", Lines::new(causal.clone(), english, english).unwrap().into()),
        (
            "lines-heads",
            Lines::heads(vec![("H0".into(), causal.clone()), ("H1".into(), even.clone())], korean, korean)
                .unwrap()
                .token(2)
                .language(Language::Korean)
                .into(),
        ),
        ("map", Map::new(ramp.clone(), 0..4096, 0..4096).unwrap().title("Long").into()),
        ("map-linear", Map::new(ramp, 1024..2048, 0..2048).unwrap().steps(Steps::Linear).into()),
        ("patches", Patches::grey(&digit, patches).unwrap().query(1, 1).title("Image").into()),
        (
            "chart",
            Chart::new("tokens", "seconds")
                .series("naive", [(128.0, 0.002), (1024.0, 0.12), (8192.0, 8.0)])
                .series("foveal", [(128.0, 0.0004), (1024.0, 0.02), (8192.0, 1.3)])
                .steps(Steps::Log, Steps::Log)
                .title("Scaling")
                .into(),
        ),
        ("compare", Compare::new(("before", even), ("after", causal), english, english).unwrap().into()),
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures")
}

fn updating() -> bool {
    std::env::var_os("UPDATE_PICTURES").is_some()
}

/// The text is the committed one, or becomes it.
fn assert_same(name: &str, text: &str) {
    let path = folder().join(name);
    if updating() {
        fs::write(&path, text).unwrap();
    }
    let expected =
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}; set UPDATE_PICTURES=1", path.display()));
    if let Some((k, (got, wanted))) = text.lines().zip(expected.lines()).enumerate().find(|(_, (a, b))| a != b) {
        panic!("{name} differs in line {}:\n  got      {got}\n  expected {wanted}", k + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{name} has another number of lines");
}

#[test]
fn svg_is_the_committed_one() {
    for (name, scene) in scenes() {
        let svg = scene.svg(&Look::new()).unwrap();
        assert_eq!(svg, scene.svg(&Look::new()).unwrap(), "{name} differs from run to run");
        assert_same(&format!("{name}.svg"), &svg);
    }
    let (_, scene) = scenes().swap_remove(0);
    assert_same("heatmap-dark.svg", &scene.svg(&Look::new().theme(Theme::Dark)).unwrap());
    assert_same("heatmap-viridis.svg", &scene.svg(&Look::new().palette(Palette::Viridis)).unwrap());
}

#[test]
fn terminal_is_the_committed_one() {
    for (name, scene) in scenes() {
        let draw = |depth| scene.terminal(&Terminal::new(60).depth(depth)).unwrap();
        assert_same(&format!("{name}.txt"), &draw(Depth::Plain));
        // Escape codes as text, so that a difference can be read.
        assert_same(&format!("{name}.ansi"), &draw(Depth::True).replace('\x1b', "␛"));
    }
    let (_, scene) = scenes().swap_remove(0);
    let text = scene.terminal(&Terminal::new(60).depth(Depth::Ansi256).theme(Theme::Light)).unwrap();
    assert_same("heatmap-256-light.ansi", &text.replace('\x1b', "␛"));
}

/// Few pixels may differ, and those little: a newer rasteriser rounds edges otherwise.
#[test]
fn png_is_the_committed_one() {
    for (name, scene) in scenes() {
        let look = Look::new().scale(1.0).theme(if name == "map" { Theme::Dark } else { Theme::Light });
        let drawn = scene.png(&look).unwrap();
        let path = folder().join(format!("{name}.png"));
        if updating() {
            fs::write(&path, &drawn).unwrap();
        }
        let (got, expected) = (decode(&drawn), decode(&fs::read(&path).unwrap()));
        assert_eq!(got.0, expected.0, "{name} has another size");
        let off = got.1.iter().zip(&expected.1).filter(|(a, b)| a.abs_diff(**b) > 24).count();
        assert!(off * 500 < got.1.len(), "{name}: {off} of {} values differ", got.1.len());
    }
}

fn decode(bytes: &[u8]) -> ((u32, u32), Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    ((info.width, info.height), pixels)
}
