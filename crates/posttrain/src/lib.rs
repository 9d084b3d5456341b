//! SFT, preferences, reward model, rejection sampling and DPO: one alignment round.
