//! The web page of the framework: its queries, and the live view of one. It has no script.

use crate::core::QueryStatus;
use crate::pipeline::Config;

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin: 1.5rem 0 0.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8885; padding: 0.3rem 0.6rem; text-align: left; }
th { font-weight: 600; } .number { font-variant-numeric: tabular-nums; text-align: right; }
tr.shown { background: #8882; }
figure { margin: 0; } figcaption { color: GrayText; margin-top: 0.4rem; }
img { aspect-ratio: 16 / 9; background: #8883; border-radius: 4px; max-width: 100%; object-fit: contain; width: 40rem; }
@media (max-width: 30rem) { .minor { display: none; } }
";

/// Returns the page; `shown` is the query whose live view it contains.
pub(super) fn page(queries: &[QueryStatus], shown: Option<&str>) -> String {
    let rows: String = queries.iter().map(|query| row(query, shown == Some(query.name.as_str()))).collect();
    let table = match rows.is_empty() {
        true => "<p>There are no queries.</p>\n".to_owned(),
        false => format!(
            "<table><tr><th>query</th><th>state</th><th class=\"number\">found</th><th class=\"number\">cores</th>\
             <th class=\"number minor\">quality</th><th class=\"number\">lag</th></tr>\n{rows}</table>\n"
        ),
    };
    let view = queries.iter().find(|query| shown == Some(query.name.as_str())).map(view).unwrap_or_default();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Video queries</title>\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>{STYLE}</style></head>\n<body>\
         <main><h1>Video queries</h1>\n{table}{view}</main></body></html>\n"
    )
}

fn row(query: &QueryStatus, is_shown: bool) -> String {
    let class = if is_shown { " class=\"shown\"" } else { "" };
    format!(
        "<tr{class}><td><a href=\"/?query={}\">{}</a></td><td>{}</td><td class=\"number\">{}</td>\
         <td class=\"number\">{:.2}</td><td class=\"number minor\">{:.3}</td><td class=\"number\">{:.1} s</td></tr>\n",
        encoded(&query.name),
        escaped(&query.name),
        escaped(&format!("{:?}", query.state).to_lowercase()),
        query.found,
        query.cores,
        query.quality,
        query.lag
    )
}

/// Returns the live view of a query, or the text in its place.
fn view(query: &QueryStatus) -> String {
    let (name, link) = (escaped(&query.name), encoded(&query.name));
    // Without a worker there are no pictures, and a browser would wait for the first forever.
    if query.task.is_none() {
        let why = if query.message.is_empty() { "It does not run now." } else { &query.message };
        return format!("<h2>{name}</h2>\n<p>{}</p>\n", escaped(why));
    }
    let looks = query.config.as_ref().map(looks).unwrap_or_default();
    format!(
        "<h2>{name}</h2>\n<figure><img src=\"/queries/{link}/live\" alt=\"live view of the query\"><figcaption>The \
         video with the objects that the query has found{looks}. The figures above are those of the time at which this \
         page was loaded; <a href=\"/queries/{link}\">all of them</a>.\
         </figcaption></figure>\n"
    )
}

/// Describes a configuration for the page.
fn looks(config: &Config) -> String {
    let size = match config.shrink {
        1 => "in full size".to_owned(),
        by => format!("with sides divided by {by}"),
    };
    match config.every {
        1 => format!("; it analyses every picture, {size}"),
        every => format!("; it analyses 1 of {every} pictures, {size}"),
    }
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

/// Percent-encodes a name for a URL.
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
        assert!(empty.contains("There are no queries."), "{empty}");
    }
}
