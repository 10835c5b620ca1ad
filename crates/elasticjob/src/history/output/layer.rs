//! What a handler logs through `tracing`, among what its shard printed.

use std::{
    fmt::{self, Write},
    sync::{Arc, Weak},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{layer::Context, registry::LookupSpan};

use super::notebook::Notebook;
use crate::runtime::Carried;

/// Keeps what handlers log: what is logged inside a shard is part of what the shard printed. It goes beside whatever else the program does with its
/// log; a filter on it says what is kept.
///
/// A record belongs to a shard if it is logged in its handler (async or [`blocking`](crate::execution::blocking)), or in a task that carries the handler's span:
/// `tokio::spawn(work.in_current_span())`. Anything else belongs to nobody. What this library says about a shard is not what the shard printed.
///
/// ```
/// use tracing_subscriber::{filter::LevelFilter, layer::{Layer, SubscriberExt}};
///
/// let subscriber = tracing_subscriber::registry()
///     .with(tracing_subscriber::fmt::layer())
///     .with(elasticjob::history::layer().with_filter(LevelFilter::INFO));
/// # drop(subscriber);
/// ```
pub fn layer() -> Layer {
    Layer(())
}

/// Keeps what handlers log; see [`layer`].
#[derive(Debug, Clone)]
pub struct Layer(());

/// Whose span it is. A span may outlive its attempt.
struct Owner(Weak<Notebook>);

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let (Some(notebook), Some(span)) = (Carried::get::<Notebook>(), context.span(id)) {
            span.extensions_mut().replace(Owner(Arc::downgrade(&notebook)));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let target = event.metadata().target();
        if target == "elasticjob" || target.starts_with("elasticjob::") {
            return;
        }
        let notebook = Carried::get::<Notebook>().or_else(|| {
            let mut spans = context.event_scope(event)?;
            spans.find_map(|span| span.extensions().get::<Owner>()?.0.upgrade())
        });
        if let Some(notebook) = notebook {
            let mut text = Text::default();
            event.record(&mut text);
            notebook.print(name(*event.metadata().level()), &text.whole());
        }
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "TRACE",
    }
}

/// The message, then `field=value` for the rest.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn whole(mut self) -> String {
        if self.message.is_empty() {
            return self.fields.trim_start().to_owned();
        }
        self.message.push_str(&self.fields);
        self.message
    }
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => self.message.write_str(value),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
