//! Doubles as text, digit for digit as Mesos writes them.
//!
//! The digits come from Grisu2 (Loitsch, "Printing floating-point numbers quickly and accurately with integers", 2010): they
//! read back as the same double, and now and then are not the shortest that do. The layout of point and exponent is
//! that of JavaScript, with `.0` behind whole numbers.

/// Appends `value`: `1.0`, `0.1`, `1e21`, `"Infinity"`, `NaN`.
pub(crate) fn write(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        let text: &[u8] = match value {
            f64::INFINITY => b"\"Infinity\"",
            f64::NEG_INFINITY => b"\"-Infinity\"",
            _ => b"NaN",
        };
        out.extend_from_slice(text);
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: whole and small")]
    if value < EXACT && value.fract() == 0.0 {
        // Below 2^53 every whole number is its own shortest text.
        out.extend_from_slice(itoa::Buffer::new().format(value as u64).as_bytes());
        out.extend_from_slice(b".0");
        return;
    }
    let digits = grisu(value);
    layout(out, digits.text(), digits.exponent);
}

const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes `digits * 10^exponent`.
fn layout(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    let length = i32::try_from(digits.len()).unwrap_or(0);
    // The place of the point, counted from the first digit.
    let point = length + exponent;
    let zeros = |n: i32| std::iter::repeat_n(b'0', usize::try_from(n).unwrap_or(0));
    if 0 <= exponent && point <= 21 {
        out.extend_from_slice(digits);
        out.extend(zeros(exponent));
        out.extend_from_slice(b".0");
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else if -6 < point && point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(zeros(-point));
        out.extend_from_slice(digits);
    } else {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        out.extend_from_slice(itoa::Buffer::new().format(point - 1).as_bytes());
    }
}

/// Up to 17 digits and the power of ten of the last one.
struct Digits {
    buffer: [u8; 20],
    length: usize,
    exponent: i32,
}

impl Digits {
    fn text(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    fn push(&mut self, digit: u64) {
        self.buffer[self.length] = b'0' + (digit % 10) as u8;
        self.length += 1;
    }
}

/// A number `f * 2^e`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Wide {
    f: u64,
    e: i32,
}

impl Wide {
    fn of(value: f64) -> Self {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let biased = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
        if biased == 0 { Self { f: fraction, e: -1074 } } else { Self { f: fraction | 1 << 52, e: biased - 1075 } }
    }

    fn normal(self) -> Self {
        let shift = self.f.leading_zeros();
        Self { f: self.f << shift, e: self.e - shift.cast_signed() }
    }

    /// The product, rounded to 64 bits.
    fn times(self, other: Self) -> Self {
        let wide = u128::from(self.f) * u128::from(other.f);
        let high = (wide >> 64) as u64;
        let round = (wide >> 63 & 1) as u64;
        Self { f: high + round, e: self.e + other.e + 64 }
    }
}

/// The digits of a positive, finite, non-zero double.
fn grisu(value: f64) -> Digits {
    let own = Wide::of(value);
    let w = own.normal();
    // The neighbours' midpoints; the lower one is closer where the power of two changes.
    let upper = Wide { f: (own.f << 1) + 1, e: own.e - 1 }.normal();
    let lower = if own.f == 1 << 52 {
        Wide { f: (own.f << 2) - 1, e: own.e - 2 }
    } else {
        Wide { f: (own.f << 1) - 1, e: own.e - 1 }
    };
    let lower = Wide { f: lower.f << (lower.e - upper.e), e: upper.e };
    let (power, decimal) = cached_power(upper.e);
    let w = w.times(power);
    let mut high = upper.times(power);
    let mut low = lower.times(power);
    // The products are exact to one unit: stay inside what is surely between the midpoints.
    low.f += 1;
    high.f -= 1;
    generate(w, high, high.f - low.f, -decimal)
}

