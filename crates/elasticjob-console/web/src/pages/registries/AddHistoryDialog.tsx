import { Select } from "@mantine/core";
import { useState } from "react";

import { HISTORIES_KEY } from "../../api/histories";
import { queryKeys } from "../../api/queries";
import { useText } from "../../i18n";
import { AddConnectionDialog } from "./AddConnectionDialog";

/** Adds a history store for one of the registries that have none. */
export function AddHistoryDialog({
  registries,
  onClose,
}: {
  registries: string[];
  onClose: () => void;
}) {
  const t = useText();
  const [registry, setRegistry] = useState(registries[0] ?? "");
  return (
    <AddConnectionDialog
      path="/histories"
      title={t.histories.add}
      identity={registry ? { registry } : null}
      identityField={
        <Select
          label={t.histories.registry}
          description={t.histories.registryAbout}
          data={registries}
          value={registry || null}
          onChange={(value) => setRegistry(value ?? "")}
          allowDeselect={false}
          data-autofocus
        />
      }
      urlAbout={t.histories.urlAbout}
      initialUrl="postgres://"
      successMessage={t.histories.added(registry)}
      // All history pages of the registry are refetched.
      invalidates={[HISTORIES_KEY, queryKeys.of(registry)]}
      onClose={onClose}
    />
  );
}
