//! Where results go: a terminal, a pipe, or a file.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use foveal_view::{Depth, Format, Look, Scene, Terminal, Theme, write};

use crate::arguments::Common;
use crate::language::Language;
use crate::report::Report;
use crate::table::Table;

/// Columns where there is no terminal to ask.
const WIDTH: usize = 100;

/// What is shown, and where.
pub struct Output {
    pub language: Language,
    width: usize,
    terminal: Terminal,
    look: Look,
    json: bool,
    dark: bool,
    file: Option<PathBuf>,
}

impl Output {
    pub fn new(common: &Common) -> Self {
        let size = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = common.width.map(usize::from).or(size).unwrap_or(WIDTH);
        let theme = if common.light { Theme::Light } else { Theme::Dark };
        Output {
            language: Language::choose(common.lang),
            width,
            terminal: Terminal::new(width).depth(depth()).theme(theme),
            look: Look::new().theme(if common.dark { Theme::Dark } else { Theme::Light }),
            json: common.json,
            dark: common.dark,
            file: common.output.clone(),
        }
    }

    /// Whether figures are asked for instead of text.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether files are drawn on a dark ground.
    pub fn is_dark(&self) -> bool {
        self.dark
    }

    /// Columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The file that the result goes to.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Refuses a file that could never be written, before any work is done for it.
    pub fn check_file(&self) -> Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        Format::of(path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            bail!("{} is not a folder; make it first, or name another file", folder.display());
        }
        Ok(())
    }

    /// The format of the file.
    pub fn format(&self) -> Option<Format> {
        self.file.as_ref().and_then(|path| Format::of(path).ok())
    }

    /// Whether the figures are asked for, on standard output or in the file.
    pub fn wants_figures(&self) -> bool {
        self.json || self.format() == Some(Format::Json)
    }

    /// Whether a picture is asked for, in the terminal or in the file; numbers in CSV are those of the picture.
    pub fn wants_scene(&self) -> bool {
        match self.format() {
            Some(format) => !matches!(format, Format::Html | Format::Json),
            None => !self.json,
        }
    }

    /// Shows a report: figures alone where they were asked for; else text, and the picture in the terminal or in the file.
    pub fn show(&self, report: &Report) -> Result<()> {
        let saved = self.file.as_ref().map_or(Ok(vec![]), |path| self.save(report, path))?;
        if self.json {
            return self.line(&serde_json::to_string_pretty(&report.figures)?);
        }
        let mut text = String::new();
        for line in std::iter::once(&report.title).chain(&report.notes).filter(|line| !line.is_empty()) {
            text.push_str(line);
            text.push('\n');
        }
        for table in &report.tables {
            text.push('\n');
            push_table(&mut text, table, self.width);
        }
        if self.file.is_none() {
            for scene in &report.scenes {
                text.push('\n');
                text.push_str(&self.draw(scene)?);
            }
        }
        for (n, path) in saved.iter().enumerate() {
            text.push_str(&format!("{}{}\n", if n == 0 { "\n" } else { "" }, path.display()));
        }
        self.text(&text)
    }

    /// A picture for the terminal.
    pub fn draw(&self, scene: &Scene) -> Result<String> {
        Ok(scene.terminal(&self.terminal)?)
    }

    /// Writes the file. Further pictures go beside it: heads.png, heads-2.png, …; gives back all paths.
    fn save(&self, report: &Report, path: &Path) -> Result<Vec<PathBuf>> {
        match (Format::of(path)?, &report.page) {
            (Format::Html, None) if report.document.is_some() => {
                let document = report.document.as_deref().unwrap_or_default();
                write(path, document.as_bytes())?;
            }
            (Format::Html, Some(page)) => page.save(path)?,
            (Format::Json, _) => {
                let figures = serde_json::to_string_pretty(&report.figures)? + "\n";
                write(path, figures.as_bytes())?;
            }
            _ if report.scenes.is_empty() => bail!("there is no picture to write to {}", path.display()),
            _ => {
                let paths: Vec<PathBuf> = (1..=report.scenes.len()).map(|n| numbered(path, n)).collect();
                for (scene, path) in report.scenes.iter().zip(&paths) {
                    scene.save(path, &self.look)?;
                }
                return Ok(paths);
            }
        }
        Ok(vec![path.to_path_buf()])
    }

    /// Text as it is, at once.
    pub fn text(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// A line of text.
    pub fn line(&self, text: &str) -> Result<()> {
        self.text(&format!("{text}\n"))
    }
}

/// The path of picture n: the first has the name itself.
fn numbered(path: &Path, n: usize) -> PathBuf {
    if n == 1 {
        return path.to_path_buf();
    }
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{}-{n}.{}", part(path.file_stem()), part(path.extension())))
}

fn push_table(text: &mut String, table: &Table, width: usize) {
    for line in table.lines(width) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// What colours there are: none for a pipe, a file or a user who wants none.
fn depth() -> Depth {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let term = std::env::var("TERM").unwrap_or_default();
    if set("NO_COLOR") || !std::io::stdout().is_terminal() || term == "dumb" {
        return Depth::Plain;
    }
    match std::env::var("COLORTERM").as_deref() {
        Ok("truecolor" | "24bit") => Depth::True,
        _ => Depth::Ansi256,
    }
}

/// Whether the error is only that nobody reads any more.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
