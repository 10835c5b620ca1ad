import { TextInput } from "@mantine/core";
import { useState } from "react";

import { queryKeys } from "../../api/queries";
import { useText } from "../../i18n";
import { AddConnectionDialog } from "./AddConnectionDialog";

export function AddRegistryDialog({ onClose }: { onClose: () => void }) {
  const t = useText();
  const [name, setName] = useState("");
  return (
    <AddConnectionDialog
      path="/registries"
      title={t.registries.add}
      identity={name.trim() ? { name: name.trim() } : null}
      identityField={
        <TextInput
          label={t.registries.name}
          description={t.registries.nameAbout}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
      }
      urlAbout={t.registries.urlAbout}
      initialUrl="zookeeper://"
      successMessage={t.registries.added(name.trim())}
      invalidates={[queryKeys.registries]}
      onClose={onClose}
    />
  );
}
