//! What the console stores: registries and history stores that were added, accounts, familiar networks, and the audit.

use std::{path::Path, sync::Arc};

use elasticjob::runtime::Clock;

use super::{console::Console, folder_lock::FolderLock};
use crate::{
    audit::trail::AuditTrail,
    auth::{accounts::Accounts, familiar::FamiliarNetworks},
    error::ConsoleError,
    files,
    history::stores::HistoryConnections,
    registries::connections::Registries,
};

#[derive(Debug)]
pub(super) struct Stores {
    pub(super) registries: Registries,
    pub(super) histories: HistoryConnections,
    pub(super) accounts: Accounts,
    pub(super) familiar: FamiliarNetworks,
    pub(super) audit: AuditTrail,
    pub(super) folder_lock: Option<FolderLock>,
}

impl Stores {
    /// Reads the files of the data folder; without one, everything is kept in memory.
    pub(super) fn open(console: &Console, clock: &Arc<dyn Clock>) -> Result<Self, ConsoleError> {
        let folder_lock = console.data_dir.as_deref().map(FolderLock::acquire).transpose()?;
        let file = |name: &str| console.data_dir.as_ref().map(|folder| folder.join(name));
        let registries = Registries::open(
            &console.registries,
            console.registry_additions.clone(),
            file("registries.json"),
            Arc::clone(clock),
        )?
        .max_shards(console.max_shards);
        check_history_names(console)?;
        let histories = HistoryConnections::open(
            &console.histories,
            console.history_additions.clone(),
            file("histories.json"),
            Arc::clone(clock),
        )?;
        let accounts = Accounts::open(file("accounts.json"))?;
        let familiar = FamiliarNetworks::open(file("familiar.json"))?;
        let audit = AuditTrail::open(file("audit.jsonl")).map_err(|error| {
            ConsoleError::setting(format!("cannot read the audit file: {error}"))
        })?;
        Ok(Self { registries, histories, accounts, familiar, audit, folder_lock })
    }
}

pub(super) fn create_data_dir(folder: &Path) -> Result<(), ConsoleError> {
    files::create_private_folder(folder).map_err(|error| {
        ConsoleError::setting(format!("cannot create the folder {}: {error}", folder.display()))
            .with_hint("choose another with --data")
    })
}

/// Each history store belongs to a registry of the settings.
fn check_history_names(console: &Console) -> Result<(), ConsoleError> {
    let is_registry = |name: &str| console.registries.iter().any(|(known, _)| known == name);
    match console.histories.iter().find(|(name, _)| !is_registry(name)) {
        None => Ok(()),
        Some((name, _)) => {
            Err(ConsoleError::setting(format!("cannot add a history: there is no registry {name}"))
                .with_hint("--history NAME=URL, where NAME is one of the registries"))
        }
    }
}
