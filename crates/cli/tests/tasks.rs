//! `foveal train digits`, and the film of a sentence while a translator learns.

mod support;

use std::io::Write;
use std::path::Path;

use foveal_models::train::Snapshots;
use support::{json, matrix, printed, refused};

/// An IDX file of bytes, as MNIST has them.
fn idx(sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

const SIDE: u32 = 8;

/// A bright column of pixels left or right of the middle, in some noise, and what it is called.
fn stroke(n: u32) -> (Vec<u8>, u8) {
    let right = n % 2 == 1;
    let noise = |x: u32, y: u32| (n.wrapping_mul(2_654_435_761).rotate_left(x * 3 + y) >> 24) as u8 / 4;
    let bright = |x: u32| if right { x == 5 || x == 6 } else { x == 1 || x == 2 };
    let pixels = (0..SIDE * SIDE).map(|at| (at % SIDE, at / SIDE));
    (pixels.map(|(x, y)| if bright(x) { 255 - noise(x, y) } else { noise(x, y) }).collect(), if right { 7 } else { 3 })
}

fn digits(folder: &Path, count: u32) -> (String, String) {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (image, label) in (0..count).map(stroke) {
        pixels.extend(image);
        labels.push(label);
    }
    let (images, classes) = (folder.join("images"), folder.join("labels"));
    std::fs::write(&images, idx(&[count, SIDE, SIDE], &pixels)).unwrap();
    std::fs::write(&classes, idx(&[count], &labels)).unwrap();
    (images.to_str().unwrap().to_owned(), classes.to_str().unwrap().to_owned())
}

#[test]
fn digits_are_learned_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let (images, labels) = digits(folder.path(), 200);
    let model = folder.path().join("model");
    let model = model.to_str().unwrap();
    let sizes = ["--dims", "16", "--heads", "2", "--layers", "2", "--batch", "16", "--steps", "80"];
    let figures = json(&[&["train", "digits", &images, &labels, "-d", model][..], &sizes].concat());
    assert_eq!((figures["images"].as_u64(), figures["steps"].as_u64()), (Some(200), Some(80)));
    // Twenty are held out, and chance is a half.
    assert!(figures["accuracy"].as_f64().unwrap() > 0.9, "{figures}");
    let losses = std::fs::read_to_string(Path::new(model).join("losses.csv")).unwrap();
    let loss = |line: &str| line.split(',').nth(2).unwrap().parse::<f32>().unwrap();
    let lines: Vec<&str> = losses.lines().skip(1).collect();
    assert!(lines.len() == 80 && loss(lines[79]) < loss(lines[0]) / 2.0, "{losses}");
    // What was learned reads an image that was not among them.
    for (n, expected) in [(1001, 7), (1002, 3)] {
        let path = folder.path().join(format!("{n}.png"));
        image::GrayImage::from_raw(SIDE, SIDE, stroke(n).0).unwrap().save(&path).unwrap();
        let seen = json(&["see", "--image", path.to_str().unwrap(), "--model", model]);
        let classes: Vec<f64> = seen["classes"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect();
        let best = (0..classes.len()).max_by(|a, b| classes[*a].total_cmp(&classes[*b])).unwrap();
        assert_eq!(best, expected, "{classes:?}");
        let heads = seen["heads"].as_array().unwrap();
        assert_eq!(heads.len(), 2);
        for map in heads.iter().map(matrix) {
            // The class token's weight on the patches; the rest is on itself.
            let sum: f64 = map.iter().flatten().sum();
            assert!(map.len() == 2 && sum > 0.0 && sum < 1.0 + 1e-5, "{map:?}");
        }
    }
}

#[test]
fn digits_come_compressed_and_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (images, labels) = digits(folder.path(), 40);
    let small = ["--dims", "8", "--heads", "2", "--layers", "1", "--batch", "4", "--steps", "2"];
    let train = |images: &str, labels: &str, name: &str| {
        let target = folder.path().join(name).to_str().unwrap().to_owned();
        ["train", "digits", images, labels, "-d", &target]
            .into_iter()
            .chain(small)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run = |arguments: &[String]| printed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let fails = |arguments: &[String]| refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let packed = folder.path().join("images.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), flate2::Compression::default());
    encoder.write_all(&std::fs::read(&images).unwrap()).unwrap();
    encoder.finish().unwrap();
    let losses = |name: &str| std::fs::read_to_string(folder.path().join(name).join("losses.csv")).unwrap();
    run(&train(&images, &labels, "plain"));
    run(&train(packed.to_str().unwrap(), &labels, "packed"));
    assert_eq!(losses("plain"), losses("packed"));

    assert!(fails(&train(&labels, &labels, "a")).contains("expected [images, height, width] and [images]"));
    let (other, path) = (folder.path().join("other"), |path: &Path| path.to_str().unwrap().to_owned());
    std::fs::write(&other, idx(&[39], &[0; 39])).unwrap();
    assert!(fails(&train(&images, &path(&other), "b")).contains("a digit for each"));
    std::fs::write(&other, idx(&[41], &[0; 40])).unwrap();
    assert!(fails(&train(&images, &path(&other), "c")).contains("[41], but there are 40 values"));
    std::fs::write(&other, b"no such thing").unwrap();
    assert!(fails(&train(&path(&other), &labels, "d")).contains("is no IDX file"));
    std::fs::write(&other, idx(&[u32::MAX, u32::MAX, u32::MAX], &[])).unwrap();
    assert!(fails(&train(&path(&other), &labels, "e")).contains("but there are 0 values"));
}

#[test]
fn a_sentence_is_filmed_while_a_translator_learns() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run");
    let small =
        ["--dims", "16", "--heads", "2", "--layers", "1", "--steps", "2", "--batch", "4", "--evaluate-every", "1"];
    let train = |sentence: &str| {
        let begin = ["train", "pairs", "-d", target.to_str().unwrap(), "--snapshot", sentence];
        begin.into_iter().chain(small).map(str::to_owned).collect::<Vec<_>>()
    };
    let said = refused(&train("Colourless green ideas.").iter().map(String::as_str).collect::<Vec<_>>());
    // The sentence that it proposes instead.
    let sentence = said.rsplit_once("such as \"").unwrap().1.split('"').next().unwrap();
    let figures = json(&train(sentence).iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(figures["steps"].as_u64(), Some(2));
    assert_eq!(figures["alignment"].as_array().unwrap().len(), (2 + 1) * 2, "two heads and their mean, two readings");
    let film = Snapshots::load(&target.join("snapshots.safetensors")).unwrap();
    assert_eq!(film.frames.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(film.queries.last().map(String::as_str), Some("</s>"));
    for (step, layers) in &film.frames {
        assert_eq!(layers.len(), 1);
        assert_eq!(layers[0].dim(), (2, film.queries.len(), film.keys.len()), "step {step}");
        assert!(layers[0].rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-4), "step {step}");
    }
    assert_ne!(film.frames[0].1, film.frames[2].1, "the model has learned in between");
    let refused = refused(&["train", "pairs", "pairs.tsv", "-d", "out", "--snapshot", "a"]);
    assert!(refused.contains("leave out the file"), "{refused}");
}
