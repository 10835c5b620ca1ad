//! A job with its handler and listeners, as a program gives it to a node.

use std::sync::Arc;

use super::{declaration::SourceLocation, permission_check::PermissionCheck};
use crate::{
    coordination::member::JobSource,
    execution::{Failure, IntoWork, Listener, OnceListener, ScriptWork, Work},
    job::{Handler, Job},
};

/// A job with its handler and listeners, as a program gives it to a node.
///
/// ```
/// use elasticjob::{job::{Job, Shard}, node::{Node, NodeJob}};
///
/// async fn settle(shard: Shard) -> Result<(), std::io::Error> {
///     Ok(())
/// }
///
/// let job = Job::named("settle-orders")?.cron("0/5 * * * * ?")?.shards(2);
/// // Java instances share this job: they identify it by its class.
/// let shared = NodeJob::code(job, settle).java_class("com.acme.SettleOrders");
/// let node = Node::join("zookeeper://127.0.0.1:2181/shop").with(shared);
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
pub struct NodeJob {
    pub(super) job: Job,
    pub(super) handler: Handler,
    pub(super) author: JobSource,
    pub(super) work: Arc<dyn Work>,
    pub(super) listeners: Vec<Arc<dyn Listener>>,
    pub(super) once: Vec<Arc<dyn OnceListener>>,
    pub(super) permission: Option<PermissionCheck>,
    /// Where it is declared, for a job with the attribute.
    pub(super) place: Option<SourceLocation>,
}

impl NodeJob {
    /// A job that Rust code runs: an async function, a [`SimpleJob`](crate::execution::SimpleJob), a
    /// [`DataflowJob`](crate::execution::DataflowJob), or blocking code.
    pub fn code<Kind>(job: Job, handler: impl IntoWork<Kind>) -> Self {
        Self::new(job, Handler::Code { java_class: None }, handler.into_work())
    }

    /// A job that runs the command line in `script.command.line`, like Java ElasticJob's SCRIPT jobs.
    pub fn script(job: Job) -> Self {
        Self::new(job, Handler::Script, ScriptWork::default().into_work())
    }

    /// A job that sends a request to `http.uri`, like Java ElasticJob's HTTP jobs.
    #[cfg(feature = "http")]
    pub fn http(job: Job) -> Self {
        Self::new(job, Handler::Http, crate::execution::HttpWork::new(Arc::default()).into_work())
    }

    fn new(job: Job, handler: Handler, work: Arc<dyn Work>) -> Self {
        let (listeners, once) = (Vec::new(), Vec::new());
        let author = JobSource::Program;
        Self { job, handler, author, work, listeners, once, permission: None, place: None }
    }

    /// Takes the job's configuration from the registry: the node does not store the job, overwrites nothing, and does not create the job again
    /// after it was removed. For programs that run jobs which others defined.
    ///
    /// ```
    /// use elasticjob::{job::Job, node::NodeJob};
    ///
    /// # let stored = Job::named("backup")?.prop("script.command.line", "/opt/jobs/backup.sh")?;
    /// let backup = NodeJob::script(stored).from_registry();
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn from_registry(mut self) -> Self {
        self.author = JobSource::Registry;
        self
    }

    /// Sets the class that Java instances run this job with; without it, a job of the same name that Java
    /// stored counts as a conflict. Ignored for script and HTTP jobs, which have no class.
    #[must_use]
    pub fn java_class(mut self, class: impl Into<String>) -> Self {
        if let Handler::Code { java_class } = &mut self.handler {
            *java_class = Some(class.into());
        }
        self
    }

    #[cfg(feature = "macros")]
    pub(super) fn declared_at(mut self, place: SourceLocation) -> Self {
        self.place = Some(place);
        self
    }

    /// Calls `check` before every run with the current configuration. If it returns an error, every shard of the run fails with that error. For
    /// script and HTTP jobs: anyone with write access to the registry can change their command, and should not thereby get a shell on this
    /// machine.
    ///
    /// ```
    /// use elasticjob::{execution::{Failure, Script}, job::Job, node::NodeJob};
    ///
    /// let job = Job::named("backup")?.prop("script.command.line", "/opt/jobs/backup.sh")?;
    /// let backup = NodeJob::script(job).only_if(|job| {
    ///     if Script::of(job)?.program().starts_with("/opt/jobs") { Ok(()) } else { Err(Failure::new("not one of ours")) }
    /// });
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn only_if(
        mut self,
        check: impl Fn(&Job) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.permission = Some(PermissionCheck::new(check));
        self
    }

    /// Calls this listener before and after every execution on this instance.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Calls this listener once per fire, on one of the instances. Every instance needs the listener, because the instances wait for each other.
    #[must_use]
    pub fn once_listener(mut self, listener: Arc<dyn OnceListener>) -> Self {
        self.once.push(listener);
        self
    }

    pub fn job(&self) -> &Job {
        &self.job
    }
}

impl std::fmt::Debug for NodeJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {:?}", self.job.name, self.handler)
    }
}
