//! A hash that stays the same across processes and versions, for ids that are derived from what they identify.

/// FNV-1a, 128 bits. It need not resist deliberate collisions: no adversary chooses these texts.
pub(super) fn stable_hash(text: &str) -> u128 {
    text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_of_a_text_never_changes() {
        assert_eq!(stable_hash(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(stable_hash("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
