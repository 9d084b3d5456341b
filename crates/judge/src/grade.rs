//! Graders: from an answer and the right answer to a number from 0 to 1.
//!
//! Both are first cut into terms ([`terms`]). *Exact match* asks whether the terms are the same, *token
//! F1* how many are shared, as in the evaluation of SQuAD v1.1 (Rajpurkar et al. 2016, section 6.1).
//! SQuAD deletes all punctuation, which would make `Vec::push` one word and `-5` equal to `5`; here
//! punctuation cuts, and what carries meaning in code or in a number is kept.
//!
//! ```
//! use judge::Grader;
//! let right = "It returns `Option<T>`.";
//! assert_eq!(Grader::ExactMatch.grade("it returns Option<T>", right), 1.0);
//! assert!(Grader::TokenF1.grade("It returns `Result<T>`.", right) > 0.5);
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

/// How an answer is compared with the right one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grader {
    /// 1 when the normalised terms are the same, else 0.
    ExactMatch,
    /// The harmonic mean of precision and recall over the normalised terms.
    TokenF1,
    /// 1 when the last number of the answer is the last number of the right answer, else 0: for
    /// worked arithmetic, whose steps may be told in other words.
    FinalNumber,
}

impl Grader {
    /// All graders.
    pub const ALL: [Grader; 3] = [Self::ExactMatch, Self::TokenF1, Self::FinalNumber];

    /// The name used in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactMatch => "exact-match",
            Self::TokenF1 => "token-f1",
            Self::FinalNumber => "final-number",
        }
    }

    /// The grade, from 0 to 1.
    pub fn grade(self, prediction: &str, answer: &str) -> f64 {
        match self {
            Self::ExactMatch => exact_match(prediction, answer),
            Self::TokenF1 => token_f1(prediction, answer),
            Self::FinalNumber => final_number(prediction, answer),
        }
    }
}

/// A grader's name that is none.
#[derive(Debug, thiserror::Error)]
#[error("unknown grader {0:?}; expected exact-match, token-f1 or final-number")]
pub struct UnknownGrader(pub String);

impl FromStr for Grader {
    type Err = UnknownGrader;

    fn from_str(name: &str) -> Result<Self, UnknownGrader> {
        let found = Self::ALL.into_iter().find(|grader| grader.name() == name);
        found.ok_or_else(|| UnknownGrader(name.to_owned()))
    }
}

/// 1 when both texts have the same terms in the same order, else 0.
pub fn exact_match(prediction: &str, answer: &str) -> f64 {
    f64::from(terms(prediction) == terms(answer))
}

