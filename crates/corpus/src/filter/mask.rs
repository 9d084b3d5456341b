//! Personal data and secrets are replaced by placeholders.
//!
//! - **E-mail addresses** become `<email>`; `git@host` is the name of a service and stays.
//! - **IP addresses** become `<ip>` where they could name somebody's machine: addresses that are
//!   loopback, unspecified, private, link-local, multicast, broadcast or reserved for documentation
//!   stay. A dotted quad is taken for a version number and stays where it follows a letter, `version`
//!   or an operator of versions (`^`, `~`, `=`), is part of a longer dotted number, or has only parts
//!   below ten (`1.2.3.4`, `8.8.8.8`: versions and public resolvers, no person's).
//! - **Keys** become `<key>`: AWS access keys, GitHub, GitLab, Slack, Stripe, OpenAI and Google tokens, JSON web
//!   tokens, bearer tokens, private key blocks.

use crate::settings::Masking;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// How many places were replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Masked {
    pub(crate) emails: u64,
    pub(crate) ip_addresses: u64,
    pub(crate) keys: u64,
}

// The patterns are constants, and a test compiles each.
macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($text).ok());
    };
}

pattern!(
    EMAIL,
    r"(?i)\b[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}\b"
);
pattern!(QUAD, r"(?:[0-9]+\.)+[0-9]+");
pattern!(IPV6, r"(?i)\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}");
pattern!(
    KEY,
    concat!(
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"|\bgh[pousr]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_[A-Za-z0-9_]{22,255}\b|\bglpat-[A-Za-z0-9_-]{20,}",
        r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\b[rs]k_live_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{32,}",
        r"|\bAIza[0-9A-Za-z_-]{35}\b",
        r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        r"|(?s:-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)",
    )
);
pattern!(BEARER, r"(?i)\b(bearer\s+)([a-z0-9._~+/-]{20,}=*)");

/// Replaces what the settings name.
pub(crate) fn mask(text: &str, settings: &Masking) -> (Option<String>, Masked) {
    let mut masked = Masked::default();
    let mut out = Cow::Borrowed(text);
    if settings.keys {
        out = replace(out, &KEY, |_| Some("<key>".into()), &mut masked.keys);
        if out.contains("earer") || out.contains("EARER") {
            out = replace(out, &BEARER, bearer, &mut masked.keys);
        }
    }
    if settings.emails && out.contains('@') {
        out = replace(out, &EMAIL, email, &mut masked.emails);
    }
    if settings.ip_addresses {
        out = replace_quads(out, &mut masked.ip_addresses);
        if out.contains(':') {
            out = replace(out, &IPV6, ipv6, &mut masked.ip_addresses);
        }
    }
    match out {
        Cow::Owned(out) if masked != Masked::default() => (Some(out), masked),
        _ => (None, masked),
    }
}

fn replace<'a>(
    text: Cow<'a, str>,
    pattern: &LazyLock<Option<Regex>>,
    with: impl Fn(&Captures<'_>) -> Option<String>,
    count: &mut u64,
) -> Cow<'a, str> {
    let Some(pattern) = pattern.as_ref() else { return text };
    if !pattern.is_match(&text) {
        return text;
    }
    let replaced = pattern.replace_all(&text, |found: &Captures<'_>| match with(found) {
        Some(placeholder) => {
            *count += 1;
            placeholder
        }
        None => found[0].to_owned(),
    });
    Cow::Owned(replaced.into_owned())
}

fn email(found: &Captures<'_>) -> Option<String> {
    (!found[0].to_ascii_lowercase().starts_with("git@")).then(|| "<email>".into())
}

/// Real tokens hold a digit; `Bearer authentication-scheme-name` does not.
fn bearer(found: &Captures<'_>) -> Option<String> {
    found[2].contains(|c: char| c.is_ascii_digit()).then(|| format!("{}<key>", &found[1]))
}

