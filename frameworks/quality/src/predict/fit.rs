//! Fits a curve to a history of losses by weighted least squares.
//!
//! Both families are nonlinear in the final loss only. It is searched on a grid and refined; the rest is a line or a
//! parabola, which is solved.

use super::curve::{Curve, Family};

/// Weight of a point, relative to that of the point after it.
const FADING: f64 = 0.9;
/// Number of points that are fitted; older points have almost no weight.
const POINTS_MAX: usize = 32;
/// Number of points of the grid, and the nearest and farthest final loss below the lowest loss, as shares of the
/// history's span.
const GRID: usize = 16;
const NEAREST: f64 = 1e-3;
const FARTHEST: f64 = 30.0;
const REFINEMENTS: usize = 8;

/// A fitted curve and its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Fitted curve; its origin is the newest point of the history.
    pub curve: Curve,
    /// Root of the weighted mean of squared distances, in units of the loss.
    pub distance: f64,
}

/// A point of the history: iterations after the newest one (so never positive), loss, weight.
type Point = (f64, f64, f64);

/// Fits a curve to `losses`, one for each iteration, the newest last. The curve is of `family`, or of the better of
/// both.
///
/// Returns `None` for fewer than three losses, for losses that are not numbers, and for losses that do not fall.
pub fn fit(losses: &[f64], family: Option<Family>) -> Option<Fit> {
    let recent = &losses[losses.len().saturating_sub(POINTS_MAX)..];
    if recent.len() < 3 || recent.iter().any(|l| !l.is_finite()) {
        return None;
    }
    let newest = recent.len() - 1;
    let point = |(i, &loss): (usize, &f64)| {
        let age = (newest - i) as f64;
        (-age, loss, FADING.powf(age))
    };
    let points: Vec<Point> = recent.iter().enumerate().map(point).collect();
    let lowest = recent.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = recent.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = highest - lowest;
    if span <= 1e-12 * highest.abs() {
        return None;
    }
    // Losses that have not been negative are not predicted to become so.
    let farthest = if lowest > 0.0 { (FARTHEST * span).min(lowest) } else { FARTHEST * span };
    let nearest = (NEAREST * span).min(farthest / 2.0);
    let families = [Family::Sublinear, Family::Exponential].into_iter().filter(|f| family.is_none_or(|g| g == *f));
    let fits = families.filter_map(|family| best_end(family, &points, lowest, nearest, farthest));
    fits.min_by(|a, b| a.distance.total_cmp(&b.distance))
}

/// Fits the best curve of a family: tries final losses from `nearest` to `farthest` below the lowest loss.
fn best_end(family: Family, points: &[Point], lowest: f64, nearest: f64, farthest: f64) -> Option<Fit> {
    let (low, high) = (nearest.ln(), farthest.ln());
    let attempt = |log: f64| solve(family, points, lowest - log.exp());
    let place = |i: usize| low + (high - low) * i as f64 / (GRID - 1) as f64;
    let tried = (0..GRID).filter_map(|i| attempt(place(i)).map(|fit| (place(i), fit)));
    let (mut at, mut best) = tried.min_by(|a, b| a.1.distance.total_cmp(&b.1.distance))?;
    let mut step = (high - low) / (GRID - 1) as f64;
    for _ in 0..REFINEMENTS {
        step /= 2.0;
        for place in [at - step, at + step] {
            if let Some(fit) = attempt(place.clamp(low, high)).filter(|f| f.distance < best.distance) {
                (at, best) = (place.clamp(low, high), fit);
                break;
            }
        }
    }
    Some(best)
}

fn solve(family: Family, points: &[Point], end: f64) -> Option<Fit> {
    let curve = match family {
        Family::Sublinear => parabola(points, end),
        Family::Exponential => line(points, end),
    }?;
    let mut sums = (0.0, 0.0);
    for (k, loss, weight) in points {
        sums.0 += weight * (curve.at(*k) - loss).powi(2);
        sums.1 += weight;
    }
    let distance = (sums.0 / sums.1).sqrt();
    distance.is_finite().then_some(Fit { curve, distance })
}

/// Fits ln(loss - end) by a straight line. Points are weighted by the squared loss above the end, so that distances are
/// those of the loss.
fn line(points: &[Point], end: f64) -> Option<Curve> {
    let mut s = [0.0; 5];
    for (k, loss, weight) in points {
        let above = loss - end;
        let (w, y) = (weight * above * above, above.ln());
        s = [s[0] + w, s[1] + w * k, s[2] + w * k * k, s[3] + w * y, s[4] + w * k * y];
    }
    let slope = (s[0] * s[4] - s[1] * s[3]) / (s[0] * s[2] - s[1] * s[1]);
    let height = ((s[3] - slope * s[1]) / s[0]).exp();
    let curve = Curve::Exponential { height, rate: slope.exp(), end };
    (slope < 0.0 && height.is_finite()).then_some(curve)
}