/// Harmonic mean of precision and recall over the terms, each counted as often as it occurs in both.
/// Two texts without terms agree (1); one without terms agrees with no other (0).
pub fn token_f1(prediction: &str, answer: &str) -> f64 {
    let (predicted, right) = (terms(prediction), terms(answer));
    if predicted.is_empty() || right.is_empty() {
        return f64::from(predicted == right);
    }
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    right.iter().for_each(|term| *left.entry(term).or_default() += 1);
    let mut shared = 0usize;
    for term in &predicted {
        if let Some(count) = left.get_mut(term.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    2.0 * shared as f64 / (predicted.len() + right.len()) as f64
}

fn final_number(prediction: &str, answer: &str) -> f64 {
    let last = |text: &str| terms(text).into_iter().rev().find(|term| is_number(term));
    match (last(prediction), last(answer)) {
        (Some(predicted), Some(right)) => f64::from(same_number(&predicted, &right)),
        _ => 0.0,
    }
}

fn is_number(term: &str) -> bool {
    term.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
        && term.parse::<f64>().is_ok()
}

fn same_number(one: &str, other: &str) -> bool {
    one == other || matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

/// The normalised terms of a text, in order.
///
/// - Letters are lower-cased; a run of letters, digits and `_` is one term, so identifiers stay whole.
/// - `.` and `,` between digits stay in the number (`,` is dropped from it: `1,000` is `1000`); a `-`
///   directly before a digit and not after a word or a number is the number's sign.
/// - The operators `& * + - / % = < > | ^ ~ @ #` are terms of their own; `!` and `?` are when a
///   character other than white space follows (`!=`, `vec![`), since at the end they close a sentence.
/// - All other punctuation (quotes, back-ticks, brackets, `:` `;` `.` `,`) only cuts.
/// - `a`, `an` and `the` before white space and a letter are dropped, as in SQuAD; elsewhere they are
///   names (`a + b`, `'a`).
pub fn terms(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let end = if starts_number(&chars, i) {
            number_end(&chars, i)
        } else if is_word(chars[i]) {
            word_end(&chars, i)
        } else {
            i + 1
        };
        let run = &chars[i..end];
        if run.iter().any(|&c| is_word(c)) {
            if !is_article(&chars, i, end) {
                let kept = run.iter().filter(|&&c| c != ',');
                out.push(kept.flat_map(|c| c.to_lowercase()).collect());
            }
        } else if is_operator(&chars, i) {
            out.push(chars[i].to_string());
        }
        i = end;
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn starts_number(chars: &[char], i: usize) -> bool {
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let after_word = i > 0 && (is_word(chars[i - 1]) || matches!(chars[i - 1], ')' | ']'));
    digit(i) || (chars[i] == '-' && digit(i + 1) && !after_word)
}

/// The end of a number that may be followed by letters (`3rd`, `0xff`, `5_u8`).
fn number_end(chars: &[char], start: usize) -> usize {
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let mut end = start + 1;
    while end < chars.len() {
        let inside = matches!(chars[end], '.' | ',') && digit(end - 1) && digit(end + 1);
        if !is_word(chars[end]) && !inside {
            break;
        }
        end += 1;
    }
    end
}

fn word_end(chars: &[char], start: usize) -> usize {
    chars[start..].iter().position(|&c| !is_word(c)).map_or(chars.len(), |length| start + length)
}

fn is_article(chars: &[char], start: usize, end: usize) -> bool {
    let word: String = chars[start..end].iter().flat_map(|c| c.to_lowercase()).collect();
    if !matches!(word.as_str(), "a" | "an" | "the") || (start > 0 && chars[start - 1] == '\'') {
        return false;
    }
    let rest = &chars[end..];
    let blanks = rest.iter().take_while(|c| c.is_whitespace()).count();
    // `a` before quoted code is an article too: "a `Vec`".
    blanks > 0 && rest.get(blanks).is_some_and(|&c| c.is_alphabetic() || matches!(c, '`' | '"'))
}

fn is_operator(chars: &[char], i: usize) -> bool {
    match chars[i] {
        '&' | '*' | '+' | '-' | '/' | '%' | '=' | '<' | '>' | '|' | '^' | '~' | '@' | '#' => true,
        '!' | '?' => chars.get(i + 1).is_some_and(|c| !c.is_whitespace()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_terms(text: &str, expected: &str) {
        assert_eq!(terms(text).join(" "), expected, "{text}");
    }

    #[test]
    fn terms_of_prose_follow_squad() {
        check_terms("The  Normans, a people of France.", "normans people of france");
        check_terms("\u{201c}Yes!\u{201d} Is it? An end.", "yes ! is it end");
        check_terms("", "");
        check_terms(" .,;: ", "");
    }

    #[test]
    fn terms_of_code_keep_what_carries_meaning() {
        check_terms("`Vec::push(&mut self, value: T)`", "vec push & mut self value t");
        check_terms("a + b != 'a", "a + b ! = a");
        check_terms("a `Vec` of u8", "vec of u8");
        check_terms("snake_case -> Option<T>", "snake_case - > option < t >");
        check_terms("vec![1, 2]?", "vec ! 1 2");
    }

    #[test]
    fn numbers_keep_sign_and_point() {
        check_terms("It is -5, not 5.", "it is -5 not 5");
        check_terms("7-5 = 2.0", "7 - 5 = 2.0");
        check_terms("1,000 and 3.14.", "1000 and 3.14");
        check_terms("(3) - 4; (3)-4", "3 - 4 3 - 4");
    }

    fn check_f1(prediction: &str, answer: &str, expected: f64) {
        let found = token_f1(prediction, answer);
        assert!((found - expected).abs() < 1e-12, "{prediction} | {answer}: {found}");
    }

    #[test]
    fn f1_is_the_harmonic_mean_of_precision_and_recall() {
        check_f1("Denver Broncos", "the Denver Broncos", 1.0);
        // Precision 1/2, recall 1/1.
        check_f1("Denver Colorado", "Denver", 2.0 / 3.0);
        // A repeated term counts once when the answer has it once: precision 1/4.
        check_f1("yes yes yes yes", "yes", 0.4);
        check_f1("no", "yes", 0.0);
        check_f1("", "yes", 0.0);
        check_f1("yes", "", 0.0);
        check_f1("", " . ", 1.0);
    }

    #[test]
    fn graders_are_found_by_name() {
        for grader in Grader::ALL {
            assert_eq!(grader.name().parse::<Grader>().unwrap(), grader);
            assert_eq!(serde_json::to_value(grader).unwrap(), grader.name());
        }
        assert!("f1".parse::<Grader>().unwrap_err().to_string().contains("token-f1"));
    }

    #[test]
    fn the_final_number_decides() {
        let right = "3 + 4 = 7, and 7 - 9 = -2. The answer is -2.";
        for (prediction, expected) in
            [("So it is -2.", 1.0), ("-2.0", 1.0), ("It is 2.", 0.0), ("No idea.", 0.0)]
        {
            assert_eq!(Grader::FinalNumber.grade(prediction, right), expected, "{prediction}");
        }
        assert_eq!(Grader::FinalNumber.grade("1000", "1,000"), 1.0);
    }

    proptest::proptest! {
        #[test]
        fn grades_of_any_text_are_shares_and_symmetric(a in ".*", b in ".*") {
            for grader in Grader::ALL {
                let grade = grader.grade(&a, &b);
                proptest::prop_assert!((0.0..=1.0).contains(&grade));
                proptest::prop_assert_eq!(grade, grader.grade(&b, &a));
            }
            proptest::prop_assert_eq!(token_f1(&a, &a), 1.0);
        }
    }
}
