//! The desk where questions wait for their answers.
//!
//! Short questions are answered by a few threads in the order they came. Long ones have threads of their own, one question
//! at a time for each model, so that a tile need not wait for a text that is being read. A question that is no longer wanted
//! leaves the queue, or its work. When too many wait, the next is told so at once.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use foveal_view::Language;

use crate::asker::{Asker, Cancel};
use crate::explorer::{Explorer, Work};
use crate::fault::Fault;
use crate::reply::Reply;
use crate::request::Request;

/// Short questions that are answered at a time.
const SHORT: usize = 2;
/// Long questions that are answered at a time, each of another model.
const LONG: usize = 2;
/// Questions that may wait, of each sort.
const WAITING: usize = 256;

/// What becomes of a question.
#[derive(Clone, Debug)]
pub enum Event {
    /// A part of the answer.
    Part(Reply),
    /// The answer. Nothing comes after it.
    Done(Result<Reply, Fault>),
}

/// A question that waits or is being answered. Dropped, it is withdrawn.
#[derive(Debug)]
pub struct Ticket(Cancel);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

struct Job {
    request: Request,
    work: Work,
    asker: Asker,
    done: Box<dyn FnOnce(Result<Reply, Fault>) + Send>,
}

#[derive(Default)]
struct Queue {
    short: VecDeque<Job>,
    long: VecDeque<Job>,
    /// The models that a long question is being answered with.
    taken: Vec<String>,
    closed: bool,
}

/// Questions and the threads that answer them.
pub struct Desk {
    explorer: Arc<Explorer>,
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

impl Desk {
    /// Opens the desk: starts its threads.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn open(explorer: Explorer) -> std::io::Result<Self> {
        let desk = Desk { explorer: Arc::new(explorer), shared: Arc::default() };
        for n in 0..SHORT + LONG {
            let (explorer, shared) = (desk.explorer.clone(), desk.shared.clone());
            thread::Builder::new().name(format!("answers-{n}")).spawn(move || answer(&explorer, &shared, n < SHORT))?;
        }
        Ok(desk)
    }

    /// Whom it asks.
    pub fn explorer(&self) -> &Explorer {
        &self.explorer
    }

    /// Hands in a question. `event` is called from other threads: for every part of the answer, and once at its end.
    ///
    /// # Errors
    /// [`Fault::busy`] if too many wait.
    pub fn hand_in(
        &self,
        request: Request,
        language: Language,
        event: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Ticket, Fault> {
        let event = Arc::new(event);
        let parts = event.clone();
        let asker = Asker::new(language, move |part| parts(Event::Part(part)));
        let ticket = Ticket(asker.cancel.clone());
        let work = self.explorer.work(&request);
        let job = Job { request, work, asker, done: Box::new(move |answer| event(Event::Done(answer))) };
        let mut queue = lock(&self.shared.0);
        let waiting = match job.work {
            Work::Short => &mut queue.short,
            Work::Long(_) => &mut queue.long,
        };
        if waiting.len() >= WAITING {
            waiting.retain(|job| !job.asker.cancel.is_cancelled());
            if waiting.len() >= WAITING {
                return Err(Fault::busy());
            }
        }
        waiting.push_back(job);
        drop(queue);
        self.shared.1.notify_all();
        Ok(ticket)
    }
}

/// No more questions: threads end with the one that they answer.
impl Drop for Desk {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.0);
        queue.closed = true;
        queue.short.clear();
        queue.long.clear();
        drop(queue);
        self.shared.1.notify_all();
    }
}

/// Answers one question after the other.
fn answer(explorer: &Explorer, (queue, changed): &(Mutex<Queue>, Condvar), short: bool) {
    loop {
        let mut waiting = lock(queue);
        let job = loop {
            if waiting.closed {
                return;
            }
            match next(&mut waiting, short) {
                Some(job) => break job,
                None => waiting = changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(waiting);
        let Job { request, work, asker, done } = job;
        done(explorer.ask(&request, &asker));
        if let Work::Long(model) = &work {
            lock(queue).taken.retain(|taken| taken != model);
            changed.notify_all();
        }
    }
}

/// The next question that can be answered; those that nobody waits for are dropped.
fn next(queue: &mut Queue, short: bool) -> Option<Job> {
    if short {
        queue.short.retain(|job| !job.asker.cancel.is_cancelled());
        return queue.short.pop_front();
    }
    queue.long.retain(|job| !job.asker.cancel.is_cancelled());
    let free = |job: &Job| matches!(&job.work, Work::Long(model) if !queue.taken.contains(model));
    let job = queue.long.iter().position(free).and_then(|at| queue.long.remove(at))?;
    if let Work::Long(model) = &job.work {
        queue.taken.push(model.clone());
    }
    Some(job)
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
