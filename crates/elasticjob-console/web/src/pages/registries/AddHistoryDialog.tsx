import { Select } from "@mantine/core";
import { useState } from "react";

import { HISTORIES_KEY } from "../../api/histories";
import { queryKeys } from "../../api/queries";
import { useText } from "../../i18n";
import { AddConnectionDialog } from "./AddConnectionDialog";

/** The history of a registry that has none yet. */
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
      // What a registry shows of history is looked at again.
      invalidates={[HISTORIES_KEY, queryKeys.of(registry)]}
      onClose={onClose}
    />
  );
}
