//! Captures what handlers log through `tracing` as output of their shard.

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

use super::buffer::OutputBuffer;
use crate::runtime::AttachedValue;

/// Captures what handlers log as output of their shard, in addition to whatever else the program does with its log. A filter on the layer
/// selects what is kept.
///
/// A record belongs to a shard if it is logged in its handler (async or [`blocking`](crate::execution::blocking)), or in a task that carries the
/// handler's span: `tokio::spawn(work.in_current_span())`. All other records are ignored, and so are this library's own records about a shard.
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

/// Captures what handlers log; see [`layer`].
#[derive(Debug, Clone)]
pub struct Layer(());

/// The output buffer that a span belongs to. Weak, because a span may outlive its attempt.
struct SpanOwner(Weak<OutputBuffer>);

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let (Some(buffer), Some(span)) = (AttachedValue::get::<OutputBuffer>(), context.span(id))
        {
            span.extensions_mut().replace(SpanOwner(Arc::downgrade(&buffer)));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let target = event.metadata().target();
        if target == "elasticjob" || target.starts_with("elasticjob::") {
            return;
        }
        let buffer = AttachedValue::get::<OutputBuffer>().or_else(|| {
            let mut spans = context.event_scope(event)?;
            spans.find_map(|span| span.extensions().get::<SpanOwner>()?.0.upgrade())
        });
        if let Some(buffer) = buffer {
            let mut text = RecordText::default();
            event.record(&mut text);
            buffer.print(level_name(*event.metadata().level()), &text.into_string());
        }
    }
}

fn level_name(level: Level) -> &'static str {
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
struct RecordText {
    message: String,
    fields: String,
}

impl RecordText {
    fn into_string(mut self) -> String {
        if self.message.is_empty() {
            return self.fields.trim_start().to_owned();
        }
        self.message.push_str(&self.fields);
        self.message
    }
}

impl Visit for RecordText {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Writing to a string cannot fail.
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
