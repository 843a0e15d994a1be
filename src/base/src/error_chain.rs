//! Formats an error and its causes as one line.

use std::error::Error;

/// Returns the texts of an error and of all its causes, separated by colons.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Step(&'static str, #[source] Option<Box<Step>>);

    #[test]
    fn causes_follow_in_order() {
        let error = Step("a", Some(Box::new(Step("b", Some(Box::new(Step("c", None)))))));
        assert_eq!(error_chain(&error), "a: b: c");
    }
}
