//! Files of pairs, good and bad.

use std::io::BufReader;
use std::path::Path;

use foveal_models::translation::{PairFile, ProblemKind, write_pairs};
use foveal_models::{Error, Result};

fn read(bytes: &[u8]) -> Result<PairFile> {
    // A buffer of three bytes, so that nothing depends on where it ends.
    PairFile::from_reader(Path::new("pairs.tsv"), BufReader::with_capacity(3, bytes))
}

fn texts(pairs: &PairFile) -> Vec<(&str, &str)> {
    pairs.pairs.iter().map(|pair| (pair.source.as_str(), pair.target.as_str())).collect()
}

#[test]
fn bad_lines_are_told_by_number() {
    let long = [b"x\t".as_slice(), &vec![b'a'; 70_000]].concat();
    let lines: [&[u8]; 10] = [
        b"one\t\xed\x95\x98\xeb\x82\x98",
        b"no tab",
        b"",
        b"a\tb\tc",
        b"\tonly target",
        b"only source\t  ",
        b"bad \xff\tx",
        &long,
        b" two \t two ",
        b"\t",
    ];
    let found = read(&lines.join(&b'\n')).unwrap();
    assert_eq!(texts(&found), [("one", "하나"), ("two", "two")]);
    let problems: Vec<_> = found.problems.iter().map(|problem| (problem.line, problem.kind)).collect();
    assert_eq!(
        problems,
        [
            (2, ProblemKind::Tabs(0)),
            (4, ProblemKind::Tabs(2)),
            (5, ProblemKind::NoSource),
            (6, ProblemKind::NoTarget),
            (7, ProblemKind::Encoding(5)),
            (8, ProblemKind::Length),
            (10, ProblemKind::NoSource),
        ]
    );
    assert_eq!(found.problems[4].to_string(), "line 7: byte 5 is not UTF-8; save the file as UTF-8");
}

#[test]
fn windows_files_are_read() {
    let found = read("\u{feff}a\t가\r\n\r\nb\t나\r\n".as_bytes()).unwrap();
    assert_eq!(texts(&found), [("a", "가"), ("b", "나")]);
    assert!(found.problems.is_empty());
}

#[test]
fn a_line_may_be_just_so_long() {
    let limit = 64 << 10;
    for (length, end) in [
        (limit, "\n"),
        (limit, "\r\n"),
        (limit, ""),
        (limit + 1, "\n"),
        (limit + 1, "\r\n"),
        (limit + 2, ""),
        (5 * limit, "\n"),
    ] {
        let line = format!("a\t{}{end}b\tc", "x".repeat(length - 2));
        let line = if end.is_empty() { line.trim_end_matches("b\tc").to_owned() + "\nb\tc" } else { line };
        let found = read(line.as_bytes()).unwrap();
        let fits = length <= limit;
        assert_eq!((found.pairs.len(), found.problems.len()), if fits { (2, 0) } else { (1, 1) }, "{length} {end:?}");
        assert_eq!(found.pairs.last().unwrap().source, "b");
    }
}

#[test]
fn a_file_without_a_pair_is_an_error() {
    for bytes in [&b""[..], b"\n\n", b"\xef\xbb\xbf", b"\0\0\0\0", b"\xff\xfea\0\t\0b\0", &[b'a'; 1 << 20]] {
        let error = read(bytes).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error}");
    }
    let error = read(b"The sun shines.\nThe moon shines.\n").unwrap_err().to_string();
    assert!(error.contains("none of its 2 lines is a pair; line 1: no tab"), "{error}");
    assert!(matches!(PairFile::read(Path::new("/nowhere/pairs.tsv")), Err(Error::Io { .. })));
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/pairs.tsv");
    write_pairs(&path, [("The sun\tshines.", "태양이\n빛나요."), ("b", "나")]).unwrap();
    let found = PairFile::read(&path).unwrap();
    assert_eq!(texts(&found), [("The sun shines.", "태양이 빛나요."), ("b", "나")]);
    let blocked = path.join("below a file");
    assert!(matches!(write_pairs(&blocked, [("a", "b")]), Err(Error::Io { .. })));
}
