//! The keys of the attribute: their values, and the builder calls they become.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Ident, Lit, LitStr, Result, ext::IdentExt};

use super::{
    attribute::{Argument, Value},
    checks,
};

/// The settings of the attribute, as builder calls.
#[derive(Default)]
pub(crate) struct Settings {
    /// Overrides the function's name.
    pub(crate) name: Option<TokenStream>,
    /// Calls on the job, in the order they were written: `.cron("…")?.shards(3)`.
    pub(crate) job: TokenStream,
    /// Calls on the `NodeJob`.
    pub(crate) node_job: TokenStream,
    pub(crate) blocking: bool,
}

struct Key {
    name: &'static str,
    /// Java ElasticJob's name for it, which an unknown key is compared with; empty if there is none.
    java_name: &'static str,
    value: ValueKind,
}

/// The kind of value that a key takes, and the function that applies it.
enum ValueKind {
    /// A string. An error of `apply` points to it.
    Text {
        example: &'static str,
        apply: fn(&mut Settings, &LitStr) -> std::result::Result<(), String>,
    },
    /// No value, true or false.
    Flag(fn(&mut Settings, bool)),
    /// A number within the bounds of the property.
    Number { min: i32, max: i32, apply: fn(&mut Settings, i32) },
    /// Strings in parentheses.
    Texts(fn(&mut Settings, &[LitStr])),
    /// Pairs of key and string in parentheses.
    Pairs(fn(&mut Settings, &[(LitStr, LitStr)])),
}

/// A string that is passed to the builder unchanged.
macro_rules! text {
    ($name:literal, $java_name:literal, $example:literal, |$text:ident| $($call:tt)*) => {
        Key {
            name: $name,
            java_name: $java_name,
            value: ValueKind::Text {
                example: $example,
                apply: |settings, $text| {
                    settings.job.extend(quote!($($call)*));
                    Ok(())
                },
            },
        }
    };
}

