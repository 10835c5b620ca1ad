//! A job's tree as text, to be sent to somebody: the ancestor's format.

use std::{collections::HashMap, fmt::Write, net::Ipv4Addr};

use super::{door::Admin, error::AdminError, picture::Picture};
use crate::{
    job::JobName,
    registry::{Node, Path},
};

impl Admin {
    /// A job's tree as the ancestor dumps it: a line `path | value` for every node below the job, depth first, children in descending order. IPv4
    /// addresses are `ip1`, `ip2`, … in the order in which they appear. Nothing else is masked.
    pub async fn dump(&self, job: &JobName) -> Result<String, AdminError> {
        let picture = self.picture(job).await?;
        if picture.nodes.is_empty() {
            return Err(self.no_such_job(job, false));
        }
        Ok(masked(&lines(&picture, self.registry.namespace().path())))
    }
}

fn lines(picture: &Picture, namespace: &Path) -> String {
    let mut children: HashMap<Path, Vec<(&Path, &Node)>> = HashMap::new();
    for (path, node) in picture.nodes.iter().rev() {
        if let Some(parent) = path.parent() {
            children.entry(parent).or_default().push((path, node));
        }
    }
    for siblings in children.values_mut() {
        siblings.sort_by(|one, other| other.0.name().cmp(one.0.name()));
    }
    let mut text = String::new();
    // Those that wait, the next one last.
    let mut stack: Vec<(&Path, &Node)> =
        children.get(picture.tree.root()).into_iter().flatten().rev().copied().collect();
    while let Some((path, node)) = stack.pop() {
        let relative = path.below(namespace).unwrap_or_default();
        let value = String::from_utf8_lossy(&node.data);
        let _ = writeln!(text, "/{relative} | {value}");
        stack.extend(children.get(path).into_iter().flatten().rev());
    }
    text
}

/// Addresses are found whole: digits and dots that belong together and are an address, so that `10.0.0.1` is never part of `10.0.0.12`.
fn masked(text: &str) -> String {
    let mut names: HashMap<Ipv4Addr, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let end = from
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(from.len());
        let run = from[..end].trim_end_matches('.');
        out.push_str(before);
        match run.parse::<Ipv4Addr>() {
            Ok(address) => {
                let next = names.len() + 1;
                let number = names.entry(address).or_insert(next);
                let _ = write!(out, "ip{number}");
            }
            Err(_) => out.push_str(run),
        }
        rest = &from[run.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_masked_whole_or_not_at_all() {
        let text = "10.0.0.1@-@1 10.0.0.12, 10.0.0.1. 1.2.3.4.5 300.1.1.1 v3.0.5 (10.0.0.12)";

        assert_eq!(masked(text), "ip1@-@1 ip2, ip1. 1.2.3.4.5 300.1.1.1 v3.0.5 (ip2)");
        assert_eq!(masked("no address"), "no address");
    }
}