/// Fits 1 / (loss - end) by a parabola that rises from the origin on. Points are weighted by the fourth power of the
/// loss above the end, so that distances are those of the loss.
fn parabola(points: &[Point], end: f64) -> Option<Curve> {
    // These are the sums of w k^n and of w y k^n.
    let (mut s, mut t) = ([0.0; 5], [0.0; 3]);
    for (k, loss, weight) in points {
        let above = loss - end;
        let (mut w, y) = (weight * above.powi(4), 1.0 / above);
        for (n, sum) in s.iter_mut().enumerate() {
            *sum += w;
            if let Some(t) = t.get_mut(n) {
                *t += w * y;
            }
            w *= k;
        }
    }
    let whole = solve_three([[s[4], s[3], s[2]], [s[3], s[2], s[1]], [s[2], s[1], s[0]]], [t[2], t[1], t[0]]);
    let straight = || solve_two(s[2], s[1], s[0], t[1], t[0]).map(|[b, c]| [0.0, b, c]);
    // The parabola must rise over the whole history, too, as its inverse has fallen there.
    let oldest = points.first().map_or(0.0, |p| p.0);
    let rises = |[a, b, c]: &[f64; 3]| *a >= 0.0 && *b > 0.0 && a * oldest + b > 0.0 && *c > 0.0;
    let [a, b, c] = whole.filter(rises).or_else(|| straight().filter(rises))?;
    Some(Curve::Sublinear { a, b, c, d: end })
}

/// Solves [p q; q r] x = [u v].
fn solve_two(p: f64, q: f64, r: f64, u: f64, v: f64) -> Option<[f64; 2]> {
    let determinant = p * r - q * q;
    let solution = [(r * u - q * v) / determinant, (p * v - q * u) / determinant];
    solution.iter().all(|x| x.is_finite()).then_some(solution)
}

/// Solves three linear equations by Cramer's rule.
fn solve_three(m: [[f64; 3]; 3], v: [f64; 3]) -> Option<[f64; 3]> {
    let determinant = |m: [[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let all = determinant(m);
    let mut solution = [0.0; 3];
    for (column, x) in solution.iter_mut().enumerate() {
        let mut replaced = m;
        for row in 0..3 {
            replaced[row][column] = v[row];
        }
        *x = determinant(replaced) / all;
    }
    solution.iter().all(|x| x.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(curve: &Curve, from: usize, count: usize) -> Vec<f64> {
        (from..from + count).map(|k| curve.at(k as f64)).collect()
    }

    #[test]
    fn a_curve_of_a_family_is_found_and_followed() {
        let sublinear = Curve::Sublinear { a: 0.002, b: 0.3, c: 0.4, d: 0.7 };
        let exponential = Curve::Exponential { height: 3.0, rate: 0.85, end: 0.2 };
        for (curve, family) in [(sublinear, Family::Sublinear), (exponential, Family::Exponential)] {
            let losses = follow(&curve, 0, 20);
            let found = fit(&losses, None).unwrap();
            assert_eq!(found.curve.family(), family);
            for ahead in [1, 10, 30] {
                let (want, got) = (curve.at(f64::from(19 + ahead)), found.curve.at(f64::from(ahead)));
                assert!((want - got).abs() < 0.02 * want, "{family:?}, {ahead} ahead: {got} instead of {want}");
            }
        }
    }

    #[test]
    fn old_losses_fade_as_a_job_finds_a_new_way_down() {
        // The history has eight losses of a slow descent, and then twenty of a fast one.
        let slow = Curve::Exponential { height: 2.0, rate: 0.98, end: 1.0 };
        let fast = Curve::Exponential { height: slow.at(8.0) - 0.1, rate: 0.8, end: 0.1 };
        let losses = [follow(&slow, 0, 8), follow(&fast, 0, 20)].concat();
        let found = fit(&losses, None).unwrap();
        // If old losses had the weight of new ones the prediction would be 0.06 off.
        let (got, want) = (found.curve.at(10.0), fast.at(29.0));
        assert!((got - want).abs() < 0.03, "{got} instead of {want}");
    }

    #[test]
    fn what_cannot_be_followed_has_no_curve() {
        assert_eq!(fit(&[3.0, 2.0], None), None);
        assert_eq!(fit(&[1.0; 10], None), None);
        assert_eq!(fit(&[1.0, f64::NAN, 0.5, 0.4], None), None);
        let rising: Vec<f64> = (0..10).map(|k| f64::from(k).powi(2)).collect();
        assert_eq!(fit(&rising, None), None);
    }
}
