//! The type of unquoted scalars in YAML 1.1 as SnakeYAML 2.2 implements it, and their text in Java.

use super::node::{BOOL, FLOAT, INT, Kind, MERGE, NULL, Node, STR, TIMESTAMP, Tag};

/// The tag that an unquoted text resolves to.
pub(super) fn resolve(text: &str) -> Tag {
    let units = text.encode_utf16().count();
    match text {
        "" | " " | "~" | "null" | "Null" | "NULL" => return NULL,
        "<<" => return MERGE,
        _ if bool_word(text).is_some() => return BOOL,
        _ => {}
    }
    if units <= 1024 && is_int(text) {
        INT
    } else if units <= 1024 && is_float(text) {
        FLOAT
    } else if units <= 50 && is_timestamp(text) {
        TIMESTAMP
    } else {
        STR
    }
}

fn bool_word(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// A cursor that consumes what it recognises. All relevant characters are ASCII.
struct Scanner<'a>(&'a [u8]);

impl Scanner<'_> {
    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let count = self.0.iter().take_while(|byte| wanted(**byte)).count();
        self.0 = &self.0[count..];
        count
    }

    fn skip_if(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        match self.0.first() {
            Some(byte) if wanted(*byte) => {
                self.0 = &self.0[1..];
                true
            }
            _ => false,
        }
    }

    fn byte(&mut self, wanted: u8) -> bool {
        self.skip_if(|byte| byte == wanted)
    }

    fn sign(&mut self) {
        self.skip_if(|byte| matches!(byte, b'-' | b'+'));
    }

    fn digits(&mut self) -> usize {
        self.skip_while(|byte| byte.is_ascii_digit())
    }

    /// A digit, then digits and underscores.
    fn number(&mut self) -> bool {
        self.skip_if(|byte| byte.is_ascii_digit()) && {
            self.skip_while(digit_or_underscore);
            true
        }
    }

    /// `:0` to `:59`, once or more.
    fn base_60_groups(&mut self) -> bool {
        let mut found = false;
        while let [b':', rest @ ..] = self.0 {
            self.0 = match rest {
                [b'0'..=b'5', b'0'..=b'9', rest @ ..] | [b'0'..=b'9', rest @ ..] => rest,
                _ => return false,
            };
            found = true;
        }
        found
    }

    /// An optional exponent; `false` if it has no digits.
    fn exponent(&mut self) -> bool {
        if !self.skip_if(|byte| matches!(byte, b'e' | b'E')) {
            return true;
        }
        self.sign();
        self.digits() > 0
    }

    fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

fn digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

fn unsigned(text: &str) -> &[u8] {
    let mut scanner = Scanner(text.as_bytes());
    scanner.sign();
    scanner.0
}

fn is_int(text: &str) -> bool {
    let body = unsigned(text);
    let has_prefix_and_digits = |prefix: &[u8], digit: fn(u8) -> bool| {
        body.strip_prefix(prefix).is_some_and(|rest| {
            let mut scanner = Scanner(rest);
            scanner.skip_while(|byte| byte == b'_');
            scanner.skip_if(digit) && {
                scanner.skip_while(|byte| digit(byte) || byte == b'_');
                scanner.is_at_end()
            }
        })
    };
    let octal = |byte: u8| matches!(byte, b'0'..=b'7');
    if body == b"0"
        || has_prefix_and_digits(b"0b", |byte| matches!(byte, b'0' | b'1'))
        || has_prefix_and_digits(b"0x", |byte| byte.is_ascii_hexdigit())
        || has_prefix_and_digits(b"0", octal)
    {
        return true;
    }
    let mut scanner = Scanner(body);
    matches!(body.first(), Some(b'1'..=b'9'))
        && scanner.number()
        && (scanner.is_at_end() || (scanner.base_60_groups() && scanner.is_at_end()))
}

fn is_float(text: &str) -> bool {
    let body = unsigned(text);
    if matches!(text, ".nan" | ".NaN" | ".NAN") || matches!(body, b".inf" | b".Inf" | b".INF") {
        return true;
    }
    let mut scanner = Scanner(body);
    if scanner.byte(b'.') {
        return scanner.skip_while(digit_or_underscore) > 0
            && scanner.exponent()
            && scanner.is_at_end();
    }
    if !scanner.number() {
        return false;
    }
    if matches!(scanner.0.first(), Some(b':')) {
        return scanner.base_60_groups() && scanner.byte(b'.') && {
            scanner.skip_while(digit_or_underscore);
            scanner.is_at_end()
        };
    }
    if scanner.byte(b'.') {
        scanner.skip_while(digit_or_underscore);
        return scanner.exponent() && scanner.is_at_end();
    }
    matches!(scanner.0.first(), Some(b'e' | b'E')) && scanner.exponent() && scanner.is_at_end()
}

