//! Varies fields of a scenario: each combination of the values in `[sweep]` is a point. Fields joined by `+` have the
//! same value.

use std::path::Path;

use toml::{Table, Value};

use super::error::{InvalidField, ScenarioError};
use super::schema::Scenario;

/// The most points of one sweep.
pub const MOST_POINTS: usize = 10_000;

/// A point of a sweep: one combination of values.
#[derive(Clone, Debug)]
pub struct Point {
    /// Each varied field with its value, as text.
    pub values: Vec<(String, String)>,
    /// The scenario with these values.
    pub scenario: Scenario,
}

/// Returns all points of a scenario's sweep, the last field varying fastest; a single point without values if it has
/// none.
///
/// # Errors
/// Returns an error for an unknown field, an invalid value, or too many points.
pub fn points(text: &str, file: &Path) -> Result<Vec<Point>, ScenarioError> {
    let base = Scenario::read(text, file)?;
    let broken = |path: &str, rule: String| InvalidField::new(format!("sweep.{path}"), rule).at(file, text);
    let mut count: usize = 1;
    for (path, values) in &base.sweep {
        if values.is_empty() {
            return Err(broken(path, "has no values".to_owned()));
        }
        count = count.saturating_mul(values.len());
        if count > MOST_POINTS {
            let all = base.sweep.values().fold(1_u128, |all, values| all.saturating_mul(values.len() as u128));
            return Err(broken(path, format!("the sweep has {all} points; at most {MOST_POINTS} are allowed")));
        }
    }
    let whole: Table = toml::from_str(text).map_err(|why| ScenarioError::of_toml(file, text, &why))?;
    let mut all = Vec::with_capacity(count);
    for n in 0..count {
        let (mut table, mut values, mut rest) = (whole.clone(), Vec::new(), n);
        for (path, choices) in base.sweep.iter().rev() {
            let value = &choices[rest % choices.len()];
            rest /= choices.len();
            for field in path.split('+') {
                set(&mut table, field.trim(), value.clone()).map_err(|rule| broken(path, rule))?;
            }
            values.insert(0, (path.clone(), plain(value)));
        }
        let changed = toml::to_string(&table).map_err(|why| broken("", why.to_string()))?;
        let scenario = Scenario::read(&changed, file).map_err(|why| {
            let point: Vec<String> = values.iter().map(|(path, value)| format!("{path} = {value}")).collect();
            let first = base.sweep.keys().next().map_or("", String::as_str);
            broken(first, format!("with {}: {}", point.join(", "), why.rule))
        })?;
        all.push(Point { values, scenario });
    }
    Ok(all)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Sets the field at a path: names of tables and keys, and in arrays positions or the `name` of an entry.
fn set(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let mut names: Vec<&str> = path.split('.').collect();
    let last = names.pop().filter(|last| !last.is_empty()).ok_or("names no field")?;
    let mut root = Value::Table(std::mem::take(table));
    let mut at = &mut root;
    for name in names {
        at = step(at, name)?;
    }
    match at {
        Value::Table(inner) => {
            inner.insert(last.to_owned(), value);
        }
        Value::Array(list) => {
            let place = last.parse::<usize>().ok().filter(|n| *n < list.len());
            let place = place.ok_or_else(|| format!("there is no entry '{last}'"))?;
            list[place] = value;
        }
        _ => return Err(format!("'{path}' has no fields")),
    }
    if let Value::Table(inner) = root {
        *table = inner;
    }
    Ok(())
}

fn step<'a>(at: &'a mut Value, name: &str) -> Result<&'a mut Value, String> {
    match at {
        Value::Table(inner) => Ok(inner.entry(name).or_insert_with(|| Value::Table(Table::new()))),
        Value::Array(list) => {
            let named = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(name);
            let place = list.iter().position(named).or_else(|| name.parse().ok().filter(|n| *n < list.len()));
            place.and_then(|place| list.get_mut(place)).ok_or_else(|| format!("there is no entry '{name}'"))
        }
        _ => Err(format!("'{name}' has no fields")),
    }
}
