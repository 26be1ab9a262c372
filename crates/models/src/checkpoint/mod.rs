//! Checkpoints: a Hugging Face folder or a GGUF file, seen the same way.
//!
//! ```no_run
//! use foveal_models::Checkpoint;
//!
//! let checkpoint = Checkpoint::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
//! let width = checkpoint.config().size("hidden_size")?;
//! let weight = checkpoint.array2("model.layers.0.self_attn.q_proj.weight", [width, width])?;
//! # Ok::<(), foveal_models::Error>(())
//! ```
//!
//! Whatever the file, names, shapes, the order of the numbers and the configuration's keys are Hugging Face's. Files are
//! memory-mapped and checked whole on opening; numbers are converted to f32 only when a tensor is asked for them.

mod architecture;
mod config;
mod dequantise;
mod dtype;
mod file;
pub(crate) mod gguf;
mod hub;
pub(crate) mod json;
mod quantised;
mod safetensors;
mod save;
mod tensor;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, ArrayD, ArrayViewMutD};

pub use self::architecture::Architecture;
pub use self::config::Config;
pub use self::dtype::Dtype;
use self::file::MappedFile;
pub use self::hub::{Hub, resolve};
pub(crate) use self::save::save_tensors;
pub use self::save::{save, save_as, write_whole};
use self::tensor::Order;
pub use self::tensor::Tensor;
use crate::layer::Weight;
use crate::{Error, Result};

/// An open checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    config: Config,
    files: Vec<MappedFile>,
    tensors: BTreeMap<String, Entry>,
    gguf: Option<gguf::Metadata>,
    /// The metadata of a safetensors file: what it says about itself.
    metadata: BTreeMap<String, String>,
}

/// Where a tensor is.
#[derive(Debug)]
struct Entry {
    file: usize,
    range: Range<usize>,
    dtype: Dtype,
    shape: Vec<usize>,
    order: Order,
}

