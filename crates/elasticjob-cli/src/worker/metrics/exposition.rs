//! Prometheus's text format.

use std::fmt::{self, Write};

use super::histogram::Histogram;

/// Metric families, as text.
#[derive(Default)]
pub(super) struct Exposition(String);

/// A metric family to which samples are added.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    pub(super) fn counter<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, "counter", help)
    }

    pub(super) fn gauge<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, "gauge", help)
    }

    pub(super) fn histogram<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, "histogram", help)
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn family<'a>(&'a mut self, name: &'a str, kind: &str, help: &str) -> Family<'a> {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.0, name }
    }
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.suffixed("", labels, value);
    }

    /// Adds the buckets, sum and count of a histogram.
    pub(super) fn buckets(&mut self, label: (&str, &str), histogram: &Histogram) {
        for (bound, count) in histogram.cumulative() {
            self.suffixed("_bucket", &[label, ("le", &*bound.to_string())], count);
        }
        self.suffixed("_bucket", &[label, ("le", "+Inf")], histogram.count());
        self.suffixed("_sum", &[label], histogram.sum());
        self.suffixed("_count", &[label], histogram.count());
    }

    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        let (name, text) = (self.name, &mut *self.text);
        let _ = write!(text, "{name}{suffix}");
        for (index, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}{label}=\"{value}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_is_written_with_escaped_labels() {
        let mut exposition = Exposition::default();
        let mut family = exposition.gauge("shards", "Shards running now.");
        family.sample(&[], 1);
        family.sample(&[("job", "a\\b"), ("note", "say \"x\"\n")], 2.5);

        assert_eq!(
            exposition.into_text(),
            "# HELP shards Shards running now.\n# TYPE shards gauge\nshards 1\n\
             shards{job=\"a\\\\b\",note=\"say \\\"x\\\"\\n\"} 2.5\n"
        );
    }

    #[test]
    fn histogram_is_written_with_cumulative_buckets() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.5, 4.0] {
            histogram.add(value);
        }
        let mut exposition = Exposition::default();
        exposition.histogram("delay", "Start delay.").buckets(("job", "a"), &histogram);

        assert_eq!(
            exposition.into_text(),
            "# HELP delay Start delay.\n# TYPE delay histogram\n\
             delay_bucket{job=\"a\",le=\"1\"} 1\ndelay_bucket{job=\"a\",le=\"2\"} 2\n\
             delay_bucket{job=\"a\",le=\"+Inf\"} 3\ndelay_sum{job=\"a\"} 6\ndelay_count{job=\"a\"} 3\n"
        );
    }
}
