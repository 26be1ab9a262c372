//! Saving, whole or not at all: everything is written to temporary files beside the target and reaches the disk before
//! any of them takes its name. A crash, a full disk or an error leaves what was there before.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use ndarray::ArrayViewD;
use serde_json::{Map, Value};
use tempfile::NamedTempFile;

use super::Dtype;
use crate::{Error, Result};

/// Saves a model as Hugging Face does: `config.json` and `model.safetensors` (f32) in `folder`, which is made if it is
/// not there.
///
/// ```
/// # use foveal_models::{Checkpoint, checkpoint::save};
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// let weight = ndarray::array![[1.0, 2.0], [3.0, 4.0]].into_dyn();
/// let config = serde_json::json!({"model_type": "gpt2", "n_embd": 2});
/// save(folder, config.as_object().unwrap(), [("wte.weight", weight.view())])?;
/// let checkpoint = Checkpoint::open(folder)?;
/// assert_eq!(checkpoint.tensor("wte.weight")?.to_f32()?, weight);
/// # Ok::<(), foveal_models::Error>(())
/// ```
///
/// # Errors
/// If two tensors have the same name, or a file cannot be written; then nothing has changed.
pub fn save<'a, S: Into<String>>(
    folder: &Path,
    config: &Map<String, Value>,
    tensors: impl IntoIterator<Item = (S, ArrayViewD<'a, f32>)>,
) -> Result<()> {
    save_as(folder, config, tensors, Dtype::F32)
}

/// The same with numbers of type F32, F16 or BF16.
///
/// # Errors
/// As [`save`]; also for another type, or if a finite number would become infinite, from ±65,520 on as F16.
pub fn save_as<'a, S: Into<String>>(
    folder: &Path,
    config: &Map<String, Value>,
    tensors: impl IntoIterator<Item = (S, ArrayViewD<'a, f32>)>,
    dtype: Dtype,
) -> Result<()> {
    let tensors: Vec<(String, _)> = tensors.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect();
    check_range(&tensors, dtype)?;
    let io = |source| Error::Io { path: folder.to_path_buf(), source };
    fs::create_dir_all(folder).map_err(io)?;
    let (weights_path, config_path) = (folder.join("model.safetensors"), folder.join("config.json"));
    let weights = written(&weights_path, folder, |file| write_tensors(tensors, &[], dtype, file))?;
    let config = written(&config_path, folder, |file| {
        serde_json::to_writer_pretty(&mut *file, config).map_err(std::io::Error::from)?;
        file.write_all(b"\n")
    })?;
    // Both are on the disk; what is left is to give them their names. The configuration comes last: a reader that finds
    // a new folder half made finds no checkpoint, not a wrong one.
    persist(weights, &weights_path)?;
    persist(config, &config_path)
}

/// Whether every finite number is still finite as `dtype`.
fn check_range(tensors: &[(String, ArrayViewD<f32>)], dtype: Dtype) -> Result<()> {
    // The middle between the largest number and the next one there would be: from there on numbers are rounded up.
    let (end, fit) = match dtype {
        Dtype::F16 => (65_520.0, "BF16 or F32"),
        Dtype::BF16 => (f32::from_bits(0x7f7f_8000), "F32"),
        _ => return Ok(()),
    };
    for (name, tensor) in tensors {
        if let Some(&value) = tensor.iter().find(|x| x.is_finite() && x.abs() >= end) {
            return Err(Error::Range { name: name.clone(), value, dtype, fit });
        }
    }
    Ok(())
}

/// One file of tensors, with what it says about itself.
pub(crate) fn save_tensors<'a, S: Into<String>>(
    path: &Path,
    tensors: impl IntoIterator<Item = (S, ArrayViewD<'a, f32>)>,
    metadata: &[(String, String)],
) -> Result<()> {
    write_whole(path, |file| write_tensors(tensors, metadata, Dtype::F32, file))
}

/// Writes a file, whole or not at all; its folder is made if it is not there.
///
/// # Errors
/// If it cannot be written; what was there before is then still there.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|source| Error::Io { path: folder.to_path_buf(), source })?;
    persist(written(path, folder, |file| write(file))?, path)
}

