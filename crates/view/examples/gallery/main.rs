//! Draws every scene on every surface into a folder:
//! `cargo run -p foveal-view --example gallery -- out/gallery`, or, with `pages` after it, only the pages to explore.

mod exact;
mod pages;
mod sample;
mod scenes;

use std::path::Path;

use foveal_view::{Depth, Format, Language, Look, Page, Scene, Terminal, Theme};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

fn main() -> Result {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "out/gallery".into());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, page) in pages::pages()? {
        page.save(folder.join(name).with_extension("html"))?;
    }
    for (name, page, cells) in exact::pages()? {
        page.save(folder.join(name).with_extension("html"))?;
        foveal_view::write(folder.join(name).with_extension("json"), cells.to_string().as_bytes())?;
    }
    foveal_view::write(folder.join("page-served.html"), Page::served(Language::English)?.as_bytes())?;
    foveal_view::write(folder.join("page-framed.html"), Page::framed(Language::English)?.as_bytes())?;
    if std::env::args().nth(2).as_deref() == Some("pages") {
        return Ok(());
    }
    for (language, code) in [(Language::English, "en"), (Language::Korean, "ko")] {
        for count in [3, 30, 300] {
            for (name, scene) in scenes::scenes(language, count)? {
                save(&scene, folder, &format!("{name}-{code}-{count}"))?;
            }
        }
    }
    for (name, scene) in scenes::charts()? {
        save(&scene, folder, name)?;
    }
    Ok(())
}

fn save(scene: &Scene, folder: &Path, name: &str) -> Result {
    for (depth, ending) in [(Depth::True, "ansi"), (Depth::Ansi256, "256"), (Depth::Plain, "txt")] {
        let text = scene.terminal(&Terminal::new(100).depth(depth))?;
        foveal_view::write(folder.join(format!("{name}.{ending}")), text.as_bytes())?;
    }
    for (theme, suffix) in [(Theme::Light, ""), (Theme::Dark, "-dark")] {
        let look = Look::new().theme(theme);
        scene.save(folder.join(format!("{name}{suffix}.svg")), &look)?;
        scene.save(folder.join(format!("{name}{suffix}.png")), &look)?;
    }
    foveal_view::write(folder.join(format!("{name}.html")), &scene.render(Format::Html, &Look::new())?)?;
    Ok(())
}
