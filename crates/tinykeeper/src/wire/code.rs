//! The protocol's result codes.

use std::fmt;

/// A server's result code: zero for success, otherwise the reason for the refusal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Code {
            $($(#[doc = $doc])* pub const $name: Code = Code($value);)*

            /// A readable name, if the code is known.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    OK = 0, "ok";
    SYSTEM_ERROR = -1, "system error";
    RUNTIME_INCONSISTENCY = -2, "runtime inconsistency";
    DATA_INCONSISTENCY = -3, "data inconsistency";
    CONNECTION_LOSS = -4, "connection loss";
    MARSHALLING_ERROR = -5, "marshalling error";
    UNIMPLEMENTED = -6, "unimplemented";
    OPERATION_TIMEOUT = -7, "operation timeout";
    BAD_ARGUMENTS = -8, "bad arguments";
    API_ERROR = -100, "api error";
    NO_NODE = -101, "no node";
    NO_AUTH = -102, "not authorised";
    BAD_VERSION = -103, "bad version";
    NO_CHILDREN_FOR_EPHEMERALS = -108, "ephemerals have no children";
    NODE_EXISTS = -110, "node exists";
    NOT_EMPTY = -111, "not empty";
    SESSION_EXPIRED = -112, "session expired";
    INVALID_CALLBACK = -113, "invalid callback";
    INVALID_ACL = -114, "invalid acl";
    AUTH_FAILED = -115, "authentication failed";
    SESSION_MOVED = -118, "session moved";
    NOT_READ_ONLY = -119, "not a read-only call";
    EPHEMERAL_ON_LOCAL_SESSION = -120, "ephemeral on a local session";
    NO_WATCHER = -121, "no watcher";
    REQUEST_TIMEOUT = -122, "request timeout";
    RECONFIG_DISABLED = -123, "reconfig disabled";
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124, "sasl authentication required";
    QUOTA_EXCEEDED = -125, "quota exceeded";
    THROTTLED = -127, "throttled";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}, {self})", self.0)
    }
}
