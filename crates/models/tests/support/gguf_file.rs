//! GGUF files, made byte by byte.
#![allow(dead_code, reason = "every test program takes what it needs")]

/// A GGUF file under construction. What the fields say need not be true.
#[derive(Clone, Default)]
pub struct Gguf {
    values: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
}

pub fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    [&(text.len() as u64).to_le_bytes()[..], text].concat()
}

fn value(key: &str, kind: u32, bytes: &[u8]) -> Vec<u8> {
    [&text(key)[..], &kind.to_le_bytes(), bytes].concat()
}

pub fn array(kind: u32, count: u64, elements: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes(), elements].concat()
}

fn tensor(name: &str, dims: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let mut bytes = text(name);
    bytes.extend((dims.len() as u32).to_le_bytes());
    bytes.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes
}

impl Gguf {
    pub fn text(mut self, key: &str, content: &str) -> Self {
        self.values.push(value(key, 8, &text(content)));
        self
    }

    pub fn u32(mut self, key: &str, number: u32) -> Self {
        self.values.push(value(key, 4, &number.to_le_bytes()));
        self
    }

    pub fn texts(mut self, key: &str, texts: &[&str]) -> Self {
        let elements: Vec<u8> = texts.iter().flat_map(text).collect();
        self.values.push(value(key, 9, &array(8, texts.len() as u64, &elements)));
        self
    }

    pub fn value(mut self, key: &str, kind: u32, bytes: &[u8]) -> Self {
        self.values.push(value(key, kind, bytes));
        self
    }

    pub fn f32(self, key: &str, number: f32) -> Self {
        self.value(key, 6, &number.to_le_bytes())
    }

    pub fn tensor(mut self, name: &str, dims: &[u64], kind: u32, offset: u64) -> Self {
        self.tensors.push(tensor(name, dims, kind, offset));
        self
    }

    /// A tensor of F32 and its numbers, after those that are there.
    pub fn numbers(mut self, name: &str, shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> Self {
        let (dims, offset) = (shape.iter().rev().map(|dim| *dim as u64).collect::<Vec<_>>(), self.data.len() as u64);
        self.data.extend(numbers.into_iter().flat_map(f32::to_le_bytes));
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self.tensor(name, &dims, 0, offset)
    }

    pub fn data(mut self, length: usize) -> Self {
        self.data = vec![0x3c; length];
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let counts = [self.tensors.len() as u64, self.values.len() as u64];
        let mut bytes = [b"GGUF".as_slice(), &3u32.to_le_bytes()].concat();
        bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        bytes.extend(self.values.iter().chain(&self.tensors).flatten());
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(&self.data);
        bytes
    }
}
