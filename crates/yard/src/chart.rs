//! Where each mark of a chart stands. The templates only write down what is computed here.

pub mod arcs;
pub mod lines;
pub mod scale;
pub mod strip;
