//! The page's program, as it is in the folder `page`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::join::join;
use crate::colour::categorical;
use crate::{Palette, Theme};

pub(super) const SHELL: &str = include_str!("../../page/page.html");
pub(super) const STYLE: &str = include_str!("../../page/page.css");
/// The engine as WebAssembly; `make wasm` makes it.
pub(super) const ENGINE: &[u8] = include_bytes!("../../page/engine.wasm");

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../page/", $name)))),*]
    };
}

const MODULES: &[(&str, &str)] = &modules![
    "app.js",
    "axis.js",
    "cell.js",
    "controls.js",
    "crew.js",
    "dom.js",
    "engine.js",
    "events.js",
    "explain.js",
    "head_scores.js",
    "lesson.js",
    "lesson_drag.js",
    "lesson_draw.js",
    "lesson_exercises.js",
    "lesson_heads.js",
    "lesson_mask.js",
    "lesson_positions.js",
    "lesson_scale.js",
    "lesson_weights.js",
    "lines.js",
    "live.js",
    "look.js",
    "main.js",
    "map.js",
    "matrix.js",
    "messages.js",
    "minimap.js",
    "neurons.js",
    "overview.js",
    "painter.js",
    "patches.js",
    "reading.js",
    "save.js",
    "source.js",
    "source_file.js",
    "source_notebook.js",
    "source_server.js",
    "state.js",
    "strip.js",
    "table.js",
    "tiles.js",
    "tools.js",
    "windows.js",
    "worker.js",
];

/// The script of the page.
pub(super) fn page_script() -> Result<String, String> {
    script("main.js")
}

/// The script of its workers.
pub(super) fn worker_script() -> Result<String, String> {
    script("worker.js")
}

/// The script of the parts of the lessons that one can try. It brings along what the page has in its own document: the colours
/// and the engine.
pub(super) fn lesson_script() -> Result<String, String> {
    let part = |id: &str, text: &str| {
        let (id, text) = (serde_json::json!(id), serde_json::json!(text));
        format!(
            "document.head.append(Object.assign(document.createElement(\"script\"), {{ type: \"text/plain\", id: {id}, textContent: {text} }}));\n"
        )
    };
    Ok(part("palettes", &palettes()) + &part("wasm", &STANDARD.encode(ENGINE)) + &script("lesson.js")?)
}

fn script(main: &str) -> Result<String, String> {
    // Within a function: its names are nobody else's.
    Ok(format!("(() => {{\n{}}})();\n", join(MODULES, main)?))
}

/// The table of messages, as JSON.
pub(super) fn messages() -> &'static str {
    crate::language::MESSAGES
}

/// 256 colours for values in each theme, as six hexadecimal digits each, and those for heads.
pub(super) fn palettes() -> String {
    let theme = |theme: Theme| {
        let values: String =
            (0..256).map(|i| Palette::Paper.colour(theme, f64::from(i) / 255.0).hex().split_off(1)).collect();
        let difference: String =
            (0..256).map(|i| crate::colour::diverging(theme, f64::from(i) / 127.5 - 1.0).hex().split_off(1)).collect();
        let heads: Vec<String> = (0..7).map(|i| categorical(theme, i).hex()).collect();
        serde_json::json!({ "values": values, "difference": difference, "heads": heads })
    };
    serde_json::json!({ "light": theme(Theme::Light), "dark": theme(Theme::Dark) }).to_string()
}
