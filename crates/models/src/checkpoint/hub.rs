//! From a model's name to files on this machine: a path, the local Hugging Face cache, or a download into it.
//!
//! The cache is the one that Python's `huggingface_hub` keeps, so what either has fetched the other finds:
//! `models--OWNER--NAME/refs/main` holds the name of a commit, `snapshots/COMMIT/` its files.

use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, Repo};

use super::gguf::{is_later_part, siblings};
use super::safetensors::shards;
use crate::{Error, Result};

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// What is fetched beside the weights where a model has it.
const EXTRAS: [&str; 10] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "preprocessor_config.json",
    "generation_config.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "chat_template.jinja",
];

/// Where models are looked for.
///
/// ```no_run
/// use foveal_models::Checkpoint;
/// use foveal_models::checkpoint::Hub;
///
/// let checkpoint = Checkpoint::open(Hub::from_env().resolve("sentence-transformers/all-MiniLM-L6-v2")?)?;
/// # Ok::<(), foveal_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Hub {
    cache: Option<PathBuf>,
    endpoint: Option<String>,
    token: Option<String>,
    access: Access,
    progress: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Online,
    Offline,
}

/// [`Hub::resolve`] with the settings of the environment.
///
/// # Errors
/// As [`Hub::resolve`].
pub fn resolve(name: &str) -> Result<PathBuf> {
    Hub::from_env().resolve(name)
}

