//! Shards against the published layout, windows against the row of tokens, damaged files.
#![allow(clippy::unwrap_used)]

use base::Seed;
use std::path::Path;
use tokens::shards::{Shard, ShardWriter, Width, open_all};
use tokens::{Error, Loader};

fn write(directory: &Path, width: Width, shard_tokens: u64, sequences: &[Vec<u32>]) -> Vec<String> {
    let mut writer = ShardWriter::new(directory, "train", width, shard_tokens);
    sequences.iter().for_each(|sequence| writer.push(sequence).unwrap());
    writer.finish().unwrap()
}

fn sequences() -> Vec<Vec<u32>> {
    (0..40u32)
        .map(|i| (0..1 + i * 7 % 23).map(|j| if j == 0 { 0 } else { i * 100 + j }).collect())
        .collect()
}

#[test]
fn the_index_has_the_published_bytes() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), Width::of(4096), 1000, &[vec![1, 2, 3], vec![258]]);
    let bin = std::fs::read(directory.path().join("train-00000.bin")).unwrap();
    assert_eq!(bin, [1, 0, 2, 0, 3, 0, 2, 1]);
    let mut expected = b"MMIDIDX\0\0".to_vec();
    expected.extend([1, 0, 0, 0, 0, 0, 0, 0, 8]);
    for number in [2u64, 3] {
        expected.extend(number.to_le_bytes());
    }
    for length in [3i32, 1] {
        expected.extend(length.to_le_bytes());
    }
    for number in [0i64, 6, 0, 1, 2] {
        expected.extend(number.to_le_bytes());
    }
    assert_eq!(std::fs::read(directory.path().join("train-00000.idx")).unwrap(), expected);
}

#[test]
fn sequences_come_back_from_any_width_and_number_of_shards() {
    for (width, shard_tokens) in [(Width::U16, 1), (Width::U16, 100), (Width::I32, 1 << 20)] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), width, shard_tokens, &sequences());
        let shards = open_all(directory.path(), "train").unwrap();
        let read: Vec<Vec<u32>> = shards
            .iter()
            .flat_map(|shard| (0..shard.num_sequences()).map(|i| shard.sequence(i).unwrap()))
            .collect();
        assert_eq!(read, sequences());
        assert!(shards[0].sequence(usize::MAX).unwrap().is_empty());
    }
    assert_eq!((Width::of(1 << 16), Width::of((1 << 16) + 1)), (Width::U16, Width::I32));
}

#[test]
fn no_sequences_make_one_empty_shard() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(write(directory.path(), Width::U16, 10, &[]), ["train-00000"]);
    let error = Loader::open(directory.path(), "train", 4, Seed(1)).unwrap_err();
    assert!(matches!(error, Error::TooFewTokens { found: 0, needed: 5, .. }));
    assert!(matches!(open_all(directory.path(), "held-out"), Err(Error::NoShards { .. })));
}

/// Every window in order, against the row of tokens made by hand.
#[test]
fn windows_cut_the_row_of_tokens() {
    let row: Vec<u32> = sequences().concat();
    let starts: Vec<usize> = (0..row.len()).filter(|&at| row[at] == 0).collect();
    for (seq_len, shard_tokens) in [(1, 30), (7, 30), (16, 1 << 20), (50, 1), (row.len() - 1, 64)] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), Width::U16, shard_tokens, &sequences());
        let loader = Loader::open(directory.path(), "train", seq_len, Seed(3)).unwrap();
        assert_eq!(loader.num_windows(), ((row.len() - 1) / seq_len) as u64);
        for index in 0..loader.num_windows() {
            let start = index as usize * seq_len;
            let window = loader.window_in_order(index).unwrap();
            assert_eq!(window.tokens, row[start..=start + seq_len]);
            let mut segments = vec![0];
            segments.extend(
                starts
                    .iter()
                    .filter(|&&at| start < at && at < start + seq_len)
                    .map(|at| (at - start) as u32),
            );
            assert_eq!(window.segments, segments, "window {index} of {seq_len}");
        }
    }
}

