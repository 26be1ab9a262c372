//! Chunks of keys and values on their way, while others are worked on.
//!
//! ```text
//! work on the chunk of event e          ┐ between blocks of rows: poll
//! receive those of the next events      ┘   a chunk that has come is sent on at once
//! ```

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::plan::{Cargo, Event, Plan};
use crate::wire::{Receiving, Sending, Wire};

/// Events whose chunks are awaited beside the one that is worked on.
const AHEAD: usize = 2;
/// Chunks in memory at most, unless one is waited for.
const BUFFERS: usize = 5;

/// What a call took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// From beginning to end.
    pub total: Duration,
    /// Of it, waiting for others.
    pub waited: Duration,
    /// Bytes that were sent.
    pub sent: u64,
}

/// Writes the own chunk of this number into a buffer.
type Pack<'a> = dyn Fn(usize, &mut Vec<f32>) + 'a;

/// Messages of one call.
pub(crate) struct Traffic<'a> {
    wire: &'a Wire,
    plan: &'a Plan,
    pack: Box<Pack<'a>>,
    /// Numbers of a token's keys and values.
    width: usize,
    /// The next event whose chunk is not yet asked for.
    next: usize,
    incoming: VecDeque<(usize, Receiving<'a>)>,
    arrived: HashMap<usize, Arc<Vec<f32>>>,
    outgoing: Vec<Sending<'a>>,
    free: Vec<Vec<f32>>,
    started: Instant,
    pub timing: Timing,
}

impl<'a> Traffic<'a> {
    pub fn new(wire: &'a Wire, plan: &'a Plan, width: usize, pack: impl Fn(usize, &mut Vec<f32>) + 'a) -> Self {
        Traffic {
            wire,
            plan,
            pack: Box::new(pack),
            width,
            next: 0,
            incoming: VecDeque::new(),
            arrived: HashMap::new(),
            outgoing: Vec::new(),
            free: Vec::new(),
            started: Instant::now(),
            timing: Timing::default(),
        }
    }

    /// A buffer for the keys and values of so many tokens, with anything in it.
    pub fn buffer(&mut self, tokens: usize) -> Vec<f32> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.resize(tokens * self.width, 0.0);
        buffer
    }

    /// The chunk of an event, when it has come. `meanwhile` is done while it is waited for.
    pub fn take(&mut self, event: usize, meanwhile: &mut dyn FnMut(&mut Self)) -> Arc<Vec<f32>> {
        self.ask(event);
        self.wait(|traffic| {
            meanwhile(traffic);
            traffic.arrived.remove(&event)
        })
    }

    /// Gives a chunk back that is no longer worked on.
    pub fn give_back(&mut self, chunk: Arc<Vec<f32>>) {
        self.free.extend(Arc::try_unwrap(chunk));
    }

    /// Lets MPI make progress, and sends on what has come.
    pub fn poll(&mut self) {
        while let Some((event, receiving)) = self.incoming.front_mut() {
            let Some(chunk) = receiving.poll() else { break };
            let (event, chunk) = (*event, Arc::new(chunk));
            self.incoming.pop_front();
            self.here(event, chunk);
        }
        let mut n = 0;
        while n < self.outgoing.len() {
            if self.outgoing[n].done() {
                let chunk = self.outgoing.swap_remove(n).into_buffer();
                self.give_back(chunk);
            } else {
                n += 1;
            }
        }
    }

    /// Waits for something, polling.
    pub fn wait<R>(&mut self, mut ready: impl FnMut(&mut Self) -> Option<R>) -> R {
        let started = Instant::now();
        loop {
            self.poll();
            if let Some(found) = ready(self) {
                self.timing.waited += started.elapsed();
                return found;
            }
            // Others may have work for this processor.
            std::thread::yield_now();
        }
    }

    /// Sends something else of this call.
    pub fn send(&mut self, chunk: Arc<Vec<f32>>, to: usize, (cargo, event): (Cargo, &Event)) {
        let tag = cargo.tag(event.owner, event.number, self.wire.size());
        self.timing.sent += 4 * chunk.len() as u64;
        self.outgoing.push(self.wire.send(&chunk, to, tag));
    }

    /// Awaits something else of this call, of so many tokens.
    pub fn receive(&mut self, tokens: usize, from: usize, cargo: Cargo, of: (usize, usize)) -> Receiving<'a> {
        let buffer = self.buffer(tokens);
        self.wire.receive(buffer, from, cargo.tag(of.0, of.1, self.wire.size()))
    }

    /// Waits until everything has been sent.
    pub fn finish(mut self) -> Timing {
        self.wait(|traffic| traffic.outgoing.is_empty().then_some(()));
        Timing { total: self.started.elapsed(), ..self.timing }
    }

    /// Asks for the chunks up to this event, and for some after it if there is room.
    fn ask(&mut self, event: usize) {
        let plan = self.plan;
        let ahead = (event + 1 + AHEAD).min(plan.events.len());
        while self.next < ahead {
            let used = self.incoming.len() + self.arrived.len() + self.outgoing.len();
            if self.next > event && used >= BUFFERS {
                break;
            }
            let (number, wanted) = (self.next, &plan.events[self.next]);
            self.next += 1;
            match wanted.from {
                None => {
                    let mut chunk = self.buffer(plan.chunk(wanted).len());
                    (self.pack)(wanted.number, &mut chunk);
                    self.here(number, Arc::new(chunk));
                }
                Some(from) => {
                    let (tokens, of) = (plan.chunk(wanted).len(), (wanted.owner, wanted.number));
                    let receiving = self.receive(tokens, from, Cargo::KeysAndValues, of);
                    self.incoming.push_back((number, receiving));
                }
            }
        }
    }

    /// A chunk is here: it is sent on, and kept until its turn comes.
    fn here(&mut self, number: usize, chunk: Arc<Vec<f32>>) {
        let event = &self.plan.events[number];
        if let Some(to) = event.to {
            self.send(chunk.clone(), to, (Cargo::KeysAndValues, event));
        }
        self.arrived.insert(number, chunk);
    }
}
