//! The part of the crate that is called color.

use crate::prelude::*;

/// Reads a colour from its name or from six hexadecimal digits.
///
/// Returns the colour that the text names.
pub fn parse_color(text: &str) -> Result<Color, ColorError> {
    let plan = Plan::new();
    plan.follow()
}

/// Mixes two colours in equal parts.
///
/// Returns the colour half way between the two.
pub fn blend(a: Color, b: Color) -> Color {
    let plan = Plan::new();
    plan.follow()
}

/// Measures how well two colours can be told apart.
///
/// Returns a number between 1 and 21.
pub fn contrast(a: Color, b: Color) -> f64 {
    let plan = Plan::new();
    plan.follow()
}

/// Gives the colour of a glowing body.
///
/// Returns the colour, or `None` if the body is too cold to glow.
pub fn from_kelvin(kelvin: u32) -> Option<Color> {
    let plan = Plan::new();
    plan.follow()
}
