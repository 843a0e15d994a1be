//! Fits a straight line to points with outliers: weighted least squares, repeated with Huber's weights. It knows
//! nothing of sizes.

/// A measured point with its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Abscissa of the point.
    pub x: f64,
    /// Measured value.
    pub y: f64,
    /// Weight of the point, 0 or more.
    pub weight: f64,
}

/// A fitted line with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Height of the line at 0.
    pub height: f64,
    /// Slope of the line; 0 where the points are too close together to show one.
    pub slope: f64,
    /// Standard error of the slope; infinite where the points show none.
    pub error: f64,
    /// Robust standard deviation of the points around the line.
    pub noise: f64,
    /// Number of points more than three deviations away.
    pub outliers: usize,
}

impl Line {
    /// Returns the height of the line at an abscissa.
    pub fn at(&self, x: f64) -> f64 {
        self.height + self.slope * x
    }

    /// Returns the slope reduced by its uncertainty: 0 for a slope within its error, nearly all of one far above it.
    pub fn shrunk(&self) -> f64 {
        match self.slope == 0.0 || !self.error.is_finite() {
            true => 0.0,
            false => self.slope * (1.0 - (self.error / self.slope).powi(2)).max(0.0),
        }
    }
}

/// Least deviation that is assumed: two equal points do not show the noise.
const LEAST_NOISE: f64 = 0.01;

/// Fits a line to the points. Returns `None` without a point of positive weight.
pub fn line(points: &[Point]) -> Option<Line> {
    let usable: Vec<Point> =
        points.iter().copied().filter(|p| p.x.is_finite() && p.y.is_finite() && p.weight > 0.0).collect();
    if usable.is_empty() {
        return None;
    }
    let mut weights: Vec<f64> = usable.iter().map(|point| point.weight).collect();
    let mut line = least_squares(&usable, &weights);
    for _ in 0..8 {
        let mut away: Vec<f64> = usable.iter().map(|point| (point.y - line.at(point.x)).abs()).collect();
        line.noise = (1.4826 * median(&mut away)).max(LEAST_NOISE);
        for (weight, point) in weights.iter_mut().zip(&usable) {
            let distance = (point.y - line.at(point.x)).abs() / line.noise;
            *weight = point.weight * if distance <= 1.5 { 1.0 } else { 1.5 / distance };
        }
        let noise = line.noise;
        line = Line { noise, ..least_squares(&usable, &weights) };
    }
    line.error *= line.noise;
    line.outliers = usable.iter().filter(|point| (point.y - line.at(point.x)).abs() > 3.0 * line.noise).count();
    Some(line)
}

/// Fits a line by weighted least squares. `error` is that of a deviation of 1.
fn least_squares(points: &[Point], weights: &[f64]) -> Line {
    let total: f64 = weights.iter().sum();
    let mean = |value: fn(&Point) -> f64| points.iter().zip(weights).map(|(p, w)| value(p) * w).sum::<f64>() / total;
    let (x, y) = (mean(|p| p.x), mean(|p| p.y));
    let spread: f64 = points.iter().zip(weights).map(|(p, w)| w * (p.x - x).powi(2)).sum();
    if spread < 1e-3 * total {
        return Line { height: y, slope: 0.0, error: f64::INFINITY, noise: 0.0, outliers: 0 };
    }
    let product: f64 = points.iter().zip(weights).map(|(p, w)| w * (p.x - x) * (p.y - y)).sum();
    let slope = product / spread;
    Line { height: y - slope * x, slope, error: spread.sqrt().recip(), noise: 0.0, outliers: 0 }
}

/// Returns the median; of an even number the mean of the middle two, 0 of none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), middle.checked_sub(1).and_then(|below| values.get(below))) {
        (Some(above), Some(below)) if values.len().is_multiple_of(2) => f64::midpoint(*below, *above),
        (Some(one), _) => *one,
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stragglers_do_not_bend_the_line() {
        let point = |n: i32, y: f64| Point { x: f64::from(n) / 10.0, y, weight: 1.0 };
        let mut points: Vec<Point> = (-10..=10).map(|n| point(n, 3.0 + 0.5 * f64::from(n) / 10.0)).collect();
        points.extend((7..=10).map(|n| point(n, 1.0)));
        let line = line(&points).unwrap();
        assert!((line.slope - 0.5).abs() < 0.05, "{line:?}");
        assert_eq!(line.outliers, 4);
        assert!(line.shrunk() > 0.4);
    }

    #[test]
    fn one_place_shows_no_slope() {
        let points = [1.0, 2.0, 9.0].map(|y| Point { x: 0.2, y, weight: 1.0 });
        let line = line(&points).unwrap();
        assert_eq!((line.slope, line.shrunk()), (0.0, 0.0));
        assert_eq!(super::line(&[]), None);
        assert_eq!(super::line(&[Point { x: f64::NAN, y: 1.0, weight: 1.0 }]), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
