//! Scratch memory that is reused from call to call.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// A cache line: what scratch is aligned to.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// A buffer aligned to cache lines. Its contents are whatever the last use left.
#[derive(Default)]
pub(crate) struct Buffer(Vec<Line>);

impl Buffer {
    /// At least `length` floats.
    pub(crate) fn floats(&mut self, length: usize) -> &mut [f32] {
        let lines = length.div_ceil(16);
        if self.0.len() < lines {
            self.0 = vec![Line([0.0; 16]); lines];
        }
        // SAFETY: a Line is sixteen floats without padding, and `lines` of them are there.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), length) }
    }
}

thread_local! {
    static BUFFER: Cell<Buffer> = const { Cell::new(Buffer(Vec::new())) };
}

/// Lends `length` floats of this thread's buffer. A use inside another gets a new buffer.
pub(crate) fn with_thread_scratch<R>(length: usize, body: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut buffer = BUFFER.take();
    let result = body(buffer.floats(length));
    BUFFER.set(buffer);
    result
}

/// Buffers of a pool: a stack, so that uses inside each other find the same buffers every time.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Buffer>>);

impl Buffers {
    /// Takes a buffer of `length` floats until the guard is dropped.
    pub(crate) fn take(&self, length: usize) -> Taken<'_> {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = buffer.unwrap_or_default();
        buffer.floats(length);
        Taken { buffers: self, buffer, length }
    }
}

/// A buffer in use.
pub(crate) struct Taken<'a> {
    buffers: &'a Buffers,
    buffer: Buffer,
    length: usize,
}

impl Deref for Taken<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `take` made the buffer at least this long; a Line is sixteen floats.
        unsafe { std::slice::from_raw_parts(self.buffer.0.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut [f32] {
        self.buffer.floats(self.length)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.buffers.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}
