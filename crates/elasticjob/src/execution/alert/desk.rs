//! Who carries which notice, and the queue in front of those who take long.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinSet,
};

use super::notice::Notice;
#[cfg(feature = "http")]
use crate::execution::Web;
use crate::{
    execution::{BoxError, Failure, failure::with_causes},
    job::{Alert, Job, TypeName},
    runtime::Tasks,
};

/// How many notices may wait.
const QUEUE: usize = 256;

/// How many are under way at once.
const AT_ONCE: usize = 4;

/// How long one may take, whatever its own timeouts say.
const PATIENCE: Duration = Duration::from_secs(30);

/// Carries a notice to somebody.
#[async_trait]
pub trait Messenger: Send + Sync + 'static {
    /// Delivers it. It is dropped if it takes longer than thirty seconds.
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError>;
}

/// The ways notices can go.
#[derive(Clone, Default)]
pub struct Ways {
    /// Out to the web.
    #[cfg(feature = "http")]
    pub web: Arc<Web>,
    /// Certificates (PEM) of mail servers that are trusted besides what the system trusts.
    pub mail_roots: Vec<u8>,
    /// Those the program brings along, by the name a job asks for them by.
    pub named: HashMap<String, Arc<dyn Messenger>>,
}

/// What a failure means for whatever it happened in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It was told; go on.
    GoOn,
    /// The job wants it to come out where the run was started (`THROW`).
    Throw(Failure),
}

/// Tells people about failures. Clones share one queue.
#[derive(Clone)]
pub struct Alerts {
    ways: Ways,
    queue: mpsc::Sender<(Arc<dyn Messenger>, Notice)>,
}

impl Alerts {
    /// Starts to carry notices, among `tasks`. It ends when all clones are dropped and the queue is empty.
    pub fn start(ways: Ways, tasks: &mut Tasks) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tasks.spawn(carry(waiting));
        Self { ways, queue }
    }

    /// Tells whoever the job says. Returns at once.
    pub fn tell(&self, job: &Job, notice: Notice) -> Verdict {
        let alert = Alert::of(job).unwrap_or_else(|error| {
            tracing::error!(job = %job.name, %error, "alert is not set up; only the log is told");
            Alert::Log
        });
        if alert == Alert::Ignore {
            return Verdict::GoOn;
        }
        tracing::error!(
            job = %notice.job,
            run = notice.run.as_ref().map(tracing::field::display),
            shard = notice.shard,
            attempts = notice.attempts,
            error = notice.message,
            "job failed"
        );
        if alert == Alert::Throw {
            return Verdict::Throw(Failure::new(notice.message));
        }
        if let Some(messenger) = self.messenger(alert) {
            self.enqueue(messenger, notice);
        }
        Verdict::GoOn
    }

    fn enqueue(&self, messenger: Arc<dyn Messenger>, notice: Notice) {
        let problem = match self.queue.try_send((messenger, notice)) {
            Ok(()) => return,
            Err(TrySendError::Full((_, notice))) => (notice.job, "too many are waiting"),
            Err(TrySendError::Closed((_, notice))) => (notice.job, "the process is shutting down"),
        };
        tracing::error!(job = %problem.0, error = problem.1, "alert could not be sent");
    }

    fn messenger(&self, alert: Alert) -> Option<Arc<dyn Messenger>> {
        match alert {
            Alert::Named(name) => Some(self.named(&name)),
            Alert::Email(email) => Some(self.email(*email)),
            Alert::Wechat(_) | Alert::Dingtalk(_) | Alert::Webhook(_) => Some(self.web(alert)),
            _ => None,
        }
    }

    fn named(&self, name: &TypeName) -> Arc<dyn Messenger> {
        let known = self.ways.named.iter().find(|(known, _)| name.is(known));
        match known {
            Some((_, messenger)) => Arc::clone(messenger),
            None => Arc::new(Missing(format!("nobody here carries {name} alerts"))),
        }
    }

    #[cfg(feature = "email")]
    fn email(&self, email: crate::job::Email) -> Arc<dyn Messenger> {
        Arc::new(super::email::Mail::new(email, self.ways.mail_roots.clone()))
    }

    #[cfg(not(feature = "email"))]
    #[expect(clippy::unused_self, reason = "the other half uses it")]
    fn email(&self, _: crate::job::Email) -> Arc<dyn Messenger> {
        Arc::new(Missing("this program was built without the feature `email`".to_owned()))
    }

    #[cfg(feature = "http")]
    fn web(&self, alert: Alert) -> Arc<dyn Messenger> {
        Arc::new(super::robot::Robot::new(alert, Arc::clone(&self.ways.web)))
    }

    #[cfg(not(feature = "http"))]
    #[expect(clippy::unused_self, reason = "the other half uses it")]
    fn web(&self, _: Alert) -> Arc<dyn Messenger> {
        Arc::new(Missing("this program was built without the feature `http`".to_owned()))
    }
}