#[test]
fn each_epoch_reads_every_window_once_in_its_own_order() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), Width::U16, 100, &sequences());
    let loader = Loader::open(directory.path(), "train", 8, Seed(3)).unwrap();
    let windows = loader.num_windows();
    let epoch = |loader: &Loader, number: u64| -> Vec<Vec<u32>> {
        (number * windows..(number + 1) * windows)
            .map(|p| loader.window(p).unwrap().tokens)
            .collect()
    };
    let (first, second) = (epoch(&loader, 0), epoch(&loader, 1));
    let mut in_order: Vec<Vec<u32>> =
        (0..windows).map(|i| loader.window_in_order(i).unwrap().tokens).collect();
    assert!(first != second && first != in_order);
    assert_eq!((loader.epoch(windows - 1), loader.epoch(windows)), (0, 1));
    // Opened again, position by position, backwards: the same.
    let again = Loader::open(directory.path(), "train", 8, Seed(3)).unwrap();
    for position in (0..windows).rev() {
        assert_eq!(again.window(windows + position).unwrap().tokens, second[position as usize]);
    }
    for mut order in [first, second] {
        order.sort();
        in_order.sort();
        assert_eq!(order, in_order);
    }
}

fn check_damage(extension: &str, damage: impl FnOnce(&mut Vec<u8>), part: &str) {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), Width::U16, 1 << 20, &sequences());
    let path = directory.path().join(format!("train-00000.{extension}"));
    let mut bytes = std::fs::read(&path).unwrap();
    damage(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    let error = Loader::open(directory.path(), "train", 8, Seed(1)).unwrap_err().to_string();
    assert!(error.contains(&format!("train-00000.{extension}")) && error.contains(part), "{error}");
}

#[test]
fn damaged_shards_are_named() {
    check_damage("bin", |bytes| bytes.truncate(11), "found 11");
    check_damage("bin", |bytes| bytes.push(0), "as its index says");
    check_damage("idx", Vec::clear, "0 bytes");
    check_damage("idx", |bytes| bytes.truncate(30), "header");
    check_damage("idx", |bytes| bytes[0] = b'X', "MMIDIDX");
    check_damage("idx", |bytes| bytes[9] = 2, "version 1");
    check_damage("idx", |bytes| bytes[17] = 7, "type code");
    check_damage("idx", |bytes| bytes[18] = 41, "sequences");
    check_damage("idx", |bytes| bytes[25] = 0xff, "sequences");
    check_damage("idx", |bytes| bytes[34..38].fill(0xff), "lengths of 0 or more");
    check_damage("idx", |bytes| bytes[34] = 9, "sequence 1");
    check_damage("idx", |bytes| *bytes.last_mut().unwrap() = 1, "boundaries");
}

#[test]
fn a_missing_half_and_foreign_ids_are_named() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), Width::U16, 1 << 20, &sequences());
    let loader = Loader::open(directory.path(), "train", 8, Seed(1)).unwrap().limit_ids(50);
    let error = (0..loader.num_windows()).find_map(|p| loader.window(p).err()).unwrap().to_string();
    assert!(error.contains("train-00000.bin") && error.contains("ids below 50"), "{error}");
    // Cut off while it is open: an error, not a dead process.
    let bin = directory.path().join("train-00000.bin");
    std::fs::OpenOptions::new().write(true).open(&bin).unwrap().set_len(10).unwrap();
    let error = (0..loader.num_windows()).find_map(|p| loader.window(p).err()).unwrap().to_string();
    assert!(error.contains("train-00000.bin"), "{error}");
    std::fs::remove_file(&bin).unwrap();
    let error = Shard::open(&bin).unwrap_err().to_string();
    assert!(error.contains("train-00000.bin"), "{error}");
}

/// No byte of an index can be altered so that opening or reading panics.
#[test]
fn no_altered_byte_of_an_index_panics() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), Width::U16, 1 << 20, &sequences()[..6]);
    let path = directory.path().join("train-00000.idx");
    let bytes = std::fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut altered = bytes.clone();
            altered[at] = value;
            std::fs::write(&path, &altered).unwrap();
            if let Ok(loader) = Loader::open(directory.path(), "train", 4, Seed(1)) {
                (0..loader.num_windows()).for_each(|p| drop(loader.window(p)));
            }
        }
    }
}
