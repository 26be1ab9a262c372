//! Writes the script behind the parts of the lessons that one can try.
//!
//! `cargo run -p foveal-view --example lesson -- out/lesson.js`

use foveal_view::{Error, lesson_script, write};

fn main() -> Result<(), Error> {
    match std::env::args().nth(1) {
        Some(path) => write(path, lesson_script()?.as_bytes()),
        None => {
            println!("usage: lesson FILE");
            Ok(())
        }
    }
}
