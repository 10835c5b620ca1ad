//! Registry conformance of the memory adapter, alone and through the combiner.

use std::sync::Arc;

use elasticjob::{
    registry::memory::MemoryServer,
    registry_conformance,
    runtime::SystemClock,
    testing::conformance::{CombinedTestServer, MemoryTestServer},
};

fn memory_server() -> MemoryTestServer {
    MemoryTestServer::new(MemoryServer::new(Arc::new(SystemClock)))
}

registry_conformance!(memory, memory_server());
registry_conformance!(memory_combined, CombinedTestServer::new(memory_server()));
