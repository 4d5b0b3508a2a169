//! The two text formats of `/metrics`: OpenMetrics 1.0, and the older format of Prometheus, 0.0.4.
//!
//! Metrics are encoded as OpenMetrics. In the older format, the suffix of a counter (`_total`) and of
//! an info (`_info`) is part of the name in `HELP` and `TYPE`, an info is a gauge, and there are no
//! units and no `# EOF`.

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4.
    Prometheus,
}

impl TextFormat {
    /// Returns the media type.
    pub fn content_type(self) -> &'static str {
        match self {
            TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            TextFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns the whole document in this format. `families` are in OpenMetrics, without `# EOF`.
    pub(super) fn finish(self, mut families: String) -> String {
        match self {
            TextFormat::OpenMetrics => {
                families.push_str("# EOF\n");
                families
            }
            TextFormat::Prometheus => to_prometheus(&families),
        }
    }
}

fn to_prometheus(families: &str) -> String {
    let mut text = String::with_capacity(families.len());
    let mut help = "";
    for line in families.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "unknown"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            text.push_str(&format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_follow_the_format() {
        let families = "\
# HELP a_polls Polls.
# TYPE a_polls counter
a_polls_total{outcome=\"ok\"} 1
# HELP a_poll_seconds How long.
# TYPE a_poll_seconds histogram
# UNIT a_poll_seconds seconds
a_poll_seconds_count 1
# HELP a_build What runs.
# TYPE a_build info
a_build_info{version=\"1\"} 1
";
        let prometheus = "\
# HELP a_polls_total Polls.
# TYPE a_polls_total counter
a_polls_total{outcome=\"ok\"} 1
# HELP a_poll_seconds How long.
# TYPE a_poll_seconds histogram
a_poll_seconds_count 1
# HELP a_build_info What runs.
# TYPE a_build_info gauge
a_build_info{version=\"1\"} 1
";
        assert_eq!(TextFormat::Prometheus.finish(families.to_owned()), prometheus);
        let open = TextFormat::OpenMetrics.finish(families.to_owned());
        assert_eq!(open, format!("{families}# EOF\n"));
    }
}
