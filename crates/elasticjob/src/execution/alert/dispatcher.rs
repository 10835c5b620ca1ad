//! Chooses the channel of each notice and queues notices for the slow ones.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::{
    sync::Notify,
    task::{self, JoinSet},
};

use super::{notice::Notice, queue::AlertQueue};
#[cfg(feature = "http")]
use crate::execution::HttpClient;
use crate::{
    execution::{
        BoxError, Failure, Listeners, Outbound, OutboundPolicy, Outgoing, Secrets,
        outbound::Refusal, secrets::Hidden,
    },
    job::{Alert, Job, JobName, TypeName},
    problem::{Problem, with_causes},
    runtime::Tasks,
};

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

/// What became of an alert by mail, to a chat robot, to a webhook or to a channel of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertOutcome {
    Sent,
    /// The delivery failed, or its configuration cannot be used.
    Failed,
    /// The target is not allowed.
    Refused,
    /// Too many alerts of the job wait.
    Dropped,
}

impl AlertOutcome {
    pub const ALL: [Self; 4] = [Self::Sent, Self::Failed, Self::Refused, Self::Dropped];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Dropped => "dropped",
        }
    }
}

/// Sends alerts about failures. Clones share one queue, in which each job has a share.
#[derive(Clone)]
pub struct Alerts {
    channels: AlertChannels,
    queue: Arc<Sender>,
}

/// A notice with its channel.
struct QueuedAlert {
    channel: Arc<dyn AlertChannel>,
    notice: Notice,
    listeners: Listeners,
}

/// The queue, shared with the delivery.
struct SharedQueue {
    waiting: Mutex<AlertQueue<QueuedAlert>>,
    is_closed: AtomicBool,
    /// An alert was added, or the queue was closed.
    changed: Notify,
}

