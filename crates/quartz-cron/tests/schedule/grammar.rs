//! Valid expressions, warnings and error messages.

use quartz_cron::{Cron, CronError, Dst, Field};

use crate::{at, schedule};

fn error(text: &str) -> CronError {
    text.parse::<Cron>().unwrap_err()
}

fn warnings(text: &str) -> Vec<String> {
    text.parse::<Cron>().unwrap().warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn expression_keeps_its_text_and_is_compared_by_it() {
    let cron: Cron = " 0  0 9 ? * mon-fri ".parse().unwrap();

    assert_eq!(cron.to_string(), " 0  0 9 ? * mon-fri ");
    assert_eq!(cron, cron.to_string().parse().unwrap());
    assert_ne!(cron, "0 0 9 ? * MON-FRI".parse().unwrap());
}

#[test]
fn syntax_that_quartz_documents_gives_no_warning() {
    for text in [
        "0 0 12 * * ?",
        "0 15 10 ? * *",
        "0 15 10 * * ? *",
        "0 15 10 * * ? 2026",
        "0 0/5 14,18 * * ?",
        "0 10,44 14 ? 3 WED",
        "0 15 10 ? * MON-FRI",
        "0 15 10 L * ?",
        "0 15 10 L-2 * ?",
        "0 15 10 LW * ?",
        "0 15 10 15W * ?",
        "0 15 10 ? * 6L",
        "0 15 10 ? * FRIL 2026-2030",
        "0 15 10 ? * 6#3",
        "0 15 10 ? * FRI#3",
        "0 0 22-2 ? NOV-FEB SAT-MON",
        "0 0-30/5 */2 1/7 * ? 2026/2",
    ] {
        assert_eq!(warnings(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn error_names_the_field_and_the_part() {
    for (text, field, part) in [
        ("60 * * * * ?", Field::Seconds, "60"),
        ("0 1,2,60 * * * ?", Field::Minutes, "60"),
        ("0 0 5-24 * * ?", Field::Hours, "5-24"),
        ("0 0 0 32W * ?", Field::DayOfMonth, "32W"),
        ("0 0 0 l,1 * ?", Field::DayOfMonth, "l,1"),
        ("0 0 0 ? Foo *", Field::Month, "Foo"),
        ("0 0 0 ? * 2,8", Field::DayOfWeek, "8"),
        ("0 0 0 ? * MON#6", Field::DayOfWeek, "MON#6"),
        ("0 0 0 * * ? 2030-2026", Field::Year, "2030-2026"),
        ("1/2/3 * * * * ?", Field::Seconds, "1/2/3"),
        (", * * * * ?", Field::Seconds, ","),
    ] {
        let error = error(text);

        assert_eq!((error.field, error.part.as_str()), (Some(field), part), "{error}");
    }
}

#[test]
fn error_gives_a_hint() {
    for (text, message, hint) in [
        (
            "abc",
            "has 1 field",
            "seconds come first, then minutes, hours, day of month, month, day of week and optionally a year",
        ),
        ("0 0 24 * * ?", r#"hours "24" is out of range"#, "hours are 0 to 23"),
        (
            "0 0 0 ? * 0",
            r#"day of week "0" is out of range"#,
            "days of the week are 1 (Sunday) to 7 (Saturday) or SUN to SAT",
        ),
        (
            "0/60 * * * * ?",
            r#"seconds "0/60" has a step of 60"#,
            "a step here is at most 59, as in 0/5",
        ),
        (
            "0 0 0 ? * L3",
            r#"day of week "L3" has its L in front"#,
            "the last Friday of a month is 6L or FRIL; L alone is Saturday",
        ),
        (
            "0 0 0 ? * MON-5",
            r#"day of week "MON-5" is a range from a name to something else"#,
            "both ends are names, as in MON-FRI, or both are numbers, as in 2-6",
        ),
        (
            "0 0 0 L-31 * ?",
            r#"day of month "L-31" goes back more than a month"#,
            "L-3 is three days before the last; the limit is L-30",
        ),
    ] {
        let error = error(text);
        assert_eq!(error.to_string(), format!("cron {text:?}: {message}"));
        assert_eq!(error.hint, hint);
    }
}

#[test]
fn classic_cron_syntax_is_translated_in_the_hint() {
    for (text, corrected) in [
        ("*/5 * * * *", "0 */5 * * * ?"),
        ("30 9 * * 1-5", "0 30 9 ? * MON-FRI"),
        ("30 9 * * MON", "0 30 9 ? * MON"),
        ("0 0 1,15 * *", "0 0 0 1,15 * ?"),
        ("0 4 * * 7", "0 0 4 ? * SUN"),
        ("@daily", "0 0 0 * * ?"),
        ("@Weekly", "0 0 0 ? * SUN"),
        ("0 0 0 * * *", "0 0 0 * * ?"),
        ("0 0 0 ? * ?", "0 0 0 * * ?"),
        ("0 0 0 * * MON", "0 0 0 ? * MON"),
    ] {
        let error = error(text);

        assert!(error.hint.ends_with(&format!("for example {corrected:?}")), "{error}");
        assert!(corrected.parse::<Cron>().unwrap().warnings().is_empty());
    }
}

#[test]
fn two_day_fields_are_refused_with_a_hint() {
    let error = error("0 0 0 1 * MON");

    assert_eq!(error.field, None);
    assert!(error.hint.contains("two jobs"), "{error}");
}

#[test]
fn quirks_give_a_warning() {
    for (text, message) in [
        ("1,,2 * * * * ?", r#"seconds "1,,2": an empty part is skipped"#),
        ("0 0 0 * * ? * 8 9", r#"fields after the seventh are ignored, starting with "8""#),
        ("0 0 0 ? * MONDAY", r#"day of week "MONDAY": "DAY" is ignored"#),
        ("0 0 0 1-5W * ?", r#"day of month "1-5W": "W" is ignored"#),
        ("0 0 0 1W,15W * ?", r#"day of month "1W,15W": only the smallest day counts: read as 1W"#),
        (
            "0 0 0 ? * FRI#2,MON",
            r#"day of week "FRI#2,MON": only the smallest day counts: read as 2#2"#,
        ),
        ("0 0 0 ? * 0#2", r#"day of week "0#2": day 0: read as 7, Saturday"#),
        ("0/0 * * * * ?", r#"seconds "0/0": a step of 0: read as 0"#),
        ("*/0 * * * * ?", r#"seconds "*/0": a step of 0 or less: read as *"#),
        ("0 0 0 ?,3 * MON", r#"day of month "?,3": everything besides ? is ignored"#),
        ("5,L 0 0 * * ?", r#"seconds "L": ignored: L has a meaning only for days"#),
        ("0 0 0 30 2 ?", "it never fires: there is no such day before the end of 2199"),
        ("0 0 0 * * ? 1969", "it never fires: there is no such day before the end of 2199"),
    ] {
        assert_eq!(warnings(text), [message], "{text}");
    }
}

/// The table of `docs/cron.md`.
#[test]
fn quirk_fires_as_the_expression_it_is_read_as() {
    for (written, read) in [
        ("1,,2 * * * * ?", "1,2 * * * * ?"),
        ("0 0 0 * * ? * nonsense", "0 0 0 * * ?"),
        ("5X *5 * ?5 * MONDAY", "5 * * ? * MON"),
        ("0 0 0 ? JAN/2 MON-FRI/2", "0 0 0 ? JAN MON-FRI"),
        ("0 0 0 1-5W * ?", "0 0 0 1-5 * ?"),
        ("0 0 0 ? * 2-6#3", "0 0 0 ? * 2-6"),
        ("0 0 0 1W,15W * ?", "0 0 0 1W * ?"),
        ("0 0 0 1,15W * ?", "0 0 0 1W * ?"),
        ("0 0 0 ? * FRI#2,MON", "0 0 0 ? * MON#2"),
        ("0 0 0 ? * 0#2", "0 0 0 ? * SAT#2"),
        ("5/0 5-9/0 */0 * * ?", "5 5 * * * ?"),
        ("/5 */-3 * * * ?", "*/5 * * * * ?"),
        ("0 0 0 5-0 9-0 ?", "0 0 0 5-31 9-12 ?"),
        ("0 0 0 ?,3 * MON", "0 0 0 ? * MON"),
        ("0 0 0 L-W * ?", "0 0 0 LW * ?"),
        ("0 0 0 ? * LW", "0 0 0 ? * SAT"),
        ("0 0 0 ? * L-3", "0 0 0 ? * SAT"),
        ("5,L 5,L 5,L * 5,L ?", "5 5 5 * 5 ?"),
    ] {
        let fires = |text| {
            let schedule = schedule(text, "UTC", Dst::Default);
            schedule.after(at("2026-11-15T06:36:07Z")).take(50).collect::<Vec<_>>()
        };

        assert!(!warnings(written).is_empty(), "{written}");
        assert!(warnings(read).is_empty(), "{read}");
        assert_eq!(fires(written), fires(read), "{written}");
    }
}
