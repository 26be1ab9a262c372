//! Replies: a head of JSON and binary buffers, and how both lie in a frame.
//!
//! ```text
//! frame = u32 length of the head | head, JSON in UTF-8 | zeros to a multiple of 8 from the start of the frame
//!         | buffer | zeros to a multiple of 8 | buffer | …
//! ```

use ndarray::Array2;
use serde_json::{Value, json};

/// A reply, or a part of one that is still to come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// What the kind of the question says: a JSON object.
    pub head: Value,
    /// Numbers, little-endian, rows first.
    pub buffers: Vec<Vec<u8>>,
}

impl Reply {
    /// A head without buffers.
    pub fn new(head: Value) -> Self {
        Reply { head, buffers: Vec::new() }
    }

    /// One more buffer of f32.
    #[must_use]
    pub fn with<'a>(mut self, numbers: impl IntoIterator<Item = &'a f32>) -> Self {
        let mut bytes = Vec::new();
        numbers.into_iter().for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
        self.buffers.push(bytes);
        self
    }

    /// A matrix and an empty head.
    pub fn matrix(matrix: &Array2<f32>) -> Self {
        Reply::new(json!({})).with(matrix)
    }

    /// One more buffer of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: Vec<u8>) -> Self {
        self.buffers.push(bytes);
        self
    }

    /// The bytes in memory, about.
    pub fn bytes(&self) -> usize {
        self.buffers.iter().map(Vec::len).sum()
    }

    /// The reply as a frame. `part`: more are to come.
    pub fn frame(&self, part: bool) -> Vec<u8> {
        let mut head = self.head.clone();
        if let Value::Object(fields) = &mut head {
            let sizes: Vec<usize> = self.buffers.iter().map(Vec::len).collect();
            fields.insert("sizes".into(), sizes.into());
            fields.insert("part".into(), part.into());
        }
        let head = head.to_string();
        let mut frame =
            Vec::with_capacity(filled(4 + head.len()) + self.buffers.iter().map(|b| filled(b.len())).sum::<usize>());
        frame.extend_from_slice(&(head.len() as u32).to_le_bytes());
        frame.extend_from_slice(head.as_bytes());
        frame.resize(filled(frame.len()), 0);
        for buffer in &self.buffers {
            frame.extend_from_slice(buffer);
            frame.resize(filled(frame.len()), 0);
        }
        frame
    }
}

/// Up to a multiple of 8, so that a page can look at numbers where they lie.
fn filled(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_by_hand() {
        let reply = Reply::new(json!({})).with(&[1.0, -2.0, 0.5]).with_bytes(vec![7]);
        let frame = reply.frame(false);
        let head = json!({ "part": false, "sizes": [12, 1] });
        assert_eq!(frame[..4], 29u32.to_le_bytes());
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&frame[4..33]).unwrap(), head);
        assert_eq!(frame[33..40], [0; 7]);
        assert_eq!(frame[40..52], [0, 0, 128, 63, 0, 0, 0, 192, 0, 0, 0, 63]);
        assert_eq!(frame[52..], [0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    }
}
