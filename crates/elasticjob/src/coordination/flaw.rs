//! Deliberate faults, so that the simulation can be shown to find them.
//!
//! A proof that never failed proves little. With the feature `testing` a member can be told to leave out one of the precautions this
//! protocol consists of; the simulation has to notice. Without the feature there is nothing to tell, and nothing is left out.

/// A precaution left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "nobody can ask for one"))]
pub enum Flaw {
    /// Shards are run without having been claimed.
    SkipClaim,
    /// What moved while a claim was on its way is run all the same.
    KeepWhatMoved,
    /// What runs goes on when the lease has ended.
    IgnoreLease,
    /// What somebody held is buried without looking whether they are dead, and whether anything was lost.
    BuryUnseen,
    /// A Java instance that is absent for a moment is taken for dead.
    NoGrace,
    /// Nobody looks after what was left behind.
    NoJanitor,
    /// The ledger is not asked whether a fire was started.
    ForgetLedger,
    /// A taken shard is taken again by whoever sees its flag late.
    TakeTwice,
    /// What was due in an outage is forgotten.
    ForgetMissed,
    /// The own claim is not watched.
    TrustClaim,
}

/// Which precaution is left out: none, but for the simulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flaws(#[cfg(feature = "testing")] Option<Flaw>);

impl Flaws {
    /// Leaves this out.
    #[cfg(feature = "testing")]
    pub fn only(flaw: Flaw) -> Self {
        Self(Some(flaw))
    }

    /// Whether this is left out.
    #[cfg(feature = "testing")]
    pub fn has(self, flaw: Flaw) -> bool {
        self.0 == Some(flaw)
    }

    /// Whether this is left out.
    #[cfg(not(feature = "testing"))]
    pub fn has(self, _: Flaw) -> bool {
        false
    }
}
