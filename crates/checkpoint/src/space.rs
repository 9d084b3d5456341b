//! How much room the disk has.

use std::path::Path;

/// Bytes that this user may still write to the file system that holds `path` (its nearest directory that
/// exists); `None` where the system does not say. A quota may be tighter.
#[cfg(unix)]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let path = std::path::absolute(path).ok()?;
    let directory = path.ancestors().find(|p| p.exists())?;
    let stat = rustix::fs::statvfs(directory).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Bytes that this user may still write to the file system that holds `path`; `None`: this system is not
/// asked.
#[cfg(not(unix))]
pub fn free_bytes(_path: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_directory_that_is_not_there_yet_has_the_room_of_its_parent() {
        let directory = tempfile::tempdir().unwrap();
        assert!(free_bytes(&directory.path().join("a/b")).unwrap() > 0);
    }
}
