//! What a program can bring of its own, by name: sharding strategies, alert channels and executors.
//!
//! A job names them as it names the built-in ones: `jobShardingStrategyType` or `elasticjob.strategy`, `jobErrorHandlerType`, and
//! `jobExecutorThreadPoolSizeProviderType`. Every instance that runs the job should have them; one that does not uses the default and logs it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use elasticjob::{
//!     Node,
//!     execution::BoxError,
//!     extension::{AlertChannel, Notice},
//! };
//!
//! struct Pager;
//!
//! #[async_trait]
//! impl AlertChannel for Pager {
//!     async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
//!         println!("{}", notice.text());
//!         Ok(())
//!     }
//! }
//!
//! let node = Node::join("zookeeper://127.0.0.1:2181/shop").alert_channel("PAGER", Arc::new(Pager));
//! # let _ = node;
//! ```

pub use crate::{
    coordination::sharding::{Candidate, ShardingInput, ShardingStrategy},
    execution::{
        alert::{AlertChannel, Notice},
        executor::{Executor, RuntimeExecutor},
    },
};
