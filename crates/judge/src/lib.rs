//! Tasks, grading, baselines, red-team campaigns, intervals and gates.
