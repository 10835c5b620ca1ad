//! Parses a command line exactly as Java ElasticJob does (Apache commons-exec).
//!
//! Only spaces separate words; a tab or a line end is part of a word. Quotes group words and cannot be escaped. Then every argument is quoted
//! again: one that contains a space, or a quote of the other kind, reaches the program with quotes around it. That was meant for a shell that
//! is never used, but existing scripts rely on it, so it is kept; `elasticjob.script.shell` avoids it.

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
}

impl CommandLine {
    /// Parses a command line; the error says what is wrong with it.
    pub(super) fn parse(line: &str) -> Result<Self, &'static str> {
        let mut words = words(line)?.into_iter();
        let program =
            words.next().filter(|program| !program.trim_matches(is_java_whitespace).is_empty());
        let program = program.ok_or("it names no program")?;
        let arguments = words.map(|word| quoted(&word)).collect::<Result<_, _>>()?;
        // Java ElasticJob accepts either slash in the program's path on every system.
        Ok(Self { program: program.replace('\\', "/"), arguments })
    }
}

/// Whitespace as Java's `trim` defines it: every character up to the space.
fn is_java_whitespace(character: char) -> bool {
    character <= ' '
}

fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    // A word may be empty only right after a closing quote.
    let mut just_quoted = false;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => (quote, just_quoted) = (None, true),
            (Some(_), _) => word.push(character),
            (None, '\'' | '"') => (quote, just_quoted) = (Some(character), false),
            (None, ' ') => {
                if just_quoted || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                just_quoted = false;
            }
            (None, _) => {
                word.push(character);
                just_quoted = false;
            }
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    if just_quoted || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// Quotes an argument as Java ElasticJob does, whether the program expects it or not.
fn quoted(word: &str) -> Result<String, &'static str> {
    let is_quote = |character| matches!(character, '\'' | '"');
    let bare = word.trim_matches(is_java_whitespace).trim_matches(is_quote);
    match (bare.contains('"'), bare.contains('\'')) {
        (true, true) => Err("an argument contains both kinds of quotes"),
        (true, false) => Ok(format!("'{bare}'")),
        (false, single) if single || bare.contains(' ') => Ok(format!("\"{bare}\"")),
        _ => Ok(bare.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Vec<String> {
        let line = CommandLine::parse(line).unwrap();
        std::iter::once(line.program).chain(line.arguments).collect()
    }

    #[test]
    fn spaces_separate_and_quotes_group() {
        assert_eq!(parsed("sh backup.sh  -v"), ["sh", "backup.sh", "-v"]);
        assert_eq!(parsed("  'my program' --name='x'y "), ["my program", "--name=xy"]);
        assert_eq!(parsed("a\tb c\nd"), ["a\tb", "c\nd"], "only the space separates");
        assert_eq!(parsed(r"bin\run.sh a\b"), ["bin/run.sh", r"a\b"]);
        assert_eq!(
            parsed("echo $HOME *.txt ${x}"),
            ["echo", "$HOME", "*.txt", "${x}"],
            "nothing is expanded"
        );
    }

    /// Seen on a real JVM: protocol.md §13.
    #[test]
    fn grouped_argument_is_passed_with_double_quotes() {
        assert_eq!(parsed(r#"p "a b" 'c d' "e""#), ["p", "\"a b\"", "\"c d\"", "e"]);
        assert_eq!(parsed(r#"p 'say "hi" now' "it's""#), ["p", r#"'say "hi" now'"#, r#""it's""#]);
    }

    #[test]
    fn quoted_empty_argument_is_kept() {
        assert_eq!(parsed("p '' b"), ["p", "", "b"]);
        assert_eq!(parsed("p b ''"), ["p", "b", ""]);
    }

    #[test]
    fn invalid_command_lines_are_rejected_with_reason() {
        for (line, why) in [
            ("", "no program"),
            ("   ", "no program"),
            ("'' a", "no program"),
            ("p 'a", "not closed"),
            (r#"p "a'b"'c"d'"#, "both kinds"),
        ] {
            assert!(CommandLine::parse(line).unwrap_err().contains(why), "{line}");
        }
    }
}
