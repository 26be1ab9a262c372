//! `foveal explore`: the page, live.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foveal_explorer::{Asker, Cancel, Catalog, Desk, Explorer, Fault, RunRequest, Server, ServerOptions, Stopper};
use foveal_models::checkpoint::Hub;
use foveal_models::trace::Capture;
use foveal_view::Page;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::arguments::Explore;
use crate::output::Output;
use crate::source;

/// What is read where nothing is given.
const LINE: &str = "ROMEO: But soft, what light through yonder window breaks?";
const SENTENCE: &str = "The student reads two books.";
const QUESTION: &str = "Where is the brass key?";
const PASSAGES: &str = "Anna lives in Rome. She works at the library.\nTom left the brass key under the stairs.\n\
                        The concert begins at seven o'clock at the town hall.";

pub fn run(explore: &Explore, output: Output) -> Result<()> {
    if output.file().is_some() {
        bail!("explore writes no file; save from the page, or take `foveal see -o page.html`");
    }
    let tr = |english, korean| output.language.of(english, korean);
    let page = Page::served(output.language.into())?;
    let hub = Hub::from_env().show_progress();
    let mut catalog = Catalog::new().with_inside().with_cache(&hub);
    let named = explore.model.iter().map(|name| Ok(catalog.add_named(&hub, name)?)).collect::<Result<Vec<_>>>()?;
    let inside = if explore.image.is_some() { "digits" } else { "shakespeare" };
    let model = named.first().map_or(inside, String::as_str);
    let catalog = explore.context.into_iter().fold(catalog, Catalog::context);
    let capture = if explore.layers.is_empty() { Capture::All } else { Capture::Layers(explore.layers.clone()) };
    let explorer = Explorer::new(catalog).capture(capture).memory(usize::from(explore.memory) << 30);
    check_context(explore, &explorer, model)?;

    let stop = Stop::new()?;
    if let Some(request) = beginning(explore, &explorer, model)? {
        let read = read(&explorer, &request, &output, &stop.cancel);
        if stop.cancel.is_cancelled() {
            return Ok(());
        }
        read.map_err(|fault| anyhow::anyhow!(fault.text.of(output.language.into()).to_owned()))?;
    }
    let again = tr("for another browser", "다른 브라우저에서 열 링크");
    let used = Box::new(move |link: &str| eprintln!("{again}: {link}"));
    let options = ServerOptions { port: explore.port, language: output.language.into(), page, used };
    let server = Server::bind(Desk::open(explorer)?, options)
        .with_context(|| format!("cannot serve on port {}; leave out --port for one that is free", explore.port))?;
    let link = server.link();
    match output.is_json() {
        true => output.line(&json!({ "link": link, "port": server.address().port() }).to_string())?,
        false => {
            output.line(&link)?;
            eprintln!("{}", tr("Ctrl-C ends it.", "Ctrl-C를 누르면 끝납니다."));
        }
    }
    stop.server(server.stopper());
    if !explore.no_open {
        open(&link);
    }
    Ok(server.serve()?)
}

/// Says when a model cannot see as many tokens as were asked for.
fn check_context(explore: &Explore, explorer: &Explorer, model: &str) -> Result<()> {
    let Some(tokens) = explore.context else { return Ok(()) };
    let open = explorer.catalog().model(model)?;
    let context = open.summary().context;
    if context < tokens {
        bail!("{model} has {context} positions and they are learned: --context cannot raise them; take a Llama model");
    }
    Ok(())
}

/// What to begin with: what was given, else a line that the model can read.
fn beginning(explore: &Explore, explorer: &Explorer, model: &str) -> Result<Option<RunRequest>> {
    use foveal_explorer::Reads;
    let request = RunRequest { model: model.to_owned(), ..RunRequest::default() };
    if let Some(path) = &explore.image {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        return Ok(Some(RunRequest { image: Some(STANDARD.encode(bytes)), ..request }));
    }
    let text = match (&explore.text.text, &explore.text.file) {
        (None, None) => match explorer.catalog().reads(model) {
            Some(Reads::Image) | None => return Ok(None),
            Some(Reads::Translation) => SENTENCE.to_owned(),
            Some(Reads::Text) => LINE.to_owned(),
            Some(Reads::Question) => {
                let (question, passages) = (QUESTION.to_owned(), PASSAGES.to_owned());
                return Ok(Some(RunRequest { text: Some(question), passages: Some(passages), ..request }));
            }
        },
        (text, file) => source::text(text.as_deref(), file.as_deref())?,
    };
    Ok(Some(RunRequest { text: Some(text), ..request }))
}

/// Reads what to begin with, and shows how far it is.
fn read(explorer: &Explorer, request: &RunRequest, output: &Output, cancel: &Cancel) -> Result<(), Fault> {
    let bar = ProgressBar::new(100).with_style(
        ProgressStyle::with_template("{bar:28.cyan/dim} {msg}")
            .expect("a template that is part of the program")
            .progress_chars("━╸─"),
    );
    let shown = bar.clone();
    let asker = Asker::new(output.language.into(), move |part| {
        shown.set_position((100.0 * part.head["progress"].as_f64().unwrap_or(0.0)) as u64);
        shown.set_message(part.head["what"].as_str().unwrap_or("").to_owned());
    });
    let read = explorer.read(request, &asker.cancelled_by(cancel));
    bar.finish_and_clear();
    read.map(drop)
}

/// Ctrl-C: ends what is being read, or the server.
struct Stop {
    cancel: Cancel,
    server: Arc<Mutex<Option<Stopper>>>,
}

impl Stop {
    fn new() -> Result<Self> {
        let stop = Stop { cancel: Cancel::default(), server: Arc::default() };
        let (cancel, server) = (stop.cancel.clone(), stop.server.clone());
        ctrlc::set_handler(move || {
            cancel.cancel();
            server.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Stopper::stop);
        })?;
        Ok(stop)
    }

    fn server(&self, stopper: Stopper) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopper);
    }
}

/// Opens a browser, where there is one; the link is printed in any case.
fn open(link: &str) {
    let screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ if screen => "xdg-open",
        _ => return,
    };
    Command::new(program).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
}
