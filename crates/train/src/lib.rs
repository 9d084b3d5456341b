//! Optimizer, schedules, the training step and the resumable loop.