impl Hub {
    /// With a cache folder of its own, the public hub, and no progress shown.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Hub { cache: Some(cache.into()), endpoint: None, token: None, access: Access::Online, progress: false }
    }

    /// With the settings that `huggingface_hub` takes from the environment: `HF_HUB_CACHE`, `HF_HOME` and
    /// `XDG_CACHE_HOME` for the cache, `HF_ENDPOINT` for another server, `HF_HUB_OFFLINE=1` for none, `HF_TOKEN` for
    /// models that ask for one.
    pub fn from_env() -> Self {
        Hub::from_vars(|name| std::env::var(name).ok().filter(|value| !value.is_empty()), std::env::home_dir())
    }

    fn from_vars(var: impl Fn(&str) -> Option<String>, home: Option<PathBuf>) -> Self {
        let caches = || var("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cache")));
        let hugging_face = || var("HF_HOME").map(PathBuf::from).or_else(|| Some(caches()?.join("huggingface")));
        let offline = var("HF_HUB_OFFLINE")
            .is_some_and(|value| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str()));
        Hub {
            cache: var("HF_HUB_CACHE").map(PathBuf::from).or_else(|| Some(hugging_face()?.join("hub"))),
            endpoint: var("HF_ENDPOINT"),
            token: var("HF_TOKEN"),
            access: if offline { Access::Offline } else { Access::Online },
            progress: false,
        }
    }

    /// Asks this server instead of the public one.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Asks no server at all: what is not in the cache is an error.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.access = Access::Offline;
        self
    }

    /// Shows how a download gets on, on standard error.
    #[must_use]
    pub fn show_progress(mut self) -> Self {
        self.progress = true;
        self
    }

    /// The names of the models that are whole in the cache, in order.
    pub fn cached(&self) -> Vec<String> {
        let Some(cache) = &self.cache else { return Vec::new() };
        let folders = std::fs::read_dir(cache).into_iter().flatten().flatten();
        let names = folders.filter_map(|folder| {
            let name = folder.file_name().to_str()?.strip_prefix("models--")?.replace("--", "/");
            cached(cache, &name, None).is_some().then_some(name)
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The path that [`Checkpoint::open`](super::Checkpoint::open) takes, for a path (which wins if it is there), a
    /// model's name on the hub (`gpt2`, `owner/name`), or one file of it (`owner/name/file.gguf`). What is in the cache
    /// is taken from there without asking the server.
    ///
    /// # Errors
    /// If it is neither a path nor a name, if the server cannot be reached or does not have it, or if it would have to
    /// be downloaded and the hub is [`offline`](Self::offline).
    pub fn resolve(&self, name: &str) -> Result<PathBuf> {
        if !name.is_empty() && Path::new(name).exists() {
            return Ok(PathBuf::from(name));
        }
        let fail = |problem: String| Error::Download { name: name.to_owned(), problem };
        let (id, file) = parse(name).ok_or_else(|| {
            fail("a name on the hub is NAME, OWNER/NAME or OWNER/NAME/FILE.gguf; check the spelling of the path".into())
        })?;
        let cache = self.cache.clone().ok_or_else(|| fail("there is no cache folder; set HF_HOME to one".into()))?;
        if let Some(found) = cached(&cache, id, file) {
            return Ok(found);
        }
        if self.access == Access::Offline {
            return Err(fail(format!(
                "HF_HUB_OFFLINE is set, and {} does not have it whole; unset it to download",
                cache.display()
            )));
        }
        self.download(cache, id, file).map_err(fail)
    }

    fn download(&self, cache: PathBuf, id: &str, file: Option<&str>) -> Result<PathBuf, String> {
        let mut builder = ApiBuilder::from_cache(Cache::new(cache)).with_progress(self.progress);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
        }
        if self.token.is_some() {
            builder = builder.with_token(self.token.clone());
        }
        let api = builder.build().map_err(|error| explain(&error))?;
        let repo = api.repo(Repo::model(id.to_owned()));
        if let Some(file) = file {
            return download_gguf(&repo, file).map_err(|error| explain(&error));
        }
        let info = repo.info().map_err(|error| explain(&error))?;
        let files: Vec<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
        download_all(&repo, &files)
    }
}

/// A `.gguf` file, and the other parts of its model if it is one of several.
fn download_gguf(repo: &ApiRepo, file: &str) -> Result<PathBuf, ApiError> {
    for part in siblings(Path::new(file)) {
        repo.get(&part.to_string_lossy())?;
    }
    repo.get(file)
}

/// The weights come last: where they are in the cache, everything is.
fn download_all(repo: &ApiRepo, files: &[&str]) -> Result<PathBuf, String> {
    let get = |file: &str| repo.get(file).map_err(|error| format!("{file}: {}", explain(&error)));
    let weights = [WEIGHTS, INDEX].into_iter().find(|file| files.contains(file));
    let (Some(weights), true) = (weights, files.contains(&CONFIG)) else {
        let whole = |file: &&&str| file.ends_with(".gguf") && is_inside(file) && !is_later_part(Path::new(file));
        let ggufs: Vec<&&str> = files.iter().filter(whole).collect();
        return match &ggufs[..] {
            [only] => download_gguf(repo, only).map_err(|error| format!("{only}: {}", explain(&error))),
            [] => Err(format!("the model has neither {CONFIG} with {WEIGHTS} nor a .gguf file")),
            several => {
                Err(format!("the model has several files; name one of them: OWNER/NAME/FILE, FILE of {several:?}"))
            }
        };
    };
    let config = get(CONFIG)?;
    for file in EXTRAS.into_iter().filter(|file| files.contains(file)) {
        get(file)?;
    }
    let weights = get(weights)?;
    if weights.ends_with(INDEX) {
        for (shard, _) in shards(&weights).map_err(|error| error.to_string())? {
            let name = shard.file_name().and_then(|name| name.to_str()).ok_or("a shard without a name")?;
            get(name)?;
        }
    }
    Ok(config.parent().map(Path::to_path_buf).unwrap_or_default())
}

fn explain(error: &ApiError) -> String {
    let text = error.to_string();
    if text.contains("404") {
        format!("the server has no such model or file ({text}); check the name")
    } else if text.contains("401") || text.contains("403") {
        format!("the server wants a token for it ({text}); set HF_TOKEN")
    } else {
        format!("{text}; check the connection, or download it elsewhere and give its path")
    }
}

/// `NAME`, `OWNER/NAME`, or `OWNER/NAME/…/FILE.gguf`, as the id and the file.
fn parse(name: &str) -> Option<(&str, Option<&str>)> {
    let good = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.contains("..")
            && part.len() <= 96
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let slashes: Vec<usize> = name.match_indices('/').map(|(at, _)| at).collect();
    let (id, file) = match slashes[..] {
        [] | [_] => (name, None),
        [_, second, ..] => (&name[..second], Some(&name[second + 1..])),
    };
    let file_good = file.is_none_or(|file| file.ends_with(".gguf") && file.split('/').all(good));
    (id.split('/').all(good) && file_good).then_some((id, file))
}

/// No way out of the model's folder.
fn is_inside(file: &str) -> bool {
    !file.contains(['\\', ':', '\0']) && file.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Where a model is in the cache, if all of it is there.
fn cached(cache: &Path, id: &str, file: Option<&str>) -> Option<PathBuf> {
    let model = cache.join(format!("models--{}", id.replace('/', "--")));
    let commit = std::fs::read_to_string(model.join("refs").join("main")).ok()?;
    let commit = commit.trim();
    if commit.is_empty() || !commit.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let snapshot = model.join("snapshots").join(commit);
    if let Some(file) = file {
        return Some(snapshot.join(file)).filter(|path| siblings(path).iter().all(|part| part.exists()));
    }
    if snapshot.join(CONFIG).exists() {
        let sharded = || shards(&snapshot.join(INDEX)).is_ok_and(|shards| shards.keys().all(|path| path.exists()));
        return Some(snapshot.clone()).filter(|_| snapshot.join(WEIGHTS).exists() || sharded());
    }
    match &super::ggufs(&snapshot).ok()?[..] {
        [only] => Some(only.clone()).filter(|path| siblings(path).iter().all(|part| part.exists())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_and_nothing_else() {
        assert_eq!(parse("gpt2"), Some(("gpt2", None)));
        assert_eq!(parse("owner/name-1.5_x"), Some(("owner/name-1.5_x", None)));
        assert_eq!(parse("owner/name/a/b.gguf"), Some(("owner/name", Some("a/b.gguf"))));
        for bad in
            ["", "/", "a/", "/a", "../a", "a/..", "a/../b", "a//b", "./x", "~/x", "a b", "a/b/c", "a/b/../c.gguf", "한"]
        {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn settings_from_the_environment() {
        let hub = |vars: &[(&str, &str)]| {
            let find = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            Hub::from_vars(find, Some("/home/me".into()))
        };
        assert_eq!(hub(&[]).cache.unwrap(), Path::new("/home/me/.cache/huggingface/hub"));
        assert_eq!(hub(&[("HF_HOME", "/hf")]).cache.unwrap(), Path::new("/hf/hub"));
        assert_eq!(hub(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/c")]).cache.unwrap(), Path::new("/c"));
        assert_eq!(hub(&[("XDG_CACHE_HOME", "/x")]).cache.unwrap(), Path::new("/x/huggingface/hub"));
        assert_eq!(hub(&[]).access, Access::Online);
        assert_eq!(hub(&[("HF_HUB_OFFLINE", "true")]).access, Access::Offline);
        assert_eq!(hub(&[("HF_HUB_OFFLINE", "0")]).access, Access::Online);
        assert_eq!(hub(&[("HF_ENDPOINT", "http://x")]).endpoint.unwrap(), "http://x");
    }
}
