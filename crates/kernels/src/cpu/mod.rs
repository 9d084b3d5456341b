//! What the operations share on a processor: instruction sets chosen at run time, vectors, the
//! matrix kernel and its packing, scratch memory.

pub(crate) mod attention;
pub(crate) mod gemm;
pub(crate) mod lanes;
pub(crate) mod level;
pub(crate) mod math;
pub(crate) mod pack;
pub(crate) mod scratch;
pub(crate) mod share;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod tile;
