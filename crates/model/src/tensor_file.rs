//! Tensors in safetensors files: f32 out, and f32, bf16 or f16 in.

use crate::error::Error;
use safetensors::tensor::{Dtype, View};
use safetensors::{SafeTensorError, SafeTensors};
use std::borrow::Cow;
use std::path::Path;

/// An f32 tensor to be written.
pub(crate) struct F32View<'a> {
    pub shape: &'a [usize],
    pub data: &'a [f32],
}

impl View for F32View<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.data.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        4 * self.data.len()
    }
}

/// Reads a tensor of a known shape into `out`, widening 16-bit formats.
pub(crate) fn read_f32(
    path: &Path,
    file: &SafeTensors<'_>,
    name: &str,
    shape: &[usize],
    out: &mut [f32],
) -> Result<(), Error> {
    let unexpected = |what: &str, expected: String, found: String| Error::UnexpectedContent {
        path: path.to_owned(),
        what: format!("{what} of tensor `{name}`"),
        expected,
        found,
    };
    let tensor = file.tensor(name).map_err(|source| match source {
        SafeTensorError::TensorNotFound(_) => {
            unexpected("presence", "a tensor".to_owned(), "none".to_owned())
        }
        source => Error::Safetensors { path: path.to_owned(), source },
    })?;
    if tensor.shape() != shape {
        return Err(unexpected("shape", format!("{shape:?}"), format!("{:?}", tensor.shape())));
    }
    let bytes = tensor.data();
    match tensor.dtype() {
        Dtype::F32 => {
            let (values, _) = bytes.as_chunks::<4>();
            out.iter_mut().zip(values).for_each(|(x, b)| *x = f32::from_le_bytes(*b));
        }
        Dtype::BF16 => {
            let (values, _) = bytes.as_chunks::<2>();
            out.iter_mut().zip(values).for_each(|(x, b)| *x = widen_bf16(u16::from_le_bytes(*b)));
        }
        Dtype::F16 => {
            let (values, _) = bytes.as_chunks::<2>();
            out.iter_mut().zip(values).for_each(|(x, b)| *x = widen_f16(u16::from_le_bytes(*b)));
        }
        other => {
            let expected = "F32, BF16 or F16".to_owned();
            return Err(unexpected("data type", expected, format!("{other:?}")));
        }
    }
    Ok(())
}

/// bf16 is the upper half of an f32.
fn widen_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// IEEE 754 half precision: 1 sign, 5 exponent and 10 fraction bits.
fn widen_f16(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_widened_exactly() {
        let check = |bits, expected: f32| assert_eq!(widen_f16(bits), expected, "{bits:#06x}");
        check(0x3c00, 1.0);
        check(0xc000, -2.0);
        check(0x7bff, 65504.0);
        check(0x0001, 5.960_464_5e-8);
        check(0x3555, 0.333_251_95);
        check(0xfc00, f32::NEG_INFINITY);
        assert!(widen_f16(0x7e00).is_nan());
        assert_eq!(widen_bf16(0x4049), 3.140_625);
    }
}
