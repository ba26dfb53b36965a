//! Says how long ago something happened, and how long it took, in a few characters.

use jiff::Timestamp;

/// The variable that sets the current time of views in tests, in milliseconds since 1970. It changes
/// nothing but the ages that are shown.
const NOW_VARIABLE: &str = "RALPH_TEST_NOW";

/// Returns the current time for ages, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let set = std::env::var(NOW_VARIABLE).ok();
    let set = set.and_then(|value| value.parse().ok());
    set.unwrap_or_else(|| Timestamp::now().as_millisecond())
}
