//! A picture alone as a page, in both themes.

use crate::svg::canvas::escape;
use crate::{Error, Look, Scene, Theme};

const TEMPLATE: &str = include_str!("../../page/still.html");

pub(crate) fn still(scene: &Scene, look: &Look) -> Result<String, Error> {
    let caption = scene.caption();
    let title = if caption.title.is_empty() { caption.language.attention() } else { &caption.title };
    // The pictures last: no mark is looked for in them.
    Ok(TEMPLATE
        .replace("{{LANGUAGE}}", caption.language.code())
        .replace("{{TITLE}}", &escape(title))
        .replace("{{LIGHT}}", &scene.svg(&look.theme(Theme::Light))?)
        .replace("{{DARK}}", &scene.svg(&look.theme(Theme::Dark))?))
}
