//! Checks of values that are possible without the library. Each check refuses only values that the library refuses, too; the library
//! checks again when a node starts.

/// Checks that there are at least six fields. The library checks the fields themselves.
pub(crate) fn cron(text: &str) -> Result<(), String> {
    let fields = text.split_whitespace().count();
    if fields >= 6 {
        return Ok(());
    }
    let count = if fields == 1 { "1 field".to_owned() } else { format!("{fields} fields") };
    Err(format!(
        "cron {text:?} has {count}; hint: seconds come first, then minutes, hours, day of month, month, day of week and optionally a year, as in \"0 0 2 * * ?\""
    ))
}

/// Checks that shard parameters are `number=text`, separated by commas.
pub(crate) fn items(text: &str) -> Result<(), String> {
    let parts = text.trim_end_matches(',');
    let is_invalid = |part: &&str| {
        part.split_once('=').is_none_or(|(item, _)| item.trim().parse::<i32>().is_err())
    };
    match parts.split(',').find(is_invalid) {
        Some(part) if !parts.is_empty() => Err(format!(
            "item parameters {text:?}: {part:?} is not number=text; hint: for example items = \"0=Beijing,1=Shanghai\""
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_library_accepts_are_accepted() {
        for text in ["0/5 * * * * ?", "0\t0 2 * * ? 2030", "0 0 2 * * ? 2030 and more"] {
            assert_eq!(cron(text), Ok(()), "{text}");
        }
        for text in ["", ",", "0=a,1=b,,", "0=a=", "+1= x y ", " 0 = a , 1=b", "-1=a", "0=a,0=b"] {
            assert_eq!(items(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn error_names_the_refused_part() {
        assert!(cron("*/5 * * * *").unwrap_err().contains("has 5 fields"));
        assert!(cron("@daily").unwrap_err().contains("has 1 field;"));
        for (text, part) in
            [("0=a,b", "\"b\""), ("x=a", "\"x=a\""), ("0=a,,1=b", "\"\""), (" ", "\" \"")]
        {
            let error = items(text).unwrap_err();

            assert!(error.contains(&format!(": {part} is not")), "{error}");
        }
    }
}