/// A string that is stored as an `elasticjob.` property and parsed by the library.
macro_rules! policy {
    ($name:literal, $example:literal, $key:ident) => {
        text!($name, "", $example, |text| .prop(::elasticjob::job::keys::$key, #text)?)
    };
}

/// A flag that selects one of two variants.
macro_rules! choice {
    ($name:literal, $java_name:literal, $method:ident, $kind:ident: $yes:ident | $no:ident) => {
        Key {
            name: $name,
            java_name: $java_name,
            value: ValueKind::Flag(|settings, yes| {
                settings.job.extend(if yes {
                    quote!(.$method(::elasticjob::job::$kind::$yes))
                } else {
                    quote!(.$method(::elasticjob::job::$kind::$no))
                });
            }),
        }
    };
}

const KEYS: &[Key] = &[
    Key {
        name: "name",
        java_name: "jobName",
        value: ValueKind::Text {
            example: "settle-orders",
            apply: |settings, text| {
                settings.name = Some(quote!(#text));
                Ok(())
            },
        },
    },
    Key {
        name: "cron",
        java_name: "cron",
        value: ValueKind::Text {
            example: "0 0 2 * * ?",
            apply: |settings, text| {
                settings.job.extend(quote!(.cron(#text)?));
                checks::cron(&text.value())
            },
        },
    },
    text!("zone", "timeZone", "Europe/Paris", |text| .zone(#text)?),
    policy!("dst", "quartz", DST),
    Key {
        name: "shards",
        java_name: "shardingTotalCount",
        value: ValueKind::Number {
            min: 1,
            max: 100_000,
            apply: |settings, count| {
                let count = count.unsigned_abs();
                settings.job.extend(quote!(.shards(#count)));
            },
        },
    },
    Key {
        name: "items",
        java_name: "shardingItemParameters",
        value: ValueKind::Text {
            example: "0=Beijing,1=Shanghai",
            apply: |settings, text| {
                settings.job.extend(quote!(.items(#text)?));
                checks::items(&text.value())
            },
        },
    },
    text!("parameter", "jobParameter", "all", |text| .parameter(#text)),
    text!("description", "description", "settles what was sold", |text| .description(#text)),
    text!("label", "label", "billing", |text| .label(#text)),
    choice!("failover", "failover", failover, Failover: TakeOver | Wait),
    choice!("misfire", "misfire", misfire, Misfire: RunOnce | Skip),
    choice!("monitor_execution", "monitorExecution", monitor, Monitor: Executions | Nothing),
    choice!("overwrite", "overwrite", overwrite, Overwrite: LocalWins | StoredWins),
    choice!("static_sharding", "staticSharding", resharding, Resharding: Static | Elastic),
    Key {
        name: "disabled",
        java_name: "disabled",
        value: ValueKind::Flag(|settings, yes| {
            settings.job.extend(yes.then(|| quote!(.disabled())));
        }),
    },
    Key {
        name: "max_time_diff_seconds",
        java_name: "maxTimeDiffSeconds",
        value: ValueKind::Number {
            min: -1,
            max: 2_147_483_647,
            apply: |settings, seconds| {
                let limit = quote!(::elasticjob::job::MaxTimeDiff::seconds(#seconds));
                settings.job.extend(quote!(.max_time_diff(#limit)));
            },
        },
    },
    Key {
        name: "reconcile_interval_minutes",
        java_name: "reconcileIntervalMinutes",
        value: ValueKind::Number {
            min: 0,
            max: 2_147_483_647,
            apply: |settings, minutes| {
                let interval = quote!(::elasticjob::job::Reconcile::minutes(#minutes));
                settings.job.extend(quote!(.reconcile(#interval)));
            },
        },
    },
    text!("strategy", "jobShardingStrategyType", "ROUND_ROBIN", |text| .strategy(&#text.into())),
    text!("thread_pool", "jobExecutorThreadPoolSizeProviderType", "SINGLE_THREAD", |text| .threads(&#text.into())),
    text!("alert", "jobErrorHandlerType", "EMAIL", |text| .alert(#text)),
    policy!("timeout", "90s", TIMEOUT),
    Key {
        name: "retry_max_attempts",
        java_name: "",
        value: ValueKind::Number {
            min: 1,
            max: 1_000_000,
            apply: |settings, attempts| {
                let attempts = attempts.to_string();
                let key = quote!(::elasticjob::job::keys::RETRY_MAX_ATTEMPTS);
                settings.job.extend(quote!(.prop(#key, #attempts)?));
            },
        },
    },
    policy!("retry_backoff", "1s..1m", RETRY_BACKOFF),
    policy!("catch_up", "last", CATCH_UP),
    policy!("on_lease_loss", "finish-fenced", ON_LEASE_LOSS),
    policy!("handler", "shop::settle", HANDLER),
    Key {
        name: "java_class",
        java_name: "elasticJobClass",
        value: ValueKind::Text {
            example: "com.acme.SettleOrders",
            apply: |settings, text| {
                settings.node_job.extend(quote!(.java_class(#text)));
                Ok(())
            },
        },
    },
    Key {
        name: "java_listeners",
        java_name: "jobListenerTypes",
        value: ValueKind::Texts(|settings, texts| {
            settings.job.extend(quote!(.java_listeners([#(#texts),*])));
        }),
    },
    Key {
        name: "props",
        java_name: "props",
        value: ValueKind::Pairs(|settings, pairs| {
            for (key, value) in pairs {
                settings.job.extend(quote!(.prop(#key, #value)?));
            }
        }),
    },
    Key {
        name: "blocking",
        java_name: "",
        value: ValueKind::Flag(|settings, yes| settings.blocking = yes),
    },
];

/// Converts the arguments to settings. Returns every error in them with its location.
pub(crate) fn settings(arguments: &[Argument]) -> (Settings, Vec<Error>) {
    let (mut settings, mut errors) = (Settings::default(), Vec::new());
    let mut seen: Vec<String> = Vec::new();
    for argument in arguments {
        let name = argument.key.unraw().to_string();
        if seen.contains(&name) {
            let problem = format!("`{name}` is given twice; hint: keep one of the two");
            errors.push(Error::new(argument.key.span(), problem));
            continue;
        }
        let result = match KEYS.iter().find(|key| key.name == name) {
            Some(key) => key.apply(&mut settings, argument),
            None => Err(unknown(&argument.key, &name)),
        };
        errors.extend(result.err());
        seen.push(name);
    }
    (settings, errors)
}

impl Key {
    fn apply(&self, settings: &mut Settings, argument: &Argument) -> Result<()> {
        let name = self.name;
        let error = |problem: String| Err(argument.error(problem));
        match (&self.value, &argument.value) {
            (ValueKind::Text { apply, .. }, Value::Literal(Lit::Str(text))) => {
                apply(settings, text).or_else(error)
            }
            (ValueKind::Text { example, .. }, _) => {
                error(format!("`{name}` takes a string; hint: for example {name} = {example:?}"))
            }
            (ValueKind::Flag(apply), Value::Bare) => {
                apply(settings, true);
                Ok(())
            }
            (ValueKind::Flag(apply), Value::Literal(Lit::Bool(flag))) => {
                apply(settings, flag.value);
                Ok(())
            }
            (ValueKind::Flag(_), _) => error(format!(
                "`{name}` is a flag; hint: write {name}, {name} = true or {name} = false"
            )),
            (ValueKind::Number { min, max, apply }, Value::Literal(Lit::Int(number))) => {
                match number.base10_parse::<i32>() {
                    Ok(number) if (*min..=*max).contains(&number) => {
                        apply(settings, number);
                        Ok(())
                    }
                    _ => error(format!(
                        "`{name}` = {number} is out of range; hint: it is a number from {min} to {max}"
                    )),
                }
            }
            (ValueKind::Number { min, .. }, _) => error(format!(
                "`{name}` takes a number without quotes; hint: for example {name} = {}",
                (*min).max(3)
            )),
            (ValueKind::Texts(apply), Value::Texts(texts)) => {
                apply(settings, texts);
                Ok(())
            }
            (ValueKind::Texts(_), _) => error(format!(
                "`{name}` takes strings in parentheses; hint: for example {name}(\"one\", \"two\")"
            )),
            (ValueKind::Pairs(apply), Value::Pairs(pairs)) => {
                apply(settings, pairs);
                Ok(())
            }
            (ValueKind::Pairs(_), _) => error(format!(
                "`{name}` takes keys and strings in parentheses; hint: for example {name}(email.host = \"mail.acme.com\")"
            )),
        }
    }
}

fn unknown(key: &Ident, name: &str) -> Error {
    let all = || KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
    let hint = nearest(name).map_or_else(
        || format!("the keys are {}", all()),
        |known| format!("did you mean `{known}`?"),
    );
    Error::new(key.span(), format!("unknown key `{name}`; hint: {hint}"))
}

/// The key that was probably meant: the one with this Java name, or the most similar one.
fn nearest(name: &str) -> Option<&'static str> {
    let normalize = |word: &str| word.replace('_', "").to_ascii_lowercase();
    let name = normalize(name);
    let by_java_name = KEYS.iter().find(|key| {
        let java_name = normalize(key.java_name);
        name == java_name || name.len() > 4 && java_name.contains(&name)
    });
    let by_similarity = || {
        KEYS.iter()
            .map(|key| (distance(&name, &normalize(key.name)), key))
            .filter(|(distance, key)| *distance <= 1 + key.name.len() / 5)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, key)| key)
    };
    by_java_name.or_else(by_similarity).map(|key| key.name)
}

/// Levenshtein distance.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (line, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, b) in other.chars().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_key_is_found() {
        for (written, expected) in [
            ("crom", "cron"),
            ("fail_over", "failover"),
            ("shard", "shards"),
            ("sharding_total_count", "shards"),
            ("shardingItemParameters", "items"),
            ("time_zone", "zone"),
            ("error_handler", "alert"),
            ("monitor_exec", "monitor_execution"),
            ("retry_attempts", "retry_max_attempts"),
        ] {
            assert_eq!(nearest(written), Some(expected), "{written}");
        }
        assert_eq!(nearest("colour"), None);
    }
}
