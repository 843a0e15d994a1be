//! Confidence intervals of means by Student's t.

/// Returns the mean of the values and half the width of its 95 % confidence interval. The interval of one value is 0;
/// without values both are 0. For paired samples, pass the differences.
pub fn mean_and_interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<f64>() / n;
    if values.len() == 1 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, student(0.95, values.len() as u64 - 1) * (variance / n).sqrt())
}

/// Returns the two-sided quantile of Student's t: a value with `freedom` degrees of freedom lies between it and its
/// negative with this probability.
///
/// The probability is limited to 0.5 to 0.9999. The result comes from Hill's series (Comm. ACM 13, 1970), within 1 %
/// from 3 degrees on; it is exact for 1 and 2.
pub fn student(probability: f64, freedom: u64) -> f64 {
    let outside = 1.0 - probability.clamp(0.5, 0.9999);
    match freedom {
        0 => f64::INFINITY,
        1 => (std::f64::consts::FRAC_PI_2 * (1.0 - outside)).tan(),
        2 => (2.0 / (outside * (2.0 - outside)) - 2.0).sqrt(),
        _ => hill(outside, freedom as f64),
    }
}

fn hill(outside: f64, n: f64) -> f64 {
    let a = 1.0 / (n - 0.5);
    let b = (48.0 / a) / a;
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * std::f64::consts::FRAC_PI_2).sqrt() * n;
    let mut y = (d * outside).powf(2.0 / n);
    if y > 0.05 + a {
        let mut x = -normal(1.0 - outside / 2.0);
        y = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        x = a * y * y;
        y = if x > 0.002 { x.exp() - 1.0 } else { 0.5 * x * x + x };
    } else {
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0)
            * (n + 1.0)
            / (n + 2.0)
            + 1.0 / y;
    }
    (n * y).max(0.0).sqrt()
}

/// Returns the quantile of the normal distribution: a value lies below it with this probability (Acklam's
/// approximation, within 1.2e-9 of the probability).
fn normal(probability: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
    ];
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [0.007_784_695_709_041_462, 0.322_467_129_070_039_8, 2.445_134_137_142_996, 3.754_408_661_907_416];
    let p = probability.clamp(1e-12, 1.0 - 1e-12);
    let series = |factors: &[f64], x: f64| factors.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        series(&C, q) / (series(&D, q) * q + 1.0)
    };
    if p < 0.024_25 {
        return tail(p);
    }
    if p > 1.0 - 0.024_25 {
        return -tail(1.0 - p);
    }
    let q = p - 0.5;
    let r = q * q;
    series(&A, r) * q / (series(&B, r) * r + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        let (mean, half) = mean_and_interval(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (half - 4.303 / 3_f64.sqrt()).abs() < 1e-3, "{mean} {half}");
        assert_eq!((mean_and_interval(&[7.0]), mean_and_interval(&[])), ((7.0, 0.0), (0.0, 0.0)));
    }

    #[test]
    fn known_quantiles() {
        for (freedom, known) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)]
        {
            let found = student(0.95, freedom);
            assert!((found - known).abs() < 0.005 * known, "{freedom}: {found}");
        }
        assert!((student(0.99, 10) - 3.169).abs() < 0.01 && (student(0.8, 5) - 1.476).abs() < 0.01);
        for (p, known) in [(0.5, 0.0), (0.975, 1.959_964), (0.01, -2.326_348), (0.999, 3.090_232)] {
            assert!((normal(p) - known).abs() < 1e-5, "{p}");
        }
        assert!(student(0.95, 0).is_infinite());
    }
}