/// Digits of `high` until what is left is within `delta`, then moved towards `w`.
fn generate(w: Wide, high: Wide, mut delta: u64, exponent: i32) -> Digits {
    let mut digits = Digits { buffer: [0; 20], length: 0, exponent };
    let shift = -high.e;
    let one = 1u64 << shift;
    let distance = high.f - w.f;
    let mut whole = high.f >> shift;
    let mut fraction = high.f & (one - 1);
    let mut kappa = decimal_length(whole);
    while kappa > 0 {
        let unit = 10u64.pow(kappa - 1);
        let digit = whole / unit;
        whole %= unit;
        if digit != 0 || digits.length != 0 {
            digits.push(digit);
        }
        kappa -= 1;
        let rest = (whole << shift) + fraction;
        if rest <= delta {
            digits.exponent += kappa.cast_signed();
            round(&mut digits, delta, rest, unit << shift, distance);
            return digits;
        }
    }
    let mut places = 0;
    loop {
        fraction *= 10;
        delta *= 10;
        let digit = fraction >> shift;
        if digit != 0 || digits.length != 0 {
            digits.push(digit);
        }
        fraction &= one - 1;
        places += 1;
        if fraction < delta {
            digits.exponent -= places;
            // Mesos's JSON library does not scale the distance beyond eight places, and so moves nothing there. The text
            // still reads back as the same double.
            let distance = if places < 9 { distance.wrapping_mul(10u64.pow(places.unsigned_abs())) } else { 0 };
            round(&mut digits, delta, fraction, one, distance);
            return digits;
        }
    }
}

/// Lowers the last digit while that brings the text closer to the number.
fn round(digits: &mut Digits, delta: u64, mut rest: u64, unit: u64, distance: u64) {
    while rest < distance
        && delta - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        digits.buffer[digits.length - 1] -= 1;
        rest += unit;
    }
}

/// How many decimal digits a number below 2^32 has; 1 for 0.
fn decimal_length(n: u64) -> u32 {
    n.checked_ilog10().map_or(1, |log| log + 1)
}

/// A power of ten that brings a product's exponent into -60..=-32, and which one it is.
fn cached_power(e: i32) -> (Wide, i32) {
    // log10(2), so that the power is the first with at least the wanted exponent; steps of 8 from -348.
    let exact = f64::from(-61 - e) * std::f64::consts::LOG10_2 + 347.0;
    #[expect(clippy::cast_possible_truncation, reason = "at most 695")]
    let mut k = exact as i32;
    if exact - f64::from(k) > 0.0 {
        k += 1;
    }
    let index = (k >> 3) + 1;
    let place = usize::try_from(index).unwrap_or(0).min(POWERS.len() - 1);
    (POWERS[place], -348 + index * 8)
}

/// 10^-348, 10^-340, ... 10^340, each rounded to 64 bits.
static POWERS: [Wide; 87] = powers();

const fn powers() -> [Wide; 87] {
    let mut table = [Wide { f: 0, e: 0 }; 87];
    let mut i = 0;
    while i < 87 {
        table[i] = power_of_ten(-348 + 8 * i as i32);
        i += 1;
    }
    table
}

/// 10^k rounded to 64 bits, by exact arithmetic on 32-bit limbs.
const fn power_of_ten(k: i32) -> Wide {
    const LIMBS: usize = 80;
    let mut limbs = [0u32; LIMBS];
    let scale: i32;
    let mut i = 0;
    if k >= 0 {
        limbs[0] = 1;
        scale = 0;
        while i < k {
            let mut carry = 0u64;
            let mut j = 0;
            while j < LIMBS {
                let wide = limbs[j] as u64 * 10 + carry;
                limbs[j] = wide as u32;
                carry = wide >> 32;
                j += 1;
            }
            i += 1;
        }
    } else {
        // 2^(32 * 79) / 10^-k: far more bits than are kept, and what is cut off never reaches them.
        limbs[LIMBS - 1] = 1;
        scale = -32 * (LIMBS as i32 - 1);
        while i < -k {
            let mut rest = 0u64;
            let mut j = LIMBS;
            while j > 0 {
                j -= 1;
                let wide = rest << 32 | limbs[j] as u64;
                limbs[j] = (wide / 10) as u32;
                rest = wide % 10;
            }
            i += 1;
        }
    }
    let mut top = LIMBS - 1;
    while limbs[top] == 0 {
        top -= 1;
    }
    let mut bits = 32 * top as i32 + 32 - limbs[top].leading_zeros() as i32;
    // The 64 bits from the highest down, and the one below them to round by.
    let mut f = 0u64;
    let mut j = 0;
    while j < 64 {
        f = f << 1 | bit(&limbs, bits - 1 - j);
        j += 1;
    }
    if bit(&limbs, bits - 65) == 1 {
        if f == u64::MAX {
            f = 1 << 63;
            bits += 1;
        } else {
            f += 1;
        }
    }
    Wide { f, e: bits - 64 + scale }
}

const fn bit(limbs: &[u32; 80], index: i32) -> u64 {
    if index < 0 { 0 } else { (limbs[index as usize / 32] >> (index as usize % 32) & 1) as u64 }
}
