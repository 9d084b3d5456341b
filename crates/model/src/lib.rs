//! The transformer: configuration, forward and backward, generation, scoring, Hugging Face export.
