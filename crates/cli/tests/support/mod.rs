//! The program from outside: running it, and what it must do in any case.

#![allow(dead_code, reason = "each test takes a part of it")]

use std::process::{Command, Output, Stdio};

pub fn foveal(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foveal"));
    command.args(arguments).env("LANG", "C").env_remove("LC_ALL").env_remove("LC_MESSAGES").stdin(Stdio::null());
    command
}

pub fn run(arguments: &[&str]) -> Output {
    foveal(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a command prints that must succeed.
pub fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(!printed.contains('\x1b'), "{arguments:?} prints escape codes where there is no terminal");
    printed
}

pub fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(&[arguments, &["--json"]].concat())).unwrap()
}

/// What a command says that must fail in the usual way.
pub fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert!(said.starts_with("foveal: ") && !said.contains("panicked"), "{said}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    said
}

/// The numbers of a matrix.
pub fn matrix(values: &serde_json::Value) -> Vec<Vec<f64>> {
    let numbers = |row: &serde_json::Value| row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    values.as_array().unwrap().iter().map(numbers).collect()
}
