//! Which pages belong to which sequence.

use std::ops::Range;

use crate::Error;

/// The pages of all sequences, and those that are free.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Tokens of a page.
    size: usize,
    /// Of each sequence, in the order of its tokens.
    tables: Vec<Vec<usize>>,
    /// The last is given out next.
    free: Vec<usize>,
}

impl Pages {
    pub fn new(pages: usize, size: usize, batch: usize) -> Self {
        Pages { size, tables: vec![Vec::new(); batch], free: (0..pages).rev().collect() }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn tables(&self) -> &[Vec<usize>] {
        &self.tables
    }

    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Gives sequences the pages they need for so many tokens, or gives none of them any.
    pub fn take(&mut self, tokens: impl Iterator<Item = (usize, usize)>) -> Result<(), Error> {
        let missing = |b: usize, tokens: usize| tokens.div_ceil(self.size).saturating_sub(self.tables[b].len());
        let wanted: Vec<(usize, usize)> = tokens.map(|(b, tokens)| (b, missing(b, tokens))).collect();
        let need: usize = wanted.iter().map(|(_, pages)| pages).sum();
        if need > self.free.len() {
            let fits =
                format!("up to {}, as many as are free: truncate a sequence, or make more pages", self.free.len());
            return Err(Error::Fit { what: "the number of new pages", got: need, fits });
        }
        for (b, pages) in wanted {
            let rest = self.free.len() - pages;
            self.tables[b].extend(self.free.drain(rest..).rev());
        }
        Ok(())
    }

    /// Takes back what sequence b does not need for so many tokens.
    pub fn release(&mut self, b: usize, tokens: usize) {
        let kept = tokens.div_ceil(self.size).min(self.tables[b].len());
        self.free.extend(self.tables[b].drain(kept..).rev());
    }

    /// Where `new` tokens of sequence b go from token `start` on: page, place in the page, and which of the new ones.
    pub fn places(
        &self,
        b: usize,
        start: usize,
        new: usize,
    ) -> impl Iterator<Item = (usize, usize, Range<usize>)> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            (done < new).then(|| {
                let (page, at) = (self.tables[b][(start + done) / self.size], (start + done) % self.size);
                let tokens = done..(done + self.size - at).min(new);
                done = tokens.end;
                (page, at, tokens)
            })
        })
    }
}
