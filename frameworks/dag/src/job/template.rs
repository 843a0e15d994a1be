//! Substitutes a task's part in its command or its arguments: `{input}`, `{offset}`, `{length}`, `{index}`, `{count}`.
//!
//! Only these names are replaced, so that other braces of shells and programs stay; `${name}` is the shell's.

use jobs::Run;

/// Placeholder of the number of a partition in an output's name.
pub const PARTITION: &str = "{partition}";
/// Names that are replaced in braces.
pub const NAMES: [&str; 8] = ["input", "inputs", "offset", "length", "index", "count", "output", "partition"];

/// Values of the names; a name without a value is not replaced.
#[derive(Clone, Debug, Default)]
pub struct Values<'a>(pub Vec<(&'static str, &'a str)>);

impl Values<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Returns the text with its names replaced. In a command for a shell, values are quoted where necessary.
    fn fill(&self, text: &str, shell: bool) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            let inside = &rest[at + 1..];
            let name = inside.split_once('}').map(|(name, _)| name).filter(|name| NAMES.contains(name));
            match name.and_then(|name| Some((name, self.get(name)?))) {
                Some((name, value)) if !filled.ends_with('$') => {
                    if shell {
                        filled.push_str(&quoted(value))
                    } else {
                        filled.push_str(value)
                    }
                    rest = &inside[name.len() + 1..];
                }
                _ => {
                    filled.push('{');
                    rest = inside;
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// Returns the program with its names replaced. An argument `{inputs}` becomes one argument for each file.
    pub fn run(&self, run: &Run, inputs: &[&str]) -> Run {
        match run {
            Run::Command(command) => {
                let all: Vec<String> = inputs.iter().map(|input| quoted(input)).collect();
                // Each file name is quoted already.
                let command = replace_inputs(command, &all.join(" "));
                Run::Command(self.fill(&command, true))
            }
            Run::Program(words) => Run::Program(
                words
                    .iter()
                    .flat_map(|word| match word.as_str() {
                        "{inputs}" => inputs.iter().map(|&input| input.to_owned()).collect(),
                        _ => vec![self.fill(word, false)],
                    })
                    .collect(),
            ),
            Run::Image => Run::Image,
        }
    }
}

/// Returns whether a program refers to the file of its part, or to the bytes of it.
pub(super) fn names_bytes(run: &Run) -> bool {
    let names = |text: &str| {
        let text = text.replace("TEPUI_INPUTS", "");
        ["{input}", "{offset}", "{length}", "TEPUI_INPUT", "TEPUI_OFFSET", "TEPUI_LENGTH"]
            .iter()
            .any(|name| text.contains(name))
    };
    match run {
        Run::Command(command) => names(command),
        Run::Program(words) => words.iter().any(|word| names(word)),
        Run::Image => false,
    }
}

fn replace_inputs(command: &str, all: &str) -> String {
    let mut parts = command.split("{inputs}");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        filled.push_str(if filled.ends_with('$') { "{inputs}" } else { all });
        filled.push_str(part);
    }
    filled
}

/// Returns a word for `/bin/sh`: unchanged if it has no special characters, otherwise in single quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,=@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns the file name of an output for the tasks that read it, without the prefix of its stage and task.
pub fn flat(output: &str) -> String {
    output.replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_are_replaced() {
        let values = Values(vec![("input", "/data/a b"), ("offset", "7"), ("index", "3")]);
        let shell = |text: &str| match values.run(&Run::Command(text.into()), &["/data/a b", "/c"]) {
            Run::Command(text) => text,
            _ => String::new(),
        };
        assert_eq!(shell("tail -c +{offset} {input}"), "tail -c +7 '/data/a b'");
        assert_eq!(shell("awk '{print $1}' ${index} {length} {{index}"), "awk '{print $1}' ${index} {length} {3");
        assert_eq!(shell("cat {inputs} > {index}.out {"), "cat '/data/a b' /c > 3.out {");
        let words = ["run", "--at={offset}", "{inputs}", "x{input}"].map(str::to_owned).to_vec();
        let program = values.run(&Run::Program(words), &["/data/a b", "/c"]);
        let expected = ["run", "--at=7", "/data/a b", "/c", "x/data/a b"].map(str::to_owned).to_vec();
        assert_eq!(program, Run::Program(expected));
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