fn ipv6(found: &Captures<'_>) -> Option<String> {
    let address: Ipv6Addr = found[0].parse().ok()?;
    let [first, second, ..] = address.segments();
    // Global unicast (RFC 4291) but for the documentation prefixes (RFC 3849, RFC 9637).
    let global = (0x2000..0x4000).contains(&first);
    let documentation = (first == 0x2001 && second == 0xdb8) || first == 0x3fff;
    (global && !documentation).then(|| "<ip>".into())
}

fn replace_quads<'a>(text: Cow<'a, str>, count: &mut u64) -> Cow<'a, str> {
    let Some(pattern) = QUAD.as_ref() else { return text };
    let mut out = String::new();
    let mut copied = 0;
    for found in pattern.find_iter(&text) {
        let before = &text[..found.start()];
        let after = text[found.end()..].chars().next();
        let named = after.is_some_and(|c| c.is_alphabetic() || c == '_');
        if !named && is_address(found.as_str()) && !is_version_after(before) {
            out.push_str(&text[copied..found.start()]);
            out.push_str("<ip>");
            copied = found.end();
            *count += 1;
        }
    }
    if copied == 0 {
        return text;
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn is_address(text: &str) -> bool {
    let Ok(address) = text.parse::<Ipv4Addr>() else { return false };
    let small = address.octets().iter().all(|&part| part < 10);
    !(small
        || address.is_private()
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || address.octets()[0] == 0)
}

fn is_version_after(before: &str) -> bool {
    let attached = before.chars().next_back();
    if attached.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '^' | '~' | '=' | '-')) {
        return true;
    }
    let words =
        before.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ':' | '='));
    tail(words).ends_with("version")
}

/// The last few characters in lower case.
fn tail(text: &str) -> String {
    let tail: Vec<char> = text.chars().rev().take(8).collect();
    tail.into_iter().rev().collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let (masked, _) = mask(text, &Masking::default());
        assert_eq!(masked.as_deref().unwrap_or(text), expected);
    }

    #[test]
    fn patterns_compile() {
        assert!([&EMAIL, &QUAD, &IPV6, &KEY, &BEARER].iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn emails_are_masked() {
        check("write to Ann.Lee+x@mail.example.org.", "write to <email>.");
        check("git@github.com:a/b.git", "git@github.com:a/b.git");
        check("let x @ 1..=5 = y; a@b", "let x @ 1..=5 = y; a@b");
        check("<a@b.io>", "<<email>>");
    }

    #[test]
    fn public_addresses_are_masked_and_versions_are_not() {
        check("from 93.184.216.34:80", "from <ip>:80");
        for same in [
            "127.0.0.1 0.0.0.0 192.168.1.1 10.0.0.7 255.255.255.255 192.0.2.44 224.0.0.1",
            "1.2.3.4 and 8.8.8.8",
            "version 10.0.22.1 and v12.40.1.2 and =14.0.0.22 and Version: 11.12.13.14",
            "1.20.30.40.50 and 300.1.1.1 and 1.20.30",
            "::1 fe80::1 2001:db8::7 std::collections a::b::c 12:30:45",
        ] {
            check(same, same);
        }
        check("at 2a00:1450:4001:81b::200e now", "at <ip> now");
    }

    #[test]
    fn keys_are_masked() {
        check("id AKIAIOSFODNN7EXAMPLE.", "id <key>.");
        check(&format!("ghp_{}", "a1".repeat(18)), "<key>");
        check("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer <key>");
        check("Bearer authentication-scheme-name", "Bearer authentication-scheme-name");
        check(
            "a\n-----BEGIN RSA PRIVATE KEY-----\nx\ny\n-----END RSA PRIVATE KEY-----\nb",
            "a\n<key>\nb",
        );
    }

    #[test]
    fn places_are_counted() {
        let (_, masked) = mask("a@b.org c@d.org 93.184.216.34", &Masking::default());
        assert_eq!(masked, Masked { emails: 2, ip_addresses: 1, keys: 0 });
        let off = Masking { emails: false, ip_addresses: false, keys: false };
        assert_eq!(mask("a@b.org 93.184.216.34", &off), (None, Masked::default()));
    }
}
