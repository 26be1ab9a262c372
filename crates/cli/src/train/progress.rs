//! Progress on standard error: a bar in a terminal, else a line now and then.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use foveal_models::train::Record;
use indicatif::{ProgressBar, ProgressStyle};

/// Seconds between lines where there is no terminal.
const PAUSE: Duration = Duration::from_secs(10);

pub struct Progress {
    bar: Option<ProgressBar>,
    steps: usize,
    first: usize,
    start: Instant,
    tokens: Cell<usize>,
    /// Losses jump about from batch to batch: this one follows slowly.
    smooth: Cell<Option<f32>>,
    last: Cell<Instant>,
}

impl Progress {
    pub fn new(steps: usize, done: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(steps as u64).with_position(done as u64);
            let style = ProgressStyle::with_template("{bar:28.cyan/dim} {pos}/{len}  {msg}  {eta} left");
            bar.with_style(style.expect("a template that is part of the program").progress_chars("━╸─"))
        });
        let now = Instant::now();
        Progress {
            bar,
            steps,
            first: done,
            start: now,
            tokens: Cell::new(0),
            smooth: Cell::new(None),
            last: Cell::new(now),
        }
    }

    pub fn step(&self, record: &Record) {
        self.tokens.set(self.tokens.get() + record.tokens);
        let smooth = self.smooth.get().map_or(record.loss, |old| 0.95 * old + 0.05 * record.loss);
        self.smooth.set(Some(smooth));
        let seconds = self.start.elapsed().as_secs_f64();
        let speed = self.tokens.get() as f64 / seconds;
        match &self.bar {
            Some(bar) => {
                bar.set_position(record.step as u64);
                bar.set_message(format!("loss {smooth:.3}  {speed:.0} tokens/s"));
            }
            None if record.held_out.is_some() || self.last.get().elapsed() > PAUSE || record.step == self.steps => {
                let left = seconds / (record.step - self.first) as f64 * (self.steps - record.step) as f64;
                self.line(&format!(
                    "step {}/{}  loss {smooth:.3}  {speed:.0} tokens/s  {left:.0} s left",
                    record.step, self.steps
                ));
                self.last.set(Instant::now());
            }
            None => {}
        }
        if let Some(held_out) = record.held_out {
            self.line(&format!("step {}  held-out loss {held_out:.4}", record.step));
        }
    }

    /// A line above the bar.
    pub fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
