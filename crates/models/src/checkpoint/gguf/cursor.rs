//! Reading forward through bytes that nobody vouches for. Nothing is taken before it is known to be there.

/// A position in the bytes of a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why the reading stopped, in words for the user.
pub(super) type Problem = String;

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Problem> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..length).ok_or_else(|| {
            format!("{length} bytes are needed at byte {}, but only {} are left", self.at, rest.len())
        })?;
        self.at += length;
        Ok(taken)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        self.take(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes were taken")))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        self.take(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes were taken")))
    }

    /// A number of things to come that take at least `least` bytes each: no more than fit into the rest of the file.
    pub(super) fn count(&mut self, least: usize) -> Result<usize, Problem> {
        let at = self.at;
        let count = self.u64()?;
        let most = self.remaining() / least;
        usize::try_from(count).ok().filter(|&count| count <= most).ok_or_else(|| {
            format!("a count of {count} at byte {at}, but the rest of the file has room for {most} at most")
        })
    }

    /// A length of eight bytes, and that many bytes of UTF-8.
    pub(super) fn text(&mut self) -> Result<&'a str, Problem> {
        let length = self.count(1)?;
        let at = self.at;
        std::str::from_utf8(self.take(length)?).map_err(|error| format!("the text at byte {at} is not UTF-8: {error}"))
    }
}