impl Checkpoint {
    /// Opens a folder with `config.json` and `model.safetensors` (or its shards and their index), a `.safetensors` file
    /// with `config.json` beside it, a `.gguf` file, or a folder that holds one.
    ///
    /// # Errors
    /// If a file is absent or breaks its format. The whole of every header has been checked when this returns; nothing
    /// has been allocated that the files do not account for.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let kind = std::fs::metadata(path).map_err(|source| Error::Io { path: path.to_path_buf(), source })?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        if kind.is_dir() {
            Checkpoint::open_folder(path)
        } else if extension == Some("safetensors") {
            let config = Config::read(&path.with_file_name("config.json"))?;
            Checkpoint::from_files(path, config, [(MappedFile::open(path)?, None)])
        } else if extension == Some("gguf") || begins_as_gguf(path) {
            Checkpoint::open_gguf(path)
        } else {
            let missing = "its name ends neither in .gguf nor in .safetensors".into();
            Err(Error::NoCheckpoint { path: path.to_path_buf(), missing })
        }
    }

    fn open_folder(folder: &Path) -> Result<Self> {
        let (config, whole) = (folder.join("config.json"), folder.join("model.safetensors"));
        let index = folder.join("model.safetensors.index.json");
        if !config.exists() {
            let missing = match &ggufs(folder)?[..] {
                [file] => return Checkpoint::open_gguf(file),
                [] => "it has no config.json".into(),
                files => format!("it has no config.json, but {} .gguf files; name one of them", files.len()),
            };
            return Err(Error::NoCheckpoint { path: folder.to_path_buf(), missing });
        }
        let config = Config::read(&config)?;
        if whole.exists() {
            Checkpoint::from_files(folder, config, [(MappedFile::open(&whole)?, None)])
        } else if index.exists() {
            let shards = safetensors::shards(&index)?;
            let open = |(path, names): (PathBuf, _)| Ok((MappedFile::open(&path)?, Some(names)));
            Checkpoint::from_files(folder, config, shards.into_iter().map(open).collect::<Result<Vec<_>>>()?)
        } else {
            let pickled = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
            let missing = match pickled.into_iter().find(|name| folder.join(name).exists()) {
                Some(name) => format!("it has its weights as {name}; save them as safetensors with transformers"),
                None => "it has no model.safetensors".into(),
            };
            Err(Error::NoCheckpoint { path: folder.to_path_buf(), missing })
        }
    }

    /// A checkpoint that is part of the program: the bytes of its `config.json` and `model.safetensors`. `name` is what
    /// errors call it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn embedded(name: &str, config: &[u8], weights: &'static [u8]) -> Result<Self> {
        let config = Config::from_json(name, config)?;
        Checkpoint::from_files(Path::new(name), config, [(MappedFile::embedded(name, weights), None)])
    }

    /// The tensors of one safetensors file that is no model.
    pub(crate) fn of_tensors(path: &Path) -> Result<Self> {
        let config = Config::new(path, serde_json::Map::new());
        Checkpoint::from_files(path, config, [(MappedFile::open(path)?, None)])
    }

    /// Reads the files, each with the tensors that an index says it holds, if there is one.
    fn from_files(
        path: &Path,
        config: Config,
        files: impl IntoIterator<Item = (MappedFile, Option<Vec<String>>)>,
    ) -> Result<Self> {
        let mut checkpoint = Checkpoint {
            path: path.to_path_buf(),
            config,
            files: Vec::new(),
            tensors: BTreeMap::new(),
            gguf: None,
            metadata: BTreeMap::new(),
        };
        for (file, expected) in files {
            let (infos, metadata) = safetensors::read(&file)?;
            checkpoint.metadata.extend(metadata);
            let number = checkpoint.files.len();
            for safetensors::Info { name, shape, dtype, range } in infos {
                let entry = Entry { file: number, range, dtype, shape, order: Order::Same };
                checkpoint.insert(&file, name, entry)?;
            }
            let absent = |name: &&String| checkpoint.tensors.get(*name).is_none_or(|entry| entry.file != number);
            if let Some(name) = expected.iter().flatten().find(absent) {
                return Err(file.format_error(format!("tensor {name}"), "the index says it is here, but it is not"));
            }
            checkpoint.files.push(file);
        }
        Ok(checkpoint)
    }

    fn open_gguf(path: &Path) -> Result<Self> {
        let gguf::Opened { metadata, config, tensors, files } = gguf::open(path)?;
        let mut checkpoint = Checkpoint {
            path: path.to_path_buf(),
            config,
            files: files.clone(),
            tensors: BTreeMap::new(),
            gguf: Some(metadata),
            metadata: BTreeMap::new(),
        };
        for named in tensors {
            let gguf::Info { name, shape, dtype, file, range } = named.info;
            checkpoint.insert(&files[file], name, Entry { file, range, dtype, shape, order: named.order })?;
        }
        Ok(checkpoint)
    }

    fn insert(&mut self, file: &MappedFile, name: String, entry: Entry) -> Result<()> {
        let at = format!("tensor {name}");
        // A dimension of 0 makes any product 0, but an array still refuses the others if they are absurd.
        let others =
            entry.shape.iter().filter(|&&dim| dim != 0).try_fold(1usize, |product, &dim| product.checked_mul(dim));
        if others.is_none_or(|others| others > isize::MAX as usize) {
            return Err(file.format_error(at, format!("its shape is {:?}", entry.shape)));
        }
        match self.tensors.insert(name, entry) {
            None => Ok(()),
            Some(_) => Err(file.format_error(at, "it is there twice")),
        }
    }

    /// Where the checkpoint is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that its files are in; none if they are part of the program.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.files.first().filter(|file| file.is_on_disk()).and_then(|file| file.path().parent())
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What a safetensors file says about itself under a key.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// The kind of model.
    ///
    /// # Errors
    /// If there is no model of that kind; the error lists those there are.
    pub fn architecture(&self) -> Result<Architecture> {
        Architecture::of(&self.config)
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor by its name, if it is there.
    ///
    /// The same tensor goes by several names in the checkpoints of one architecture, and any of them finds it: the body's
    /// names with or without the prefix that they have beside a head (`transformer.`, `bert.`, `model.`, `vit.`), and
    /// `LayerNorm.gamma` and `.beta` of the first BERTs for `LayerNorm.weight` and `.bias`.
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        let prefix = Architecture::of(&self.config).map_or("", Architecture::prefix);
        let other = match name.strip_prefix(prefix) {
            Some(rest) => rest.to_owned(),
            None => format!("{prefix}{name}"),
        };
        let find = |name: &str| {
            self.tensors.get_key_value(name).or_else(|| {
                let (stem, kind) = name.rsplit_once("LayerNorm.")?;
                let old = match kind {
                    "weight" => "gamma",
                    "bias" => "beta",
                    _ => return None,
                };
                self.tensors.get_key_value(&format!("{stem}LayerNorm.{old}"))
            })
        };
        let (name, entry) = find(name).or_else(|| find(&other))?;
        Some(Tensor {
            name,
            shape: &entry.shape,
            dtype: entry.dtype,
            order: entry.order,
            bytes: &self.files[entry.file].bytes()[entry.range.clone()],
        })
    }

    /// A tensor by its name, as [`get`](Self::get) finds it.
    ///
    /// # Errors
    /// If it is not there; the error names the nearest one that is.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        self.get(name).ok_or_else(|| Error::MissingTensor {
            path: self.path.clone(),
            name: name.to_owned(),
            nearest: self.names().max_by_key(|other| alike(name, other)).map(str::to_owned),
        })
    }

    /// The numbers of a tensor that must have the given shape.
    ///
    /// # Errors
    /// If it is not there, has another shape, or holds no floating-point numbers.
    pub fn array(&self, name: &str, shape: &[usize]) -> Result<ArrayD<f32>> {
        self.shaped(name, shape)?.to_f32()
    }

    /// The numbers of a vector that must have the given length.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn array1(&self, name: &str, length: usize) -> Result<Array1<f32>> {
        let array = self.array(name, &[length])?;
        Ok(array.into_dimensionality().expect("its shape was just checked"))
    }

    /// The numbers of a matrix that must have the given shape.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn array2(&self, name: &str, shape: [usize; 2]) -> Result<Array2<f32>> {
        let array = self.array(name, &shape)?;
        Ok(array.into_dimensionality().expect("its shape was just checked"))
    }

    /// Reads the numbers of a tensor into an array, which must have its shape.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn read_into(&self, name: &str, target: ArrayViewMutD<f32>) -> Result<()> {
        let tensor = self.shaped(name, target.shape())?;
        tensor.read_into(target)?;
        self.release(&tensor);
        Ok(())
    }

    /// What was read of a file is not kept beside what was made of it.
    fn release(&self, tensor: &Tensor<'_>) {
        self.files.iter().for_each(|file| file.release(tensor.bytes()));
    }

    /// Reads a matrix, or its transposed, into a weight of that shape, which keeps numbers of 16 bits as they are.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub(crate) fn read_weight(&self, name: &str, transposed: bool, weight: &mut Weight) -> Result<()> {
        let [rows, columns] = weight.shape();
        let tensor = self.shaped(name, &if transposed { [columns, rows] } else { [rows, columns] })?;
        if let Some(stored) = tensor.stored_weight(transposed) {
            *weight = stored;
        } else {
            let values = weight.view_mut().into_dyn();
            tensor.read_into(if transposed { values.reversed_axes() } else { values })?;
        }
        self.release(&tensor);
        Ok(())
    }

    /// A tensor that must have the given shape.
    fn shaped(&self, name: &str, shape: &[usize]) -> Result<Tensor<'_>> {
        let tensor = self.tensor(name)?;
        if tensor.shape() != shape {
            let (name, expected, got) = (tensor.name().to_owned(), shape.to_vec(), tensor.shape().to_vec());
            return Err(Error::Shape { name, expected, got });
        }
        Ok(tensor)
    }

    /// Whether the files hold as many numbers as a model of this configuration has parameters, in types that can be read.
    /// Asked before the model is made, so that a configuration cannot make it larger than its files.
    pub(crate) fn expect_parameters(&self, parameters: u128) -> Result<()> {
        quantised::refuse(&self.config, self.tensors.iter().map(|(name, entry)| (name.as_str(), entry.dtype)))?;
        let held: u128 =
            self.tensors.values().map(|entry| entry.shape.iter().map(|&dim| dim as u128).product::<u128>()).sum();
        if parameters <= held {
            return Ok(());
        }
        let expected = format!("sizes for at most the {held} numbers in the weights");
        Err(self.config.error("the model's configuration", expected, format!("for {parameters} parameters")))
    }

    /// The metadata of a GGUF file.
    pub(crate) fn gguf(&self) -> Option<&gguf::Metadata> {
        self.gguf.as_ref()
    }
}

/// Files in the Hugging Face cache may be links to names without an extension.
fn begins_as_gguf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    read.is_ok() && &magic == b"GGUF"
}

/// The models in a folder's `.gguf` files: of those in several parts, the first part.
fn ggufs(folder: &Path) -> Result<Vec<PathBuf>> {
    let io = |source| Error::Io { path: folder.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let is_gguf = path.extension().is_some_and(|extension| extension == "gguf");
        files.extend(Some(path).filter(|path| is_gguf && !gguf::is_later_part(path)));
    }
    Ok(files)
}

/// How many characters two names share at their ends: names differ in the middle, by a layer or a word.
fn alike(a: &str, b: &str) -> usize {
    let front = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let back = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    front + back
}
