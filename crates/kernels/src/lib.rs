//! Numeric loops on slices: one operation a file, forward and backward together.
