//! Dumps a job's tree as text, in the format of Java ElasticJob, for support requests.

use std::{collections::HashMap, fmt::Write, net::Ipv4Addr};

use super::{error::AdminError, handle::Admin, snapshot::JobSnapshot};
use crate::{
    job::JobName,
    registry::{Node, Path},
};

impl Admin {
    /// A job's tree as Java ElasticJob dumps it: a line `path | value` for every node below the job, depth first, children in descending order. IPv4
    /// addresses are replaced by `ip1`, `ip2`, … in the order in which they appear. Nothing else is masked.
    pub async fn dump(&self, job: &JobName) -> Result<String, AdminError> {
        let snapshot = self.snapshot(job).await?;
        if snapshot.nodes.is_empty() {
            return Err(self.no_such_job(job, false));
        }
        Ok(mask_addresses(&format_nodes(&snapshot, self.registry.namespace().path())))
    }
}

fn format_nodes(snapshot: &JobSnapshot, namespace: &Path) -> String {
    let mut children: HashMap<Path, Vec<(&Path, &Node)>> = HashMap::new();
    for (path, node) in snapshot.nodes.iter().rev() {
        if let Some(parent) = path.parent() {
            children.entry(parent).or_default().push((path, node));
        }
    }
    for siblings in children.values_mut() {
        siblings.sort_by(|one, other| other.0.name().cmp(one.0.name()));
    }
    let mut text = String::new();
    // Nodes still to be written, the next one last.
    let mut stack: Vec<(&Path, &Node)> =
        children.get(snapshot.tree.root()).into_iter().flatten().rev().copied().collect();
    while let Some((path, node)) = stack.pop() {
        let relative = path.relative_to(namespace).unwrap_or_default();
        let value = String::from_utf8_lossy(&node.data);
        let _ = writeln!(text, "/{relative} | {value}");
        stack.extend(children.get(path).into_iter().flatten().rev());
    }
    text
}

/// Replaces IPv4 addresses. Only a whole sequence of digits and dots counts as an address, so `10.0.0.1` is never found inside `10.0.0.12`.
fn mask_addresses(text: &str) -> String {
    let mut names: HashMap<Ipv4Addr, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let end = from
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(from.len());
        let candidate = from[..end].trim_end_matches('.');
        out.push_str(before);
        match candidate.parse::<Ipv4Addr>() {
            Ok(address) => {
                let next = names.len() + 1;
                let number = names.entry(address).or_insert(next);
                let _ = write!(out, "ip{number}");
            }
            Err(_) => out.push_str(candidate),
        }
        rest = &from[candidate.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_masked_only_as_a_whole() {
        let text = "10.0.0.1@-@1 10.0.0.12, 10.0.0.1. 1.2.3.4.5 300.1.1.1 v3.0.5 (10.0.0.12)";

        assert_eq!(mask_addresses(text), "ip1@-@1 ip2, ip1. 1.2.3.4.5 300.1.1.1 v3.0.5 (ip2)");
        assert_eq!(mask_addresses("no address"), "no address");
    }
}