fn is_timestamp(text: &str) -> bool {
    let mut scanner = Scanner(text.as_bytes());
    let one_or_two = |scanner: &mut Scanner<'_>| matches!(scanner.digits(), 1 | 2);
    if scanner.digits() != 4 || !scanner.byte(b'-') {
        return false;
    }
    let month = scanner.digits();
    if !scanner.byte(b'-') {
        return false;
    }
    let day = scanner.digits();
    if scanner.is_at_end() {
        return month == 2 && day == 2;
    }
    if !matches!(month, 1 | 2) || !matches!(day, 1 | 2) {
        return false;
    }
    if !scanner.skip_if(|byte| matches!(byte, b'T' | b't')) && scanner.skip_while(blank) == 0 {
        return false;
    }
    let time = one_or_two(&mut scanner)
        && scanner.byte(b':')
        && scanner.digits() == 2
        && scanner.byte(b':')
        && scanner.digits() == 2;
    if !time {
        return false;
    }
    if scanner.byte(b'.') {
        scanner.digits();
    }
    if scanner.is_at_end() {
        return true;
    }
    scanner.skip_while(blank);
    if scanner.byte(b'Z') {
        return scanner.is_at_end();
    }
    scanner.skip_if(|byte| matches!(byte, b'-' | b'+'))
        && one_or_two(&mut scanner)
        && (scanner.is_at_end()
            || (scanner.byte(b':') && scanner.digits() == 2 && scanner.is_at_end()))
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Parses a boolean where one is expected, quoted or not.
pub(in crate::job) fn parse_bool(text: &str) -> Option<bool> {
    bool_word(&text.to_ascii_lowercase())
}

/// Parses an integer where one is expected, quoted or not: decimal, `0x1F`, `0b1`, `017`, `1:30` for ninety, underscores anywhere.
pub(in crate::job) fn parse_int(text: &str) -> Option<i32> {
    parse_big_int(text).and_then(|value| i32::try_from(value).ok())
}

fn parse_big_int(text: &str) -> Option<i128> {
    let text = text.replace('_', "");
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, &text[..]),
    };
    // Java accepts a second sign here, and Rust's parser would, too. It is refused.
    if body.starts_with(['-', '+']) {
        return None;
    }
    let value = if body == "0" {
        0
    } else if let Some(binary) = body.strip_prefix("0b") {
        i128::from_str_radix(binary, 2).ok()?
    } else if let Some(hex) = body.strip_prefix("0x") {
        i128::from_str_radix(hex, 16).ok()?
    } else if let Some(octal) = body.strip_prefix('0') {
        i128::from_str_radix(octal, 8).ok()?
    } else {
        body.split(':').try_fold(0_i128, |value, part| {
            value.checked_mul(60)?.checked_add(part.parse::<i128>().ok()?)
        })?
    };
    Some(if negative { -value } else { value })
}

/// The result of Java's `toString`, which is how Java ElasticJob stores the value of every property.
///
/// Two kinds of values stay as written: dates, because Java prints them in the time zone of the process that reads them, and numbers that
/// are too large to convert.
pub(in crate::job) fn java_to_string(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar(_) if node.is_null() => "null".to_owned(),
        Kind::Scalar(text) => {
            let converted = if node.tag == BOOL {
                parse_bool(text).map(|value| value.to_string())
            } else if node.tag == INT {
                parse_big_int(text).map(|value| value.to_string())
            } else if node.tag == FLOAT {
                parse_float(text).map(java_double)
            } else {
                None
            };
            converted.unwrap_or_else(|| text.clone())
        }
        Kind::Sequence(items) => {
            format!("[{}]", items.iter().map(java_to_string).collect::<Vec<_>>().join(", "))
        }
        Kind::Mapping(entries) => {
            let pair = |(key, value): &(Node, Node)| {
                format!("{}={}", java_to_string(key), java_to_string(value))
            };
            format!("{{{}}}", entries.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

fn parse_float(text: &str) -> Option<f64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, &text[..]),
    };
    let value = match body {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        _ => body
            .split(':')
            .try_fold(0.0, |value, part| Some(value * 60.0 + part.parse::<f64>().ok()?))?,
    };
    Some(sign * value)
}

/// `Double.toString`.
fn java_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_text_resolves_as_in_yaml_1_1() {
        for (tag, texts) in [
            (BOOL, &["yes", "Yes", "OFF", "true"][..]),
            (STR, &["yEs", "y", "N", "=", "~x", "nULL", "08", "1__2:3x", "0o17", "1:60", "."]),
            (
                INT,
                &["0", "-0", "+12", "1_000", "0x_1F", "0b10", "012", "0_7", "1:30", "-190:20:30"],
            ),
            (
                FLOAT,
                &["1.", "1.5", ".5", "1e3", "-1.5E-3", ".inf", "-.INF", ".NaN", "1:30.5", "09e1"],
            ),
            (NULL, &["", " ", "~", "null", "NULL"]),
            (MERGE, &["<<"]),
            (
                TIMESTAMP,
                &[
                    "2020-01-01",
                    "2020-1-1T1:02:03",
                    "2020-01-01 01:02:03.5 +8:00",
                    "2001-12-14t21:59:43.10-05:00",
                ],
            ),
            (
                STR,
                &[
                    "2020-1-1",
                    "2020-01-01T",
                    "2020-01-01 1:2:3",
                    "2020-01-01T01:02:03ZZ",
                    "20-01-01",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(resolve(text), tag, "{text:?}");
            }
        }
    }

    #[test]
    fn integer_is_parsed_in_every_notation_of_java() {
        for (text, value) in
            [("10", 10), ("0x1F", 31), ("012", 10), ("0b11", 3), ("1:30", 90), ("-1_0", -10)]
        {
            assert_eq!(parse_int(text), Some(value), "{text}");
        }
        for text in ["", "-", "--1", "1.5", "ten", "09", "2147483648", "0x", "1:"] {
            assert_eq!(parse_int(text), None, "{text}");
        }
    }

    #[test]
    fn unquoted_value_becomes_what_java_prints() {
        for (text, printed) in [
            ("yes", "true"),
            ("1_000", "1000"),
            ("0x1F", "31"),
            ("012", "10"),
            ("1e3", "1000.0"),
            ("1e10", "1.0E10"),
            ("1.25e-5", "1.25E-5"),
            ("-.inf", "-Infinity"),
            ("12:30:45", "45045"),
            ("2020-01-01", "2020-01-01"),
            ("text", "text"),
        ] {
            let node = Node { tag: resolve(text), ..Node::text(text) };

            assert_eq!(java_to_string(&node), printed);
        }
    }
}
