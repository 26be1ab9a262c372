//! The exercises, in the order of the lessons.

use foveal_labs::Bilingual;
use serde::Serialize;

use crate::{Error, Result, Task, chapter};

/// An exercise.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Exercise {
    /// By which it is asked for.
    pub name: &'static str,
    /// The chapter of the lessons that it belongs to.
    pub chapter: usize,
    /// What it is about, in a few words.
    pub title: Bilingual<&'static str>,
    #[serde(skip)]
    make: fn() -> Result<Task>,
}

impl Exercise {
    pub(crate) const fn new(
        name: &'static str,
        chapter: usize,
        [en, ko]: [&'static str; 2],
        make: fn() -> Result<Task>,
    ) -> Self {
        Exercise { name, chapter, title: Bilingual { en, ko }, make }
    }

    /// Computes the question and its answer.
    ///
    /// # Errors
    /// If a model inside cannot be opened, or a picture cannot be drawn.
    pub fn task(&self) -> Result<Task> {
        (self.make)()
    }
}

/// How many there are.
const COUNT: usize = 40;

/// In the order of the lessons.
pub const EXERCISES: [Exercise; COUNT] = {
    let mut all = [chapter::FIRST[0]; COUNT];
    let parts: [&[Exercise]; 7] = [
        &chapter::FIRST,
        &chapter::SCALE,
        &chapter::MASKS,
        &chapter::HEADS,
        &chapter::POSITIONS,
        &chapter::MODELS,
        &chapter::LONG,
    ];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut n = 0;
        while n < parts[part].len() {
            all[at] = parts[part][n];
            (at, n) = (at + 1, n + 1);
        }
        part += 1;
    }
    assert!(at == COUNT);
    all
};

/// The exercise of this name.
///
/// # Errors
/// If there is none; the message names the most similar one.
pub fn find(name: &str) -> Result<&'static Exercise> {
    static ALL: [Exercise; COUNT] = EXERCISES;
    ALL.iter().find(|exercise| exercise.name == name).ok_or_else(|| {
        let similar =
            ALL.iter().min_by_key(|exercise| distance(name, exercise.name)).map_or("", |exercise| exercise.name);
        Error::NoExercise { name: name.to_owned(), similar }
    })
}

/// How many characters must be changed, added or left out to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (n, exercise) in EXERCISES.iter().enumerate() {
            assert_eq!(find(exercise.name).unwrap().name, exercise.name);
            assert!(EXERCISES[..n].iter().all(|other| other.name != exercise.name), "{}", exercise.name);
        }
        assert!(EXERCISES.is_sorted_by_key(|exercise| exercise.chapter), "in the order of the lessons");
        assert!(find("weight").unwrap_err().to_string().contains("did you mean weights"));
        assert_eq!([distance("", "ab"), distance("abc", "abd"), distance("ab", "b")], [2, 1, 1]);
    }
}