/// Nobody who could carry it.
struct Missing(String);

#[async_trait]
impl Messenger for Missing {
    async fn deliver(&self, _: &Notice) -> Result<(), BoxError> {
        Err(self.0.clone().into())
    }
}

/// Carries what waits, a few at once.
async fn carry(mut waiting: mpsc::Receiver<(Arc<dyn Messenger>, Notice)>) {
    let mut under_way = JoinSet::new();
    while let Some((messenger, notice)) = waiting.recv().await {
        if under_way.len() == AT_ONCE {
            under_way.join_next().await;
        }
        under_way.spawn(async move {
            let delivery = AssertUnwindSafe(messenger.deliver(&notice)).catch_unwind();
            let error = match tokio::time::timeout(PATIENCE, delivery).await {
                Ok(Err(payload)) => Failure::panicked(&*payload).to_string(),
                Ok(Ok(Ok(()))) => return tracing::info!(job = %notice.job, "alert sent"),
                Ok(Ok(Err(error))) => with_causes(&*error),
                Err(_) => format!("not delivered within {PATIENCE:?}"),
            };
            tracing::error!(job = %notice.job, error, "alert could not be sent");
        });
    }
    while under_way.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jiff::Timestamp;
    use tokio::sync::Notify;

    use super::*;
    use crate::execution::fixture;

    /// Notes what it delivers, once it is let go.
    #[derive(Default)]
    struct Noting {
        delivered: Mutex<Vec<String>>,
        held: Option<Arc<Notify>>,
    }

    #[async_trait]
    impl Messenger for Noting {
        async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
            if let Some(held) = &self.held {
                held.notified().await;
            }
            self.delivered.lock().unwrap().push(notice.message.clone());
            Err("it went through all the same".into())
        }
    }

    fn ways(messenger: Arc<Noting>) -> Ways {
        let messenger: Arc<dyn Messenger> = messenger;
        Ways { named: HashMap::from([("PIGEON".to_owned(), messenger)]), ..Ways::default() }
    }

    fn notice(message: &str) -> Notice {
        Notice::of_job("j".parse().unwrap(), &Failure::new(message), Timestamp::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn what_was_told_is_delivered_before_the_end() {
        let messenger = Arc::new(Noting::default());
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(ways(Arc::clone(&messenger)), &mut tasks);

        for message in ["one", "two"] {
            assert_eq!(
                alerts.tell(&fixture::job("j").alert("pigeon"), notice(message)),
                Verdict::GoOn
            );
        }
        drop(alerts);

        assert!(tasks.finish(PATIENCE).await);
        let mut delivered = messenger.delivered.lock().unwrap().clone();
        delivered.sort();
        assert_eq!(delivered, ["one", "two"]);
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_who_never_answers_holds_up_nobody_for_long_and_a_full_queue_drops() {
        let messenger = Arc::new(Noting { held: Some(Arc::default()), ..Noting::default() });
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(ways(Arc::clone(&messenger)), &mut tasks);

        for _ in 0..10 * QUEUE {
            assert_eq!(alerts.tell(&fixture::job("j").alert("PIGEON"), notice("x")), Verdict::GoOn);
        }
        drop(alerts);

        let rounds = u32::try_from(QUEUE / AT_ONCE).unwrap();
        assert!(tasks.finish(PATIENCE * (rounds + 1)).await);
        assert!(messenger.delivered.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn throw_comes_out_and_the_others_do_not() {
        let mut tasks = Tasks::new();
        let alerts = Alerts::start(Ways::default(), &mut tasks);
        let verdict = |kind: &str| alerts.tell(&fixture::job("j").alert(kind), notice("no table"));

        assert_eq!(verdict("THROW"), Verdict::Throw(Failure::new("no table")));
        for kind in ["LOG", "IGNORE", "", "WECHAT", "UNHEARD_OF"] {
            assert_eq!(verdict(kind), Verdict::GoOn, "{kind}");
        }
    }
}
