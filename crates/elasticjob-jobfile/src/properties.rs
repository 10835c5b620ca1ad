//! Java properties; dotted keys become groups.

use super::tree::{Node, split_key};

/// Parses a text. An error is a line and a message.
pub(super) fn read(text: &str) -> Result<Node, (usize, String)> {
    let mut root = Node::map(1);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line_number = index + 1;
        let mut logical = line.trim_start().to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while is_continued(&logical) {
            logical.pop();
            match lines.next() {
                Some((_, next)) => logical.push_str(next.trim_start()),
                None => break,
            }
        }
        let (key, value) = split_entry(&logical);
        let locate = |problem| (line_number, problem);
        let (key, value) = (unescape(key).map_err(locate)?, unescape(value).map_err(locate)?);
        root.insert(&split_key(&key), Node::text(line_number, value.trim_end()));
    }
    Ok(root)
}

/// A line continues if it ends with an odd number of backslashes.
fn is_continued(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

/// Splits a line into key and value: the key ends at the first unescaped `=`, `:` or whitespace.
fn split_entry(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (index, character) in line.char_indices() {
        match character {
            '\\' => escaped = !escaped,
            '=' | ':' | ' ' | '\t' | '\u{c}' if !escaped => {
                let rest = line[index..].trim_start();
                let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
                return (&line[..index], value.trim_start());
            }
            _ => escaped = false,
        }
    }
    (line, "")
}

fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut units: Vec<u16> = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        if escaped == Some('u') {
            let digits: String = characters.by_ref().take(4).collect();
            let is_hex = digits.len() == 4 && digits.bytes().all(|each| each.is_ascii_hexdigit());
            let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
            units.push(unit.ok_or(format!("\\u{digits} is not a character"))?);
            continue;
        }
        plain.push_str(&String::from_utf16_lossy(&std::mem::take(&mut units)));
        match (character, escaped) {
            ('\\', Some('n')) => plain.push('\n'),
            ('\\', Some('t')) => plain.push('\t'),
            ('\\', Some('r')) => plain.push('\r'),
            ('\\', Some('f')) => plain.push('\u{c}'),
            ('\\', None) => {}
            ('\\', Some(other)) | (other, _) => plain.push(other),
        }
    }
    Ok(plain + &String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_parsed_as_in_java() {
        let text =
            "# comment\n! comment\na.b = 1\na.c: x = y\n a.d\\ e\tz\\\n   w\na.u=\\u6e05\\u7b97\n";

        let tree = read(text).unwrap();

        assert_eq!(tree.find(&["a", "b"]), Some(&Node::text(3, "1")));
        assert_eq!(tree.find(&["a", "c"]), Some(&Node::text(4, "x = y")));
        assert_eq!(tree.find(&["a", "d e"]), Some(&Node::text(5, "zw")));
        assert_eq!(tree.find(&["a", "u"]), Some(&Node::text(7, "清算")));
        assert_eq!(read("a=1\nb=\\u12\n").unwrap_err().0, 2);
    }
}
