//! Lines of coloured text, and the escape codes that a terminal takes for them.

use std::fmt::Write;

use super::{Depth, Terminal};
use crate::colour::Rgb;
use crate::label::{clip, columns, harmless};
use crate::scale::Scale;
use crate::scene::Caption;

/// The colours of a piece of text; `None` is the terminal's own.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Ink {
    pub fore: Option<Rgb>,
    pub back: Option<Rgb>,
    pub bold: bool,
}

impl Ink {
    pub fn fore(colour: Rgb) -> Self {
        Ink { fore: Some(colour), ..Ink::default() }
    }

    /// Readable text on this colour.
    pub fn on(colour: Rgb) -> Self {
        Ink { fore: Some(colour.ink()), back: Some(colour), bold: false }
    }

    pub fn bold() -> Self {
        Ink { bold: true, ..Ink::default() }
    }
}

/// One line.
#[derive(Clone, Default)]
pub(super) struct Line {
    spans: Vec<(String, Ink)>,
    width: usize,
}

impl Line {
    pub fn push(&mut self, text: &str, ink: Ink) {
        // No label may steer the terminal.
        let text: &str = &text.chars().map(harmless).collect::<String>();
        self.width += columns(text);
        match self.spans.last_mut() {
            Some((last, same)) if *same == ink => last.push_str(text),
            _ => self.spans.push((text.to_string(), ink)),
        }
    }

    pub fn plain(&mut self, text: &str) {
        self.push(text, Ink::default());
    }

    pub fn pad_to(&mut self, width: usize) {
        self.plain(&" ".repeat(width.saturating_sub(self.width)));
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// Without spaces at its end that cannot be seen.
    fn trim_end(&mut self) {
        while let Some((text, ink)) = self.spans.last_mut() {
            let end = text.trim_end_matches(' ').len();
            if ink.back.is_some() || end == text.len() {
                return;
            }
            self.width -= text.len() - end;
            text.truncate(end);
            if end > 0 {
                return;
            }
            self.spans.pop();
        }
    }

    pub fn append(&mut self, other: &Line) {
        other.spans.iter().for_each(|(text, ink)| self.push(text, *ink));
    }
}

/// The lines of a picture.
pub(super) struct Page {
    pub terminal: Terminal,
    lines: Vec<Line>,
}

impl Page {
    pub fn new(terminal: Terminal) -> Self {
        Page { terminal, lines: Vec::new() }
    }

    pub fn muted(&self) -> Ink {
        Ink::fore(self.terminal.theme.muted())
    }

    pub fn is_plain(&self) -> bool {
        self.terminal.depth == Depth::Plain
    }

    pub fn line(&mut self, mut line: Line) {
        line.trim_end();
        self.lines.push(line);
    }

    pub fn text(&mut self, text: &str, ink: Ink) {
        let mut line = Line::default();
        line.push(&clip(text, self.terminal.width), ink);
        self.lines.push(line);
    }

    pub fn blank(&mut self) {
        self.lines.push(Line::default());
    }

    pub fn caption(&mut self, caption: &Caption) {
        if !caption.title.is_empty() {
            self.text(&crate::label::visible(&caption.title), Ink::bold());
        }
        if !caption.note.is_empty() {
            self.text(&crate::label::visible(&caption.note), self.muted());
        }
        if !self.lines.is_empty() {
            self.blank();
        }
    }

    /// The colours from the least to the largest value, in one line.
    pub fn colour_bar(&mut self, scale: &Scale, name: &str) {
        let (lo, hi) = (crate::scale::number(scale.lo), crate::scale::number(scale.hi));
        let mut line = Line::default();
        line.push(&format!("{} {lo} ", clip(name, self.terminal.width / 3)), self.muted());
        let length = 24.min(self.terminal.width.saturating_sub(line.width() + columns(&hi) + 1));
        for i in 0..length {
            let t = (i as f64 + 0.5) / length as f64;
            match self.is_plain() {
                true => line.plain(&ramp(t).to_string()),
                false => line.push(" ", Ink { back: Some(scale.colour_at(t)), ..Ink::default() }),
            }
        }
        line.push(&format!(" {hi}"), self.muted());
        self.lines.push(line);
    }

    pub fn finish(self) -> String {
        let mut out = String::new();
        for line in &self.lines {
            encode(line, self.terminal.depth, &mut out);
        }
        out
    }
}

/// A character as dark as the fraction `t` of the range.
pub(super) fn ramp(t: f64) -> char {
    const RAMP: &[u8; 10] = b" .:-=+*#%@";
    // What is next to nothing stays blank; anything more is seen.
    if t < 0.02 { ' ' } else { RAMP[((t * 9.0).ceil() as usize).clamp(1, 9)] as char }
}

fn encode(line: &Line, depth: Depth, out: &mut String) {
    if depth == Depth::Plain {
        line.spans.iter().for_each(|(text, _)| out.push_str(text));
        let end = out.trim_end_matches(' ').len();
        out.truncate(end);
        out.push('\n');
        return;
    }
    let mut current = Ink::default();
    for (text, ink) in &line.spans {
        if *ink != current {
            let mut codes = vec!["0".to_string()];
            if ink.bold {
                codes.push("1".into());
            }
            codes.extend(ink.fore.map(|c| code(38, c, depth)));
            codes.extend(ink.back.map(|c| code(48, c, depth)));
            let _ = write!(out, "\x1b[{}m", codes.join(";"));
            current = *ink;
        }
        out.push_str(text);
    }
    if current != Ink::default() {
        out.push_str("\x1b[0m");
    }
    out.push('\n');
}

fn code(kind: u8, colour: Rgb, depth: Depth) -> String {
    match depth {
        Depth::Ansi256 => format!("{kind};5;{}", colour.ansi256()),
        _ => format!("{kind};2;{};{};{}", colour.0, colour.1, colour.2),
    }
}