/// Closes the queue when the last clone of [`Alerts`] is dropped.
struct Sender(Arc<SharedQueue>);

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.is_closed.store(true, Ordering::Release);
        self.0.changed.notify_one();
    }
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, AlertQueue<QueuedAlert>> {
        // No code panics while it holds this lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alerts {
    /// Starts the delivery task in `tasks`. It ends when all clones are dropped and the queue is empty.
    pub fn start(channels: AlertChannels, tasks: &mut Tasks) -> Self {
        let shared = Arc::new(SharedQueue {
            waiting: Mutex::new(AlertQueue::new()),
            is_closed: AtomicBool::new(false),
            changed: Notify::new(),
        });
        tasks.spawn(deliver_queued(Arc::clone(&shared)));
        Self { channels, queue: Arc::new(Sender(shared)) }
    }

    /// Routes the notice as the job's alert says. Returns at once; the listeners count what becomes of it.
    pub fn send(&self, job: &Job, notice: Notice, listeners: &Listeners) -> Routing {
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
        // Before a secret is read for it.
        if let Err(refusal) = Secrets::check_target(&alert, &outbound) {
            log_refusal(&job.name, &refusal);
            listeners.alerted(&job.name, AlertOutcome::Refused);
            return Routing::Continue;
        }
        // The file of a secret is small and local: reading it does not delay the caller.
        let alert = match self.channels.secrets.alert(job, alert) {
            Ok(alert) => alert,
            Err(error) => {
                tracing::error!(job = %job.name, %error, "alert not sent");
                listeners.alerted(&job.name, AlertOutcome::Failed);
                return Routing::Continue;
            }
        };
        if let Some(channel) = self.channel(alert.value, outbound) {
            let channel = HidingChannel::around(channel, alert.hidden);
            let listeners = listeners.clone();
            self.enqueue(&job.name, QueuedAlert { channel, notice, listeners });
        }
        Routing::Continue
    }

    fn enqueue(&self, job: &JobName, alert: QueuedAlert) {
        let dropped = self.queue.0.lock().push(job, alert);
        self.queue.0.changed.notify_one();
        if let Some((job, alert)) = dropped {
            let hint = "see why its earlier alerts fail or take long";
            tracing::error!(%job, error = "too many alerts of this job wait", hint, "alert dropped");
            alert.listeners.alerted(&job, AlertOutcome::Dropped);
        }
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
            // Its hint would be lost. The host itself may come from a secret.
            Some(refusal) => refusal.hiding(&self.hidden).into(),
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

/// Delivers queued notices, each job in its turn.
async fn deliver_queued(queue: Arc<SharedQueue>) {
    let mut in_flight = JoinSet::new();
    let mut jobs: HashMap<task::Id, JobName> = HashMap::new();
    loop {
        loop {
            // Not in the condition: the lock would be held until the alert is spawned.
            let next = queue.lock().next();
            let Some((job, alert)) = next else { break };
            let spawned = in_flight.spawn(deliver(job.clone(), alert));
            jobs.insert(spawned.id(), job);
        }
        if in_flight.is_empty()
            && queue.is_closed.load(Ordering::Acquire)
            && queue.lock().is_empty()
        {
            return;
        }
        tokio::select! {
            Some(ended) = in_flight.join_next_with_id() => {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                if let Some(job) = jobs.remove(&id) {
                    queue.lock().delivered(&job);
                }
            }
            () = queue.changed.notified() => {}
        }
    }
}

async fn deliver(job: JobName, QueuedAlert { channel, notice, listeners }: QueuedAlert) {
    let delivery = AssertUnwindSafe(channel.deliver(&notice)).catch_unwind();
    let error = match tokio::time::timeout(DELIVERY_TIMEOUT, delivery).await {
        Ok(Ok(Ok(()))) => {
            tracing::info!(%job, "alert sent");
            return listeners.alerted(&job, AlertOutcome::Sent);
        }
        Ok(Ok(Err(error))) => match Refusal::in_chain(&*error) {
            Some(refusal) => {
                log_refusal(&job, refusal);
                return listeners.alerted(&job, AlertOutcome::Refused);
            }
            None => with_causes(&*error),
        },
        Ok(Err(payload)) => Failure::panicked(&*payload).to_string(),
        Err(_) => format!("not delivered within {DELIVERY_TIMEOUT:?}"),
    };
    tracing::error!(%job, error, "alert not sent");
    listeners.alerted(&job, AlertOutcome::Failed);
}

fn log_refusal(job: &JobName, refusal: &Refusal) {
    let Problem { message, hint } = refusal.problem();
    tracing::error!(%job, error = message, hint = hint.as_deref(), "alert refused");
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::execution::{Listener, fixture};

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
                alerts.send(
                    &fixture::job("j").alert("pigeon"),
                    notice(message),
                    &Listeners::default()
                ),
                Routing::Continue
            );
        }
        drop(alerts);

        assert!(tasks.finish(DELIVERY_TIMEOUT).await);
        let mut delivered = channel.delivered.lock().unwrap().clone();
        delivered.sort();
        assert_eq!(delivered, ["one", "two"]);
    }

    /// Counts alerts by job and outcome.
    #[derive(Default)]
    struct CountingListener(Mutex<HashMap<(String, &'static str), usize>>);

    impl CountingListener {
        fn count(&self, job: &str, outcome: AlertOutcome) -> usize {
            let counts = self.0.lock().unwrap();
            counts.get(&(job.to_owned(), outcome.as_str())).copied().unwrap_or_default()
        }
    }

    impl Listener for CountingListener {
        fn alerted(&self, job: &JobName, outcome: AlertOutcome) {
            *self.0.lock().unwrap().entry((job.to_string(), outcome.as_str())).or_default() += 1;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stuck_alerts_of_one_job_do_not_keep_back_those_of_another() {
        const SENT: usize = 10_000;
        let stuck = Arc::new(RecordingChannel {
            held: Some(Arc::default()),
            ..RecordingChannel::default()
        });
        let working = Arc::new(RecordingChannel::default());
        let mut channels = channels(Arc::clone(&stuck));
        channels.named.insert("DOVE".to_owned(), Arc::clone(&working) as Arc<dyn AlertChannel>);
        let counts = Arc::new(CountingListener::default());
        let listeners = Listeners::new([Arc::clone(&counts) as Arc<dyn Listener>]);
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(channels, &mut tasks);
        let hostile = fixture::job("hostile").alert("PIGEON");
        for _ in 0..SENT {
            assert_eq!(alerts.send(&hostile, notice("x"), &listeners), Routing::Continue);
        }
        // The hanging deliveries are under way.
        tokio::time::advance(Duration::from_secs(1)).await;

        let _ = alerts.send(&fixture::job("bystander").alert("DOVE"), notice("mine"), &listeners);

        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(*working.delivered.lock().unwrap(), ["mine"]);
        drop(alerts);
        assert!(tasks.finish(DELIVERY_TIMEOUT * 100).await, "stuck deliveries time out");
        assert!(stuck.delivered.lock().unwrap().is_empty());
        let failed = counts.count("hostile", AlertOutcome::Failed);
        assert!(failed > 0 && failed < 100, "{failed}");
        assert_eq!(counts.count("hostile", AlertOutcome::Dropped), SENT - failed);
        assert_eq!(counts.count("bystander", AlertOutcome::Dropped), 0);
    }

    #[tokio::test]
    async fn only_throw_returns_the_failure() {
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(AlertChannels::default(), &mut tasks);
        let routing = |kind: &str| {
            let job = fixture::job("j").alert(kind);
            alerts.send(&job, notice("no table"), &Listeners::default())
        };

        assert_eq!(routing("THROW"), Routing::Throw(Failure::new("no table")));
        for kind in ["LOG", "IGNORE", "", "WECHAT", "UNHEARD_OF"] {
            assert_eq!(routing(kind), Routing::Continue, "{kind}");
        }
    }
}
