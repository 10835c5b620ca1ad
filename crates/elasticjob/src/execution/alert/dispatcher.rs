//! Chooses the channel of each notice and queues notices for the slow ones.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinSet,
};

use super::notice::Notice;
#[cfg(feature = "http")]
use crate::execution::HttpClient;
use crate::{
    execution::{
        BoxError, Failure, Outbound, OutboundPolicy, Outgoing, Secrets, outbound::Refusal,
        secrets::Hidden,
    },
    job::{Alert, Job, TypeName},
    problem::{Problem, with_causes},
    runtime::Tasks,
};

const QUEUE_CAPACITY: usize = 256;

const MAX_CONCURRENT: usize = 4;

/// Limit for one delivery, whatever timeouts the channel has itself.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Delivers notices, for example as mail.
#[async_trait]
pub trait AlertChannel: Send + Sync + 'static {
    /// Delivers the notice. The future is dropped after thirty seconds.
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError>;
}

/// The channels available for notices.
#[derive(Clone, Default)]
pub struct AlertChannels {
    /// For chat robots and webhooks.
    #[cfg(feature = "http")]
    pub http_client: Arc<HttpClient>,
    /// Root certificates (PEM) trusted for mail servers, in addition to those of the system.
    pub mail_roots: Vec<u8>,
    /// The secrets that alerts may refer to.
    pub secrets: Secrets,
    /// Chooses which hosts the alerts of a job may reach. Without it they may reach any.
    pub outbound: Option<OutboundPolicy>,
    /// Channels that the program provides, by the alert type that selects them.
    pub named: HashMap<String, Arc<dyn AlertChannel>>,
}

/// What the caller does after an alert was routed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Routing {
    /// The alert was logged, queued or ignored; continue.
    Continue,
    /// The job's alert is `THROW`: return the failure to the caller that started the run.
    Throw(Failure),
}

/// Sends alerts about failures. Clones share one queue.
#[derive(Clone)]
pub struct Alerts {
    channels: AlertChannels,
    queue: mpsc::Sender<(Arc<dyn AlertChannel>, Notice)>,
}

impl Alerts {
    /// Starts the delivery task in `tasks`. It ends when all clones are dropped and the queue is empty.
    pub fn start(channels: AlertChannels, tasks: &mut Tasks) -> Self {
        let (queue, queued) = mpsc::channel(QUEUE_CAPACITY);
        tasks.spawn(deliver_queued(queued));
        Self { channels, queue }
    }

    /// Routes the notice as the job's alert says. Returns at once.
    pub fn send(&self, job: &Job, notice: Notice) -> Routing {
        let alert = Alert::of(job).unwrap_or_else(|error| {
            tracing::error!(job = %job.name, %error, "alert misconfigured, logging only");
            Alert::Log
        });
        if alert == Alert::Ignore {
            return Routing::Continue;
        }
        tracing::error!(
            job = %notice.job,
            run_id = notice.run.as_ref().map(tracing::field::display),
            shard = notice.shard,
            attempts = notice.attempts,
            error = notice.message,
            "job failed"
        );
        if alert == Alert::Throw {
            return Routing::Throw(Failure::new(notice.message));
        }
        let outbound = self.channels.outbound.as_ref();
        let outbound = outbound.map_or_else(Outbound::any, |choose| choose(job, Outgoing::Alert));
        // The file of a secret is small and local: reading it does not delay the caller.
        let alert = match self.channels.secrets.alert(job, alert) {
            Ok(alert) => alert,
            Err(error) => {
                tracing::error!(job = %job.name, %error, "alert not sent");
                return Routing::Continue;
            }
        };
        if let Some(channel) = self.channel(alert.value, outbound) {
            self.enqueue(HidingChannel::around(channel, alert.hidden), notice);
        }
        Routing::Continue
    }

    fn enqueue(&self, channel: Arc<dyn AlertChannel>, notice: Notice) {
        let problem = match self.queue.try_send((channel, notice)) {
            Ok(()) => return,
            Err(TrySendError::Full((_, notice))) => (notice.job, "the queue is full"),
            Err(TrySendError::Closed((_, notice))) => (notice.job, "the process is shutting down"),
        };
        tracing::error!(job = %problem.0, error = problem.1, "alert not sent");
    }

    fn channel(&self, alert: Alert, outbound: Outbound) -> Option<Arc<dyn AlertChannel>> {
        match alert {
            Alert::Named(name) => Some(self.named(&name)),
            Alert::Email(email) => Some(self.email(*email, outbound)),
            Alert::Wechat(_) | Alert::Dingtalk(_) | Alert::Webhook(_) => {
                Some(self.webhook(alert, outbound))
            }
            _ => None,
        }
    }

    fn named(&self, name: &TypeName) -> Arc<dyn AlertChannel> {
        let known = self.channels.named.iter().find(|(known, _)| name.is(known));
        match known {
            Some((_, channel)) => Arc::clone(channel),
            None => Arc::new(Unavailable(format!("no channel for {name} alerts"))),
        }
    }

    #[cfg(feature = "email")]
    fn email(&self, email: crate::job::Email, outbound: Outbound) -> Arc<dyn AlertChannel> {
        let roots = self.channels.mail_roots.clone();
        Arc::new(super::email::EmailChannel::new(email, roots, outbound))
    }

    #[cfg(not(feature = "email"))]
    #[expect(clippy::unused_self, reason = "the other half uses it")]
    fn email(&self, _: crate::job::Email, _: Outbound) -> Arc<dyn AlertChannel> {
        Arc::new(Unavailable("this program was built without the feature `email`".to_owned()))
    }

