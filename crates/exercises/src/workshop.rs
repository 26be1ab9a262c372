//! Where programs are built and run.
//!
//! ```text
//! FOLDER/softmax.rs              the learner's file
//! FOLDER/build/softmax/          a package around it: main.rs reads cases, run.rs calls the learner's function
//! ```
//! The cases and their right answers stay in this process.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use foveal_labs::{Language, Text, text};

use crate::number::list;
use crate::task::near;
use crate::{Code, Error, Result, Verdict};

/// A program that has not answered by then has a loop without an end.
const PATIENCE: Duration = Duration::from_secs(20);
/// How far an answer may be from the engine's, which computes in 32 bits.
const TOLERANCE: f64 = 2e-5;

/// Reads cases, a line of numbers each, and prints the answers likewise.
const MAIN: &str = r#"
fn main() {
    for line in std::io::stdin().lines() {
        let case: Vec<f64> = line.unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
        let answer: Vec<String> = run::run(&case).iter().map(|number| number.to_string()).collect();
        println!("{}", answer.join(" "));
    }
}
"#;

/// A folder with the learner's programs.
#[derive(Clone, Debug)]
pub struct Workshop {
    folder: PathBuf,
}

/// As the clone's own, so that what it has built is used again.
const PROFILE: &str = "[profile.dev]\nopt-level = 2\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\nopt-level = 2\ndebug = false\n";

impl Workshop {
    /// In this folder, which is made when it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Workshop { folder: folder.into() }
    }

    /// The file of an exercise.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.rs"))
    }

    /// Writes the file to begin with, unless there is one. Its path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn start(&self, name: &str, code: &Code, language: Language) -> Result<PathBuf> {
        let path = self.file(name);
        if !path.exists() {
            std::fs::create_dir_all(&self.folder).map_err(Error::io(&self.folder))?;
            foveal_view::write(&path, code.start.get(language).as_bytes())?;
        }
        Ok(path)
    }

    /// Why programs like this one cannot be run here; none if they can.
    pub fn obstacle(code: &Code) -> Option<Text> {
        let version = Command::new(cargo()).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            return Some(text(
                "there is no cargo here; it comes with Rust",
                "여기에는 cargo가 없습니다. cargo는 Rust와 함께 설치됩니다",
            ));
        }
        (code.engine && clone().is_none()).then(|| {
            text(
                "it uses the library, and this is no clone of the project: run foveal learn inside one",
                "라이브러리를 쓰는 문제인데 여기는 프로젝트의 클론이 아닙니다. 클론 안에서 foveal learn을 실행하십시오",
            )
        })
    }

    /// Builds a program, runs it on every case, and judges its answers.
    ///
    /// # Errors
    /// If the package around it cannot be written, or `cargo` cannot be started.
    pub fn check(&self, name: &str, code: &Code, file: &Path) -> Result<Verdict> {
        let file = file.canonicalize().map_err(Error::io(file))?;
        let package = self.folder.join("build").join(name);
        let built = match self.build(name, code, &file, &package)? {
            Ok(program) => program,
            Err(complaint) => return Ok(Verdict::wrong(complaint)),
        };
        Ok(match run(&built, code)? {
            Ok(answers) => judge(code, &answers),
            Err(why) => Verdict::wrong(why),
        })
    }

    /// The path of the program, or what the compiler says.
    fn build(&self, name: &str, code: &Code, file: &Path, package: &Path) -> Result<Result<PathBuf, Text>> {
        let source = package.join("src");
        std::fs::create_dir_all(&source).map_err(Error::io(&source))?;
        let quoted = |path: &Path| format!("{:?}", path.to_string_lossy());
        let clone = code.engine.then(clone).flatten();
        let library =
            clone.as_ref().map(|clone| format!("foveal = {{ path = {} }}\n", quoted(&clone.join("crates/foveal"))));
        let manifest = format!(
            "[package]\nname = \"exercise-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{}\n[workspace]\n{PROFILE}",
            library.unwrap_or_default()
        );
        let main = format!("#![allow(unused)]\n#[path = {}]\nmod answer;\nmod run;\n{MAIN}", quoted(file));
        for (path, text) in [
            (package.join("Cargo.toml"), &manifest[..]),
            (source.join("main.rs"), &main),
            (source.join("run.rs"), code.run),
        ] {
            // A file that is written anew is compiled anew.
            if std::fs::read_to_string(&path).ok().as_deref() != Some(text) {
                std::fs::write(&path, text).map_err(Error::io(&path))?;
            }
        }
        let mut target = self.folder.join("build").join("target");
        let mut command = Command::new(cargo());
        if let Some(clone) = clone {
            // The versions that the clone has tested, and what it has built already.
            let lock = package.join("Cargo.lock");
            std::fs::copy(clone.join("Cargo.lock"), &lock).map_err(Error::io(&lock))?;
            target = clone.join("target");
        }
        command
            .args(["build", "--quiet", "--offline", "--color", "never", "--manifest-path"])
            .arg(package.join("Cargo.toml"));
        // What surrounds this process may be another package's build.
        command.env("CARGO_TARGET_DIR", &target).env_remove("RUSTC_WRAPPER").stdin(Stdio::null());
        let done = command.output().map_err(Error::io(cargo()))?;
        if done.status.success() {
            let program = target.join("debug").join(format!("exercise-{name}{}", std::env::consts::EXE_SUFFIX));
            return Ok(Ok(program.canonicalize().map_err(Error::io(&program))?));
        }
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Ok(Err(text(format!("It does not compile:\n{said}"), format!("컴파일되지 않습니다.\n{said}"))))
    }
}

