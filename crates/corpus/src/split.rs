//! Which side of the split a document is on.
//!
//! The draw is made for a *group*, so that near-identical documents never stand on both sides. The
//! group of a document is its address without host, query and fragment, in lower case, where
//! - the endings of files and a closing `index` are left out,
//! - names are cut into words at punctuation and at changes of case,
//! - Rust's primitive numeric types become `int` or `float` (so `primitive.u8` and `primitive.i64`,
//!   `AtomicU8` and `AtomicU32` are one group) and the suffixes `mut` and `unchecked` are left out,
//! - other digits are left out, unless nothing but digits and single letters would tell the document
//!   from its neighbours (`E0004` stays `e0004`).
//!
//! Files under a `Cargo.toml` are grouped by the package's name, so that two versions of one crate stay
//! together. Arithmetic problems are grouped by operation and operands.

use base::{Hasher, Seed, Split};

/// The side of a group. `share` is the part that is held out.
pub fn side(seed: Seed, share: f64, group: &str) -> Split {
    let seed = seed.derive("split");
    let draw = Hasher::new().field(&seed.0.to_le_bytes()).field(group.as_bytes()).finish().prefix();
    // 53 bits, as in a uniform double.
    let uniform = (draw >> 11) as f64 / (1u64 << 53) as f64;
    if uniform < share { Split::HeldOut } else { Split::Train }
}

/// The group of an address or a relative path.
pub fn group(url: &str) -> String {
    let path =
        url.split_once("://").map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, p)| p));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let last = parts.len().saturating_sub(1);
    let name = |(i, part): (usize, &&str)| {
        let stem = if i == last { without_ending(part) } else { part };
        normalise(stem)
    };
    let names: Vec<String> =
        parts.iter().enumerate().map(name).filter(|name| name != "index").collect();
    names.join("/")
}

/// The group of a file in a package: the package's name without its version.
pub fn package_group(directory: &str) -> String {
    let version = directory.rmatch_indices('-').find(|(at, _)| {
        directory[at + 1..].chars().next().is_some_and(|c| c.is_ascii_digit())
            && directory[at + 1..].contains('.')
    });
    format!("package {}", version.map_or(directory, |(at, _)| &directory[..at]))
}

fn without_ending(name: &str) -> &str {
    let mut name = name;
    for ending in [".gz", ".zst", ".html", ".htm", ".xhtml", ".txt", ".md", ".rs"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    name
}

fn normalise(name: &str) -> String {
    let words = words(name);
    let plain: Vec<String> = words.iter().filter_map(|word| normal_word(word)).collect();
    let telling = plain.iter().any(|word| word.chars().count() > 2);
    if telling { plain.join(".") } else { name.to_lowercase() }
}

/// `AtomicU8` gives `atomic u8`, `from_utf8_mut` gives `from utf8 mut`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let new_word = !c.is_alphanumeric() || (c.is_uppercase() && !before.is_uppercase());
        if new_word {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn normal_word(word: &str) -> Option<String> {
    match word {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128"
        | "isize" => Some("int".into()),
        "f16" | "f32" | "f64" | "f128" => Some("float".into()),
        "mut" | "unchecked" => None,
        _ => Some(word.chars().filter(|c| !c.is_ascii_digit()).collect::<String>())
            .filter(|w| !w.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_identical_addresses_share_a_group() {
        let same = |a: &str, b: &str| assert_eq!(group(a), group(b));
        same("std/primitive.u8.html", "std/primitive.isize.html");
        same("std/sync/atomic/struct.AtomicU8.html", "std/sync/atomic/struct.AtomicI64.html");
        same("std/str/fn.from_utf8.html", "std/str/fn.from_utf8_mut.html");
        same("https://a.org/x/", "http://b.org/x/index.html?y=1#z");
        same("u8/constant.MAX.html", "i16/constant.MAX.html");
    }

    #[test]
    fn different_addresses_do_not() {
        let differ = |a: &str, b: &str| assert_ne!(group(a), group(b));
        differ("error_codes/E0004.html", "error_codes/E0005.html");
        differ("std/vec/struct.Vec.html", "std/vec/struct.Drain.html");
        differ("book/ch04-01-what-is-ownership.html", "book/ch04-02-references-and-borrowing.html");
        differ("std/primitive.u8.html", "std/primitive.f64.html");
    }

    #[test]
    fn versions_of_a_package_share_a_group() {
        assert_eq!(package_group("serde-1.0.200"), "package serde");
        assert_eq!(package_group("windows-sys-0.52.0"), "package windows-sys");
        assert_eq!(package_group("rand_core-0.9.0-rc.1"), "package rand_core");
        assert_eq!(package_group("my-project-2"), "package my-project-2");
    }

    #[test]
    fn the_share_is_kept() {
        let held = |i| side(Seed(1), 0.1, &format!("g{i}")) == Split::HeldOut;
        let count = (0..10_000).filter(|&i| held(i)).count();
        assert!((850..1_150).contains(&count), "{count}");
        assert_eq!(side(Seed(1), 0.0, "g"), Split::Train);
    }
}
