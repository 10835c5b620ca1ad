//! Every key, what it takes, and what it says to the builder.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Ident, Lit, LitStr, Result, ext::IdentExt};

use super::{
    attribute::{Argument, Value},
    checks,
};

/// What the attribute says, as calls of the builder.
#[derive(Default)]
pub(crate) struct Settings {
    /// Another name than the function's.
    pub(crate) name: Option<TokenStream>,
    /// `.cron("…")?.shards(3)` and so on, in the order they were written.
    pub(crate) job: TokenStream,
    /// The same for what is said about the job on this node.
    pub(crate) node_job: TokenStream,
    /// Whether the function blocks its thread.
    pub(crate) blocking: bool,
}

struct Key {
    name: &'static str,
    /// What the ancestor calls it, for those who write that.
    ancestor: &'static str,
    takes: Takes,
}

enum Takes {
    /// A text in quotes. What is wrong with it is told at the text.
    Text {
        example: &'static str,
        say: fn(&mut Settings, &LitStr) -> std::result::Result<(), String>,
    },
    /// Nothing, or true or false.
    Flag(fn(&mut Settings, bool)),
    /// A number of the ancestor's, which are 32 bits wide.
    Number { least: i32, say: fn(&mut Settings, i32) },
    /// Texts in parentheses.
    Texts(fn(&mut Settings, &[LitStr])),
    /// Pairs in parentheses.
    Pairs(fn(&mut Settings, &[(LitStr, LitStr)])),
}

/// A text that goes to the builder as it is.
macro_rules! text {
    ($name:literal, $ancestor:literal, $example:literal, |$text:ident| $($call:tt)*) => {
        Key {
            name: $name,
            ancestor: $ancestor,
            takes: Takes::Text {
                example: $example,
                say: |settings, $text| {
                    settings.job.extend(quote!($($call)*));
                    Ok(())
                },
            },
        }
    };
}

