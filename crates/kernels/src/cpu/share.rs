//! A slice that several pieces of work write to, each its own part.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice whose parts are handed out to pieces that run at the same time.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    length: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: it is a mutable slice whose parts are only taken through `part`, whose callers vouch that
// no two overlap in time; elements move to other threads, hence `T: Send`.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Shared<'a, T> {
        Shared { start: slice.as_mut_ptr(), length: slice.len(), life: PhantomData }
    }

    /// A part of the slice.
    ///
    /// # Safety
    /// No other part that overlaps may be alive.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.length, "part {range:?} is outside");
        // SAFETY: the range is inside the slice, and the caller vouches that nothing overlaps.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Where the slice starts, for loops that keep to their own elements by themselves.
    #[inline]
    pub(crate) fn start(&self) -> *mut T {
        self.start
    }
}
