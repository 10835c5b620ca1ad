//! Deliberate flaws in the protocol, which the simulation has to find.
//!
//! A test that never failed proves little. With the feature `testing`, one precaution of the protocol can be disabled, and the simulation must
//! then report a violation. Without the feature, no precaution can be disabled.

/// A precaution to disable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "testing"),
    allow(dead_code, reason = "constructed only with the feature `testing`")
)]
pub enum Flaw {
    /// Shards run without a claim.
    SkipClaim,
    /// A shard that was reassigned while it was being claimed runs nevertheless.
    KeepReassigned,
    /// Running shards continue after the lease has ended.
    IgnoreLease,
    /// The shards of an absent instance are marked lost without a check whether the instance is dead and whether they were running.
    MarkLostUnchecked,
    /// An absent Java instance counts as dead at once, without a grace period.
    NoGracePeriod,
    /// Leftovers are not cleaned up.
    NoJanitor,
    /// Shards are claimed without a check in the ledger whether the fire was already started.
    IgnoreLedger,
    /// An instance that sees a failover flag late takes the shard over again.
    TakeOverTwice,
    /// Fires that were due during an outage are forgotten.
    ForgetMissedFires,
    /// A member does not notice that its claim was taken away.
    IgnoreClaimLoss,
    /// A page of a clock that was ahead covers every fire until the one that it names.
    TrustEveryPage,
    /// A shard that has ended is held until the whole run has ended.
    ReleaseTogether,
    /// The node of a server that is gone or empty is not repaired.
    NoServerRepair,
    /// A job is left only when its runs have ended, and with one try.
    LeaveLate,
    /// Fires that were due while the job or the shard was disabled are caught up.
    IgnoreFloor,
    /// Fires that the run of a later fire answers are not recorded.
    HideCoalescedFires,
    /// Triggers are looked up only when a doorbell rings.
    ForgetTriggers,
    /// A shard is claimed for a trigger without an entry.
    OmitEntries,
    /// A claim that is withdrawn leaves the entry of its shard.
    KeepEntries,
    /// A run that was cancelled is not cancelled when it is claimed again or taken over.
    ForgetCancellations,
    /// A trigger counts as ended when its first shard has ended.
    EndTriggersEarly,
    /// It is not noted that a trigger has ended.
    NeverEndTriggers,
}

/// The precaution that is disabled, if any; always none outside the simulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flaws(#[cfg(feature = "testing")] Option<Flaw>);

impl Flaws {
    #[cfg(feature = "testing")]
    pub fn only(flaw: Flaw) -> Self {
        Self(Some(flaw))
    }

    #[cfg(feature = "testing")]
    pub fn has(self, flaw: Flaw) -> bool {
        self.0 == Some(flaw)
    }

    #[cfg(not(feature = "testing"))]
    #[allow(clippy::unused_self, reason = "the other half uses it")]
    pub fn has(self, _: Flaw) -> bool {
        false
    }
}