/// One of our properties, whose text the library reads.
macro_rules! policy {
    ($name:literal, $example:literal, $key:ident) => {
        text!($name, "", $example, |text| .prop(::elasticjob::job::keys::$key, #text)?)
    };
}

/// One of two ways; the other is the default or has to be said, too.
macro_rules! choice {
    ($name:literal, $ancestor:literal, $method:ident, $kind:ident: $yes:ident | $no:ident) => {
        Key {
            name: $name,
            ancestor: $ancestor,
            takes: Takes::Flag(|settings, yes| {
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
        ancestor: "jobName",
        takes: Takes::Text {
            example: "settle-orders",
            say: |settings, text| {
                settings.name = Some(quote!(#text));
                Ok(())
            },
        },
    },
    Key {
        name: "cron",
        ancestor: "cron",
        takes: Takes::Text {
            example: "0 0 2 * * ?",
            say: |settings, text| {
                settings.job.extend(quote!(.cron(#text)?));
                checks::cron(&text.value())
            },
        },
    },
    text!("zone", "timeZone", "Europe/Paris", |text| .zone(#text)?),
    policy!("dst", "quartz", DST),
    Key {
        name: "shards",
        ancestor: "shardingTotalCount",
        takes: Takes::Number {
            least: 1,
            say: |settings, count| {
                let count = count.unsigned_abs();
                settings.job.extend(quote!(.shards(#count)));
            },
        },
    },
    Key {
        name: "items",
        ancestor: "shardingItemParameters",
        takes: Takes::Text {
            example: "0=Beijing,1=Shanghai",
            say: |settings, text| {
                settings.job.extend(quote!(.items(#text)?));
                checks::items(&text.value())
            },
        },
    },
    text!("parameter", "jobParameter", "all", |text| .parameter(#text)),
    text!("description", "description", "settles what was sold", |text| .description(#text)),
    text!("label", "label", "billing", |text| .label(#text)),
    choice!("failover", "failover", if_node_dies, Failover: TakeOver | Wait),
    choice!("misfire", "misfire", if_late, Misfire: RunOnce | Skip),
    choice!("monitor_execution", "monitorExecution", monitor, Monitor: Executions | Nothing),
    choice!("overwrite", "overwrite", if_stored_differs, Overwrite: LocalWins | StoredWins),
    choice!("static_sharding", "staticSharding", resharding, Resharding: Static | Elastic),
    Key {
        name: "disabled",
        ancestor: "disabled",
        takes: Takes::Flag(|settings, yes| {
            settings.job.extend(yes.then(|| quote!(.disabled())));
        }),
    },
    Key {
        name: "max_time_diff_seconds",
        ancestor: "maxTimeDiffSeconds",
        takes: Takes::Number {
            least: -1,
            say: |settings, seconds| {
                let limit = quote!(::elasticjob::job::MaxTimeDiff::seconds(#seconds));
                settings.job.extend(quote!(.max_time_diff(#limit)));
            },
        },
    },
    Key {
        name: "reconcile_interval_minutes",
        ancestor: "reconcileIntervalMinutes",
        takes: Takes::Number {
            least: 0,
            say: |settings, minutes| {
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
        ancestor: "",
        takes: Takes::Number {
            least: 1,
            say: |settings, attempts| {
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
        ancestor: "elasticJobClass",
        takes: Takes::Text {
            example: "com.acme.SettleOrders",
            say: |settings, text| {
                settings.node_job.extend(quote!(.java_class(#text)));
                Ok(())
            },
        },
    },
    Key {
        name: "java_listeners",
        ancestor: "jobListenerTypes",
        takes: Takes::Texts(|settings, texts| {
            settings.job.extend(quote!(.java_listeners([#(#texts),*])));
        }),
    },
    Key {
        name: "props",
        ancestor: "props",
        takes: Takes::Pairs(|settings, pairs| {
            for (key, value) in pairs {
                settings.job.extend(quote!(.prop(#key, #value)?));
            }
        }),
    },
    Key {
        name: "blocking",
        ancestor: "",
        takes: Takes::Flag(|settings, yes| settings.blocking = yes),
    },
];

/// What the arguments say; every mistake in them, each at its place.
pub(crate) fn settings(arguments: &[Argument]) -> (Settings, Vec<Error>) {
    let (mut settings, mut mistakes) = (Settings::default(), Vec::new());
    let mut seen: Vec<String> = Vec::new();
    for argument in arguments {
        let name = argument.key.unraw().to_string();
        if seen.contains(&name) {
            let problem = format!("`{name}` stands here twice; hint: keep one of the two");
            mistakes.push(Error::new(argument.key.span(), problem));
            continue;
        }
        let told = match KEYS.iter().find(|key| key.name == name) {
            Some(key) => key.tell(&mut settings, argument),
            None => Err(unknown(&argument.key, &name)),
        };
        mistakes.extend(told.err());
        seen.push(name);
    }
    (settings, mistakes)
}

impl Key {
    fn tell(&self, settings: &mut Settings, argument: &Argument) -> Result<()> {
        let name = self.name;
        let wrong = |problem: String| Err(argument.wrong(problem));
        match (&self.takes, &argument.value) {
            (Takes::Text { say, .. }, Value::Literal(Lit::Str(text))) => {
                say(settings, text).or_else(wrong)
            }
            (Takes::Text { example, .. }, _) => wrong(format!(
                "`{name}` takes a text in quotes; hint: for example {name} = {example:?}"
            )),
            (Takes::Flag(say), Value::Bare) => {
                say(settings, true);
                Ok(())
            }
            (Takes::Flag(say), Value::Literal(Lit::Bool(flag))) => {
                say(settings, flag.value);
                Ok(())
            }
            (Takes::Flag(_), _) => wrong(format!(
                "`{name}` is said or not; hint: write {name}, {name} = true or {name} = false"
            )),
            (Takes::Number { least, say }, Value::Literal(Lit::Int(number))) => {
                match number.base10_parse::<i32>() {
                    Ok(number) if number >= *least => {
                        say(settings, number);
                        Ok(())
                    }
                    _ => wrong(format!(
                        "`{name}` = {number} is out of range; hint: it is a number from {least} to {}",
                        i32::MAX
                    )),
                }
            }
            (Takes::Number { least, .. }, _) => wrong(format!(
                "`{name}` takes a number without quotes; hint: for example {name} = {}",
                (*least).max(3)
            )),
            (Takes::Texts(say), Value::Texts(texts)) => {
                say(settings, texts);
                Ok(())
            }
            (Takes::Texts(_), _) => wrong(format!(
                "`{name}` takes texts in parentheses; hint: for example {name}(\"one\", \"two\")"
            )),
            (Takes::Pairs(say), Value::Pairs(pairs)) => {
                say(settings, pairs);
                Ok(())
            }
            (Takes::Pairs(_), _) => wrong(format!(
                "`{name}` takes keys and texts in parentheses; hint: for example {name}(email.host = \"mail.acme.com\")"
            )),
        }
    }
}

fn unknown(key: &Ident, name: &str) -> Error {
    let all = || KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
    let hint = nearest(name)
        .map_or_else(|| format!("there are {}", all()), |known| format!("did you mean `{known}`?"));
    Error::new(key.span(), format!("a job has no key `{name}`; hint: {hint}"))
}

/// The key somebody may have meant: the ancestor's word for it, or a slip of the finger.
fn nearest(name: &str) -> Option<&'static str> {
    let plain = |word: &str| word.replace('_', "").to_ascii_lowercase();
    let name = plain(name);
    let ancestors = KEYS.iter().find(|key| {
        let ancestor = plain(key.ancestor);
        name == ancestor || name.len() > 4 && ancestor.contains(&name)
    });
    let slip = || {
        KEYS.iter()
            .map(|key| (distance(&name, &plain(key.name)), key))
            .filter(|(distance, key)| *distance <= 1 + key.name.len() / 5)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, key)| key)
    };
    ancestors.or_else(slip).map(|key| key.name)
}

/// How many characters have to be put in, taken out or changed.
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
    fn the_key_somebody_meant_is_found() {
        for (written, meant) in [
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
            assert_eq!(nearest(written), Some(meant), "{written}");
        }
        assert_eq!(nearest("colour"), None);
    }
}
