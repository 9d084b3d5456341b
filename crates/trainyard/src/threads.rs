//! The threads that compute.

use crate::error::{Failure, Kind, Result};
use kernels::Pool;
use std::sync::Arc;

/// How many cores there are to compute on.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A pool of as many threads as were asked for, or as there are cores.
pub fn pool(given: Option<usize>) -> Result<Arc<Pool>> {
    let threads = given.unwrap_or_else(cores);
    if (1..=1024).contains(&threads) {
        return Ok(Arc::new(Pool::new(threads)));
    }
    Err(Failure::new(Kind::Usage, format!("--threads is {threads}, expected 1 to 1024")))
}
