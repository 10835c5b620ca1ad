//! What an unquoted scalar is taken for, by YAML 1.1 as SnakeYAML 2.2 reads it, and what Java makes of it.

use super::node::{BOOL, FLOAT, INT, Kind, MERGE, NULL, Node, STR, TIMESTAMP, Tag};

/// The type of an unquoted text.
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

/// A cursor that eats what it recognises; everything of interest is ASCII.
struct Eater<'a>(&'a [u8]);

impl Eater<'_> {
    fn many(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let count = self.0.iter().take_while(|byte| wanted(**byte)).count();
        self.0 = &self.0[count..];
        count
    }

    fn one(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        match self.0.first() {
            Some(byte) if wanted(*byte) => {
                self.0 = &self.0[1..];
                true
            }
            _ => false,
        }
    }

    fn byte(&mut self, wanted: u8) -> bool {
        self.one(|byte| byte == wanted)
    }

    fn sign(&mut self) {
        self.one(|byte| matches!(byte, b'-' | b'+'));
    }

    fn digits(&mut self) -> usize {
        self.many(|byte| byte.is_ascii_digit())
    }

    /// A digit, then digits and underscores.
    fn number(&mut self) -> bool {
        self.one(|byte| byte.is_ascii_digit()) && {
            self.many(digit_or_underscore);
            true
        }
    }

    /// `:0` to `:59`, once or more.
    fn sixties(&mut self) -> bool {
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

    /// An exponent or nothing; false if it is broken.
    fn exponent(&mut self) -> bool {
        if !self.one(|byte| matches!(byte, b'e' | b'E')) {
            return true;
        }
        self.sign();
        self.digits() > 0
    }

    fn done(&self) -> bool {
        self.0.is_empty()
    }
}

fn digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

fn unsigned(text: &str) -> &[u8] {
    let mut eater = Eater(text.as_bytes());
    eater.sign();
    eater.0
}

fn is_int(text: &str) -> bool {
    let body = unsigned(text);
    let based = |prefix: &[u8], digit: fn(u8) -> bool| {
        body.strip_prefix(prefix).is_some_and(|rest| {
            let mut eater = Eater(rest);
            eater.many(|byte| byte == b'_');
            eater.one(digit) && {
                eater.many(|byte| digit(byte) || byte == b'_');
                eater.done()
            }
        })
    };
    let octal = |byte: u8| matches!(byte, b'0'..=b'7');
    if body == b"0"
        || based(b"0b", |byte| matches!(byte, b'0' | b'1'))
        || based(b"0x", |byte| byte.is_ascii_hexdigit())
        || based(b"0", octal)
    {
        return true;
    }
    let mut eater = Eater(body);
    matches!(body.first(), Some(b'1'..=b'9'))
        && eater.number()
        && (eater.done() || (eater.sixties() && eater.done()))
}

fn is_float(text: &str) -> bool {
    let body = unsigned(text);
    if matches!(text, ".nan" | ".NaN" | ".NAN") || matches!(body, b".inf" | b".Inf" | b".INF") {
        return true;
    }
    let mut eater = Eater(body);
    if eater.byte(b'.') {
        return eater.many(digit_or_underscore) > 0 && eater.exponent() && eater.done();
    }
    if !eater.number() {
        return false;
    }
    if matches!(eater.0.first(), Some(b':')) {
        return eater.sixties() && eater.byte(b'.') && {
            eater.many(digit_or_underscore);
            eater.done()
        };
    }
    if eater.byte(b'.') {
        eater.many(digit_or_underscore);
        return eater.exponent() && eater.done();
    }
    matches!(eater.0.first(), Some(b'e' | b'E')) && eater.exponent() && eater.done()
}

fn is_timestamp(text: &str) -> bool {
    let mut eater = Eater(text.as_bytes());
    let one_or_two = |eater: &mut Eater<'_>| matches!(eater.digits(), 1 | 2);
    if eater.digits() != 4 || !eater.byte(b'-') {
        return false;
    }
    let month = eater.digits();
    if !eater.byte(b'-') {
        return false;
    }
    let day = eater.digits();
    if eater.done() {
        return month == 2 && day == 2;
    }
    if !matches!(month, 1 | 2) || !matches!(day, 1 | 2) {
        return false;
    }
    if !eater.one(|byte| matches!(byte, b'T' | b't')) && eater.many(blank) == 0 {
        return false;
    }
    let time = one_or_two(&mut eater)
        && eater.byte(b':')
        && eater.digits() == 2
        && eater.byte(b':')
        && eater.digits() == 2;
    if !time {
        return false;
    }
    if eater.byte(b'.') {
        eater.digits();
    }
    if eater.done() {
        return true;
    }
    eater.many(blank);
    if eater.byte(b'Z') {
        return eater.done();
    }
    eater.one(|byte| matches!(byte, b'-' | b'+'))
        && one_or_two(&mut eater)
        && (eater.done() || (eater.byte(b':') && eater.digits() == 2 && eater.done()))
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// A truth value where one is expected, quoted or not.
pub(in crate::job) fn bool_of(text: &str) -> Option<bool> {
    bool_word(&text.to_ascii_lowercase())
}

/// A whole number where one is expected, quoted or not: decimal, `0x1F`, `0b1`, `017`, `1:30` for ninety, underscores anywhere.
pub(in crate::job) fn int_of(text: &str) -> Option<i32> {
    big_int(text).and_then(|value| i32::try_from(value).ok())
}

fn big_int(text: &str) -> Option<i128> {
    let text = text.replace('_', "");
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, &text[..]),
    };
    // Java takes a second sign here and Rust would, too.
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

/// What Java's `toString` makes of a value: the ancestor stores every property that way.
///
/// Two things stay as they are written. A date, because Java prints it in the time zone of whoever reads it. And a number too large
/// to count with.
pub(in crate::job) fn java_text(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar(_) if node.is_null() => "null".to_owned(),
        Kind::Scalar(text) => {
            let converted = if node.tag == BOOL {
                bool_of(text).map(|value| value.to_string())
            } else if node.tag == INT {
                big_int(text).map(|value| value.to_string())
            } else if node.tag == FLOAT {
                float_of(text).map(java_double)
            } else {
                None
            };
            converted.unwrap_or_else(|| text.clone())
        }
        Kind::Sequence(items) => {
            format!("[{}]", items.iter().map(java_text).collect::<Vec<_>>().join(", "))
        }
        Kind::Mapping(entries) => {
            let pair =
                |(key, value): &(Node, Node)| format!("{}={}", java_text(key), java_text(value));
            format!("{{{}}}", entries.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

fn float_of(text: &str) -> Option<f64> {
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
    fn an_unquoted_text_is_what_yaml_1_1_says() {
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
    fn a_number_is_read_in_every_notation_the_ancestor_reads() {
        for (text, value) in
            [("10", 10), ("0x1F", 31), ("012", 10), ("0b11", 3), ("1:30", 90), ("-1_0", -10)]
        {
            assert_eq!(int_of(text), Some(value), "{text}");
        }
        for text in ["", "-", "--1", "1.5", "ten", "09", "2147483648", "0x", "1:"] {
            assert_eq!(int_of(text), None, "{text}");
        }
    }

    #[test]
    fn an_unquoted_property_becomes_what_java_prints() {
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

            assert_eq!(java_text(&node), printed);
        }
    }
}
