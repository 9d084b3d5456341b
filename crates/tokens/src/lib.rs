//! Tokenizer, chat template, mixture, token shards, packing and the loader.
