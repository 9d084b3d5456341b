//! Named tensors and training state on disk: checksummed, atomic, resumable.
