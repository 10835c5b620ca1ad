//! Durations as text: `500ms`, `30s`, `5m`, `2h`, `1d`.

use std::time::Duration;

use super::{bounds::check_duration, error::InvalidValue};

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Parses a duration longer than zero and not longer than ten years.
pub(super) fn parse(what: &'static str, text: &str) -> Result<Duration, InvalidValue> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    let millis = number.parse::<u64>().ok().zip(scale).and_then(|(n, scale)| n.checked_mul(scale));
    match millis {
        Some(0) => {
            Err(InvalidValue::new(what, text, "it must be longer than zero; for example 30s"))
        }
        Some(millis) => check_duration(what, text, Duration::from_millis(millis)),
        None => Err(InvalidValue::new(
            what,
            text,
            "a number and ms, s, m, h or d; for example 500ms or 30s",
        )),
    }
}

/// Formats a duration in the largest unit that gives a whole number; precision below a millisecond is lost.
pub(super) fn format(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1);
    let (unit, scale) =
        UNITS.iter().rev().find(|(_, scale)| millis % scale == 0).unwrap_or(&UNITS[0]);
    format!("{}{unit}", millis / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_round_trips_as_text() {
        for text in ["1ms", "1500ms", "30s", "5m", "2h", "3d"] {
            assert_eq!(format(parse("timeout", text).unwrap()), text);
        }
        assert_eq!(format(Duration::from_mins(2)), "2m");
        assert_eq!(parse("timeout", "3650d").unwrap(), super::super::bounds::MAX_DURATION);
        for invalid in [
            "",
            "5",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "1 s",
            "3651d",
            "999999999d",
            "99999999999999999999d",
        ] {
            assert!(parse("timeout", invalid).is_err(), "{invalid}");
        }
    }
}
