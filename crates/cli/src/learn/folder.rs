//! Where a user's data is kept.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::language::Language;

/// The folder for progress and files.
pub fn data(language: Language) -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let beside_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let folder = if cfg!(windows) {
        variable("APPDATA")
    } else if cfg!(target_os = "macos") {
        beside_home("Library/Application Support")
    } else {
        variable("XDG_DATA_HOME").or_else(|| beside_home(".local/share"))
    };
    let folder = folder.with_context(|| {
        language
            .of(
                "there is no home folder to keep progress in; name one with --folder",
                "진도를 저장할 홈 폴더가 없습니다. --folder로 정하십시오",
            )
            .to_owned()
    })?;
    Ok(folder.join("foveal").join("learn"))
}
