import { Select } from "@mantine/core";
import { useState } from "react";

import { HISTORIES } from "../../api/histories";
import { keys } from "../../api/queries";
import { useText } from "../../i18n";
import { AddPlace } from "./AddPlace";

/** The history of a registry that has none yet. */
export function AddHistory({ without, onClose }: { without: string[]; onClose: () => void }) {
  const t = useText();
  const [registry, setRegistry] = useState(without[0] ?? "");
  return (
    <AddPlace
      path="/histories"
      title={t.histories.add}
      named={registry ? { registry } : null}
      naming={
        <Select
          label={t.histories.registry}
          description={t.histories.registryAbout}
          data={without}
          value={registry || null}
          onChange={(value) => setRegistry(value ?? "")}
          allowDeselect={false}
          data-autofocus
        />
      }
      urlAbout={t.histories.urlAbout}
      scheme="postgres://"
      added={t.histories.added(registry)}
      // What a registry shows of history is looked at again.
      touches={[HISTORIES, keys.of(registry)]}
      onClose={onClose}
    />
  );
}