/// Gives a file its name, and the name to the disk.
fn persist(file: NamedTempFile, path: &Path) -> Result<()> {
    file.persist(path).map_err(|error| Error::Io { path: path.to_path_buf(), source: error.error })?;
    // The names are part of the folder, and reach the disk with it.
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| Error::Io { path: folder.to_path_buf(), source })?;
    }
    Ok(())
}

/// A temporary file in the folder with what `write` writes, flushed to the disk, to be named `path`.
fn written(
    path: &Path,
    folder: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".saving-");
    // A temporary file is for its owner's eyes only; a checkpoint is as open as the user's other files.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let write = || {
        let file = builder.tempfile_in(folder)?;
        let mut buffered = BufWriter::with_capacity(1 << 20, file.as_file());
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(|source| Error::Io { path: path.to_path_buf(), source })
}

/// The header by the `safetensors` crate, the numbers one tensor at a time, so that no second copy of the model is
/// made.
fn write_tensors<'a, S: Into<String>, W: Write + ?Sized>(
    tensors: impl IntoIterator<Item = (S, ArrayViewD<'a, f32>)>,
    metadata: &[(String, String)],
    dtype: Dtype,
    file: &mut W,
) -> std::io::Result<()> {
    let (kind, size) = match dtype {
        Dtype::F32 => (safetensors::Dtype::F32, 4),
        Dtype::F16 => (safetensors::Dtype::F16, 2),
        Dtype::BF16 => (safetensors::Dtype::BF16, 2),
        other => return Err(std::io::Error::other(format!("weights are saved as F32, F16 or BF16, not as {other}"))),
    };
    let mut tensors: Vec<(String, ArrayViewD<'a, f32>)> = tensors.into_iter().map(|(n, t)| (n.into(), t)).collect();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(pair) = tensors.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(std::io::Error::other(format!("two tensors are named {}", pair[0].0)));
    }
    let mut end = 0;
    let infos = tensors.iter().map(|(name, tensor)| {
        let start = end;
        end += size * tensor.len();
        let shape = tensor.shape().to_vec();
        (name.clone(), safetensors::tensor::TensorInfo { dtype: kind, shape, data_offsets: (start, end) })
    });
    let metadata = [("format".to_owned(), "pt".to_owned())].into_iter().chain(metadata.iter().cloned()).collect();
    let header = safetensors::tensor::Metadata::new(Some(metadata), infos.collect()).map_err(std::io::Error::other)?;
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    let mut bytes = Vec::new();
    for (_, tensor) in &tensors {
        let numbers = tensor.as_slice().map_or_else(|| Cow::Owned(tensor.iter().copied().collect()), Cow::Borrowed);
        for chunk in numbers.chunks(1 << 16) {
            bytes.clear();
            match dtype {
                Dtype::F16 => bytes.extend(chunk.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes())),
                Dtype::BF16 => bytes.extend(chunk.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes())),
                _ => bytes.extend(chunk.iter().flat_map(|x| x.to_le_bytes())),
            }
            file.write_all(&bytes)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_error_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (Array1::from_elem(3, 1.0).into_dyn(), Array1::from_elem(3, 2.0).into_dyn());
        save(folder.path(), &Map::new(), [("a", old.view())]).unwrap();
        let error = save(folder.path(), &Map::new(), [("a", new.view()), ("a", new.view())]).unwrap_err();
        assert!(error.to_string().contains("two tensors are named a"), "{error}");
        assert_eq!(names(folder.path()), ["config.json", "model.safetensors"]);
        let bytes = fs::read(folder.path().join("model.safetensors")).unwrap();
        assert_eq!(&bytes[bytes.len() - 4..], 1.0f32.to_le_bytes());
    }

    #[test]
    fn other_readers_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let matrix = Array2::from_shape_fn((3, 5), |(i, j)| (10 * i + j) as f32);
        let transposed = matrix.t().into_dyn();
        save(folder.path(), &Map::new(), [("b", transposed), ("a", matrix.view().into_dyn())]).unwrap();
        let bytes = fs::read(folder.path().join("model.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let b = file.tensor("b").unwrap();
        assert_eq!((b.dtype(), b.shape()), (safetensors::Dtype::F32, &[5, 3][..]));
        assert_eq!(b.data()[4..8], 10.0f32.to_le_bytes());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode();
            fs::write(folder.path().join("other"), b"").unwrap();
            assert_eq!(mode("model.safetensors"), mode("other"));
        }
    }
}
