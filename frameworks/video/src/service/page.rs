//! The page of the framework: its queries, and the live view of one. It has no script.

use crate::core::QueryStatus;

/// The page; `shown` is the query whose view is on it.
pub(super) fn page(queries: &[QueryStatus], shown: Option<&str>) -> String {
    let rows: String = queries
        .iter()
        .map(|query| {
            let (name, link) = (escaped(&query.name), encoded(&query.name));
            format!(
                "<tr><td><a href=\"/?query={link}\">{name}</a></td><td>{}</td><td>{:.2}</td><td>{:.3}</td><td>{:.1} s</td></tr>\n",
                escaped(&format!("{:?}", query.state).to_lowercase()),
                query.cores,
                query.quality,
                query.lag
            )
        })
        .collect();
    let known = shown.filter(|shown| queries.iter().any(|query| query.name == *shown));
    let view = known.map_or_else(String::new, |name| {
        format!(
            "<h2>{}</h2>\n<p><img src=\"/queries/{}/live\" alt=\"what the query sees\"></p>\n",
            escaped(name),
            encoded(name)
        )
    });
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Video queries</title>\n<style>body {{ \
         font-family: sans-serif; margin: 2rem }} td, th {{ padding: 0.2rem 1rem 0.2rem 0; text-align: left }} img {{ \
         max-width: 100% }}</style></head>\n<body><h1>Video queries</h1>\n<table><tr><th>query</th><th>state</th>\
         <th>cores</th><th>quality</th><th>lag</th></tr>\n{rows}</table>\n{view}</body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// A name as a part of an address.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped("<b>&\"x\""), "&lt;b&gt;&amp;&quot;x&quot;");
        assert_eq!(encoded("a b/<ü"), "a%20b%2F%3C%C3%BC");
        let empty = page(&[], Some("nothing"));
        assert!(empty.contains("<h1>Video queries</h1>") && !empty.contains("<img"), "{empty}");
    }
}
