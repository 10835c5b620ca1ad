//! A job as this node runs it.

use std::sync::Arc;

use super::{declared::Place, permit::Permit};
use crate::{
    coordination::member::Author,
    execution::{Failure, IntoWork, Listener, OnceListener, ScriptWork, Work},
    job::{Handler, Job},
};

/// A job as this node runs it: its configuration, what runs it, and who listens.
///
/// ```
/// use elasticjob::{job::{Job, Shard}, node::{Node, NodeJob}};
///
/// async fn settle(shard: Shard) -> Result<(), std::io::Error> {
///     Ok(())
/// }
///
/// let job = Job::named("settle-orders")?.cron("0/5 * * * * ?")?.shards(2);
/// // Java instances share this job: they go by the class.
/// let shared = NodeJob::code(job, settle).java_class("com.acme.SettleOrders");
/// let node = Node::join("zookeeper://127.0.0.1:2181/shop").with(shared);
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
pub struct NodeJob {
    pub(super) job: Job,
    pub(super) handler: Handler,
    pub(super) author: Author,
    pub(super) work: Arc<dyn Work>,
    pub(super) listeners: Vec<Arc<dyn Listener>>,
    pub(super) once: Vec<Arc<dyn OnceListener>>,
    pub(super) permit: Option<Permit>,
    /// Where it is declared, if it is.
    pub(super) place: Option<Place>,
}

impl NodeJob {
    /// Run by Rust code: an async function, a [`SimpleJob`](crate::execution::SimpleJob), a
    /// [`DataflowJob`](crate::execution::DataflowJob), or blocking code.
    pub fn code<Kind>(job: Job, handler: impl IntoWork<Kind>) -> Self {
        Self::new(job, Handler::Code { java_class: None }, handler.into_work())
    }

    /// Run by the command line in the job's `script.command.line`, as the ancestor's SCRIPT jobs are.
    pub fn script(job: Job) -> Self {
        Self::new(job, Handler::Script, ScriptWork::default().into_work())
    }

    /// Run by asking the job's `http.uri`, as the ancestor's HTTP jobs are.
    #[cfg(feature = "http")]
    pub fn http(job: Job) -> Self {
        Self::new(job, Handler::Http, crate::execution::HttpWork::new(Arc::default()).into_work())
    }

    fn new(job: Job, handler: Handler, work: Arc<dyn Work>) -> Self {
        let (listeners, once) = (Vec::new(), Vec::new());
        let author = Author::Program;
        Self { job, handler, author, work, listeners, once, permit: None, place: None }
    }

    /// Is what the registry says it is, and only while it says so: this job is not stored, overwrites nothing, and is not brought back once
    /// somebody has removed it. For those who run jobs that others defined.
    ///
    /// ```
    /// use elasticjob::{job::Job, node::NodeJob};
    ///
    /// # let stored = Job::named("backup")?.prop("script.command.line", "/opt/jobs/backup.sh")?;
    /// let backup = NodeJob::script(stored).from_registry();
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    #[must_use]
    pub fn from_registry(mut self) -> Self {
        self.author = Author::Registry;
        self
    }

    /// The class Java instances run this job with: without it they and we take each other for strangers. Scripts and HTTP jobs
    /// have none.
    #[must_use]
    pub fn java_class(mut self, class: impl Into<String>) -> Self {
        if let Handler::Code { java_class } = &mut self.handler {
            *java_class = Some(class.into());
        }
        self
    }

    #[cfg(feature = "macros")]
    pub(super) fn declared_at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Asks before every run, with the configuration as it is then. What is refused fails every shard of the run, in these words. For scripts
    /// and requests: whoever can write to the registry can change them, and not everybody who can should have a shell here.
    ///
    /// ```
    /// use elasticjob::{execution::{Failure, Script}, job::Job, node::NodeJob};
    ///
    /// let job = Job::named("backup")?.prop("script.command.line", "/opt/jobs/backup.sh")?;
    /// let backup = NodeJob::script(job).only_if(|job| {
    ///     if Script::of(job)?.program().starts_with("/opt/jobs") { Ok(()) } else { Err(Failure::new("not one of ours")) }
    /// });
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    #[must_use]
    pub fn only_if(
        mut self,
        may: impl Fn(&Job) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.permit = Some(Permit::new(may));
        self
    }

    /// Tells this listener before and after every execution.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Tells this listener once for every fire, on one of the instances. All of them have to have it: they wait for each other.
    #[must_use]
    pub fn once(mut self, listener: Arc<dyn OnceListener>) -> Self {
        self.once.push(listener);
        self
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }
}

impl std::fmt::Debug for NodeJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {:?}", self.job.name, self.handler)
    }
}