/// The program that builds: that of this build's environment, else the one on the path.
fn cargo() -> PathBuf {
    std::env::var_os("CARGO").filter(|name| !name.is_empty()).map_or_else(|| "cargo".into(), PathBuf::from)
}

/// The clone of the project that the user or the program stands in.
fn clone() -> Option<PathBuf> {
    let begin = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    let above = begin.iter().flatten().flat_map(|path| path.ancestors());
    above
        .filter(|folder| folder.join("crates/foveal/Cargo.toml").is_file() && folder.join("Cargo.lock").is_file())
        .map(Path::to_owned)
        .next()
}

/// What a program answers to each case, or why it has no answers.
fn run(program: &Path, code: &Code) -> Result<Result<Vec<Vec<f64>>, Text>> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io(program))?;
    let input: String = code.cases.iter().map(|case| plain(&case.input) + "\n").collect();
    let (mut stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // A program that ends early closes its side; its answers will be too few.
    let writer = std::thread::spawn(move || stdin.as_mut().map(|pipe| pipe.write_all(input.as_bytes())));
    let (stdout, stderr) = (reader(stdout), reader(stderr));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(Error::io(program))? {
            Some(status) => break status,
            None if start.elapsed() > PATIENCE => {
                child.kill().map_err(Error::io(program))?;
                child.wait().map_err(Error::io(program))?;
                return Ok(Err(text(
                    "It does not come to an end: is there a loop that never stops?",
                    "끝나지 않습니다. 멈추지 않는 반복문이 있습니까?",
                )));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let _ = writer.join();
    let (printed, said) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    let answers: Vec<Vec<f64>> = printed
        .lines()
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap_or(f64::NAN)).collect())
        .collect();
    if status.success() && answers.len() == code.cases.len() {
        return Ok(Ok(answers));
    }
    let said: String = said.lines().filter(|line| !line.starts_with("note:")).collect::<Vec<_>>().join("\n");
    let call = code.cases.get(answers.len()).map(|case| case.shown.clone()).unwrap_or_default();
    Ok(Err(text(
        format!("It stops at {}:\n{}", call.en, said.trim()),
        format!("{}에서 멈춥니다.\n{}", call.ko, said.trim()),
    )))
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read before it failed is what there is.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn plain(numbers: &[f64]) -> String {
    numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
}

fn judge(code: &Code, answers: &[Vec<f64>]) -> Verdict {
    let all = |wanted: &[Vec<f64>]| answers.iter().zip(wanted).all(|(answer, wanted)| near(answer, wanted, TOLERANCE));
    let Some((case, answer)) =
        code.cases.iter().zip(answers).find(|(case, answer)| !near(answer, &case.expected, TOLERANCE))
    else {
        return Verdict::Right;
    };
    if let Some(mistake) = code.mistakes.iter().find(|mistake| all(&mistake.answers)) {
        return Verdict::Wrong { why: mistake.why.clone(), mistake: Some(mistake.name) };
    }
    let (want, got) = (list(case.expected.iter().copied()), list(answer.iter().copied()));
    Verdict::wrong(text(
        format!("{} should give {want} and gives {got}.", case.shown.en),
        format!("{}의 결과는 {want}이어야 하는데 {got}입니다.", case.shown.ko),
    ))
}
