//! Files: a whole picture, or no file at all.

use std::io::Write;
use std::path::Path;

use crate::{Error, Look, Page, Scene, page, table};

/// What a file holds, said by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.svg`
    Svg,
    /// `.png`
    Png,
    /// `.html` or `.htm`
    Html,
    /// `.json`: the numbers.
    Json,
    /// `.csv`: the numbers.
    Csv,
}

impl Format {
    /// The format that the name of a file says.
    ///
    /// # Errors
    /// If it says none, or an unknown one.
    pub fn of(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let ending = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        match ending.as_deref() {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            Some("html" | "htm") => Ok(Format::Html),
            Some("json") => Ok(Format::Json),
            Some("csv") => Ok(Format::Csv),
            _ => Err(Error::Format { path: path.into(), known: &["svg", "png", "html", "json", "csv"] }),
        }
    }
}

impl Scene {
    /// The bytes of a file of this format.
    ///
    /// # Errors
    /// As [`svg`](Scene::svg) and [`png`](Scene::png).
    pub fn render(&self, format: Format, look: &Look) -> Result<Vec<u8>, Error> {
        Ok(match format {
            Format::Svg => self.svg(look)?.into_bytes(),
            Format::Png => self.png(look)?,
            Format::Html => self.html(look)?.into_bytes(),
            Format::Json => (self.json() + "\n").into_bytes(),
            Format::Csv => self.csv().into_bytes(),
        })
    }

    /// The picture as one HTML file that fetches nothing: heat maps and lines as a [`Page`] to explore, other scenes
    /// alone, in both themes.
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn html(&self, look: &Look) -> Result<String, Error> {
        page::of_scene(self, look)
    }

    /// The numbers as one JSON object: labels, and matrices as arrays of rows. What is no finite number is `null`.
    pub fn json(&self) -> String {
        table::json(self).to_string()
    }

    /// The numbers as CSV. A heat map keeps its form; what has several matrices or curves is a list, one number a line.
    pub fn csv(&self) -> String {
        table::csv(self)
    }

    /// Writes the picture, in the format that the name of the file says: all of it, or nothing.
    ///
    /// ```no_run
    /// # use foveal_view::{Heatmap, Look, Scene};
    /// # let scene = Scene::from(Heatmap::new(ndarray::array![[1.0]], ["a"], ["a"])?);
    /// scene.save("attention.png", &Look::new())?;
    /// # Ok::<(), foveal_view::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the name says no known format, the file cannot be written, or as [`render`](Scene::render).
    pub fn save(&self, path: impl AsRef<Path>, look: &Look) -> Result<(), Error> {
        let format = Format::of(&path)?;
        write(path, &self.render(format, look)?)
    }
}

impl Page {
    /// Writes the page, all of it or nothing.
    ///
    /// # Errors
    /// If the name does not end in `.html`, the file cannot be written, or as [`html`](Page::html).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        match Format::of(&path) {
            Ok(Format::Html) => write(path, self.html()?.as_bytes()),
            _ => Err(Error::Format { path: path.as_ref().into(), known: &["html"] }),
        }
    }
}

/// Writes a file whole: into a temporary file of the same folder, which then takes the name. Whoever reads finds the old
/// file or the new one, never a part.
///
/// # Errors
/// If the folder is absent or cannot be written to.
pub fn write(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), Error> {
    let path = path.as_ref();
    let failed = |source| Error::Io { path: path.into(), source };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // A temporary file is for its owner alone; a picture is as readable as any other file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.prefix(".foveal-").tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}