    #[cfg(feature = "http")]
    fn webhook(&self, alert: Alert, outbound: Outbound) -> Arc<dyn AlertChannel> {
        let http_client = Arc::clone(&self.channels.http_client);
        Arc::new(super::webhook::WebhookChannel::new(alert, http_client, outbound))
    }

    #[cfg(not(feature = "http"))]
    #[expect(clippy::unused_self, reason = "the other half uses it")]
    fn webhook(&self, _: Alert, _: Outbound) -> Arc<dyn AlertChannel> {
        Arc::new(Unavailable("this program was built without the feature `http`".to_owned()))
    }
}

/// Keeps secrets out of the errors of a channel.
struct HidingChannel {
    channel: Arc<dyn AlertChannel>,
    hidden: Hidden,
}

impl HidingChannel {
    fn around(channel: Arc<dyn AlertChannel>, hidden: Hidden) -> Arc<dyn AlertChannel> {
        if hidden.is_empty() { channel } else { Arc::new(Self { channel, hidden }) }
    }
}

#[async_trait]
impl AlertChannel for HidingChannel {
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
        let delivered = self.channel.deliver(notice).await;
        delivered.map_err(|error| match Refusal::in_chain(&*error) {
            // It is about the host alone, and its hint would be lost.
            Some(_) => error,
            None => self.hidden.hide(with_causes(&*error)).into(),
        })
    }
}

/// Stands in for a channel that this program does not have.
struct Unavailable(String);

#[async_trait]
impl AlertChannel for Unavailable {
    async fn deliver(&self, _: &Notice) -> Result<(), BoxError> {
        Err(self.0.clone().into())
    }
}

/// Delivers queued notices, up to [`MAX_CONCURRENT`] at a time.
async fn deliver_queued(mut queued: mpsc::Receiver<(Arc<dyn AlertChannel>, Notice)>) {
    let mut in_flight = JoinSet::new();
    while let Some((channel, notice)) = queued.recv().await {
        if in_flight.len() == MAX_CONCURRENT {
            in_flight.join_next().await;
        }
        in_flight.spawn(async move {
            let delivery = AssertUnwindSafe(channel.deliver(&notice)).catch_unwind();
            let error = match tokio::time::timeout(DELIVERY_TIMEOUT, delivery).await {
                Ok(Err(payload)) => Failure::panicked(&*payload).to_string(),
                Ok(Ok(Ok(()))) => return tracing::info!(job = %notice.job, "alert sent"),
                Ok(Ok(Err(error))) => match Refusal::in_chain(&*error).map(Refusal::problem) {
                    Some(Problem { message, hint }) => {
                        let hint = hint.as_deref();
                        return tracing::error!(job = %notice.job, error = message, hint, "alert refused");
                    }
                    None => with_causes(&*error),
                },
                Err(_) => format!("not delivered within {DELIVERY_TIMEOUT:?}"),
            };
            tracing::error!(job = %notice.job, error, "alert not sent");
        });
    }
    while in_flight.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jiff::Timestamp;
    use tokio::sync::Notify;

    use super::*;
    use crate::execution::fixture;

    /// Records what it delivers; with `held`, only once notified.
    #[derive(Default)]
    struct RecordingChannel {
        delivered: Mutex<Vec<String>>,
        held: Option<Arc<Notify>>,
    }

    #[async_trait]
    impl AlertChannel for RecordingChannel {
        async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
            if let Some(held) = &self.held {
                held.notified().await;
            }
            self.delivered.lock().unwrap().push(notice.message.clone());
            Err("failed after recording".into())
        }
    }

    fn channels(channel: Arc<RecordingChannel>) -> AlertChannels {
        let channel: Arc<dyn AlertChannel> = channel;
        AlertChannels {
            named: HashMap::from([("PIGEON".to_owned(), channel)]),
            ..AlertChannels::default()
        }
    }

    fn notice(message: &str) -> Notice {
        Notice::of_job("j".parse().unwrap(), &Failure::new(message), Timestamp::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn queued_notices_are_delivered_before_shutdown() {
        let channel = Arc::new(RecordingChannel::default());
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(channels(Arc::clone(&channel)), &mut tasks);

        for message in ["one", "two"] {
            assert_eq!(
                alerts.send(&fixture::job("j").alert("pigeon"), notice(message)),
                Routing::Continue
            );
        }
        drop(alerts);

        assert!(tasks.finish(DELIVERY_TIMEOUT).await);
        let mut delivered = channel.delivered.lock().unwrap().clone();
        delivered.sort();
        assert_eq!(delivered, ["one", "two"]);
    }

    #[tokio::test(start_paused = true)]
    async fn stuck_transport_times_out_and_full_queue_drops_notices() {
        let channel = Arc::new(RecordingChannel {
            held: Some(Arc::default()),
            ..RecordingChannel::default()
        });
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(channels(Arc::clone(&channel)), &mut tasks);

        for _ in 0..10 * QUEUE_CAPACITY {
            assert_eq!(
                alerts.send(&fixture::job("j").alert("PIGEON"), notice("x")),
                Routing::Continue
            );
        }
        drop(alerts);

        let rounds = u32::try_from(QUEUE_CAPACITY / MAX_CONCURRENT).unwrap();
        assert!(tasks.finish(DELIVERY_TIMEOUT * (rounds + 1)).await);
        assert!(channel.delivered.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn only_throw_returns_the_failure() {
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(AlertChannels::default(), &mut tasks);
        let routing = |kind: &str| alerts.send(&fixture::job("j").alert(kind), notice("no table"));

        assert_eq!(routing("THROW"), Routing::Throw(Failure::new("no table")));
        for kind in ["LOG", "IGNORE", "", "WECHAT", "UNHEARD_OF"] {
            assert_eq!(routing(kind), Routing::Continue, "{kind}");
        }
    }
}
