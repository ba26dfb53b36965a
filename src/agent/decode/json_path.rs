//! Reads JSON fields by path, with a default for a field that is missing or has another type.

use serde_json::Value;

/// Returns the string at a path of field names; empty if there is none.
pub(super) fn str_at<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value_at(value, path).as_str().unwrap_or_default()
}

/// Returns the count at a path of field names; 0 if there is none.
pub(super) fn u64_at(value: &Value, path: &[&str]) -> u64 {
    let value = value_at(value, path);
    // Some agents write counts as floating-point numbers.
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|count| count as u64))
        .unwrap_or(0)
}

/// Returns the value at a path of field names; null if there is none.
pub(super) fn value_at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, field| &value[*field])
}
