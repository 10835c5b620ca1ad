//! Registry conformance of the memory adapter.

use std::sync::Arc;

use elasticjob::{
    registry::memory::MemoryServer, registry_conformance, runtime::SystemClock,
    testing::conformance::MemoryGround,
};

registry_conformance!(memory, MemoryGround::new(MemoryServer::new(Arc::new(SystemClock))));
