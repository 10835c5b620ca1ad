//! Registry conformance of the memory adapter.

use std::sync::Arc;

use elasticjob::{
    registry::memory::MemoryServer, registry_conformance, runtime::SystemClock,
    testing::conformance::MemoryTestServer,
};

registry_conformance!(memory, MemoryTestServer::new(MemoryServer::new(Arc::new(SystemClock))));
