import { TextInput } from "@mantine/core";
import { useState } from "react";

import { keys } from "../../api/queries";
import { useText } from "../../i18n";
import { AddPlace } from "./AddPlace";

export function AddRegistry({ onClose }: { onClose: () => void }) {
  const t = useText();
  const [name, setName] = useState("");
  return (
    <AddPlace
      path="/registries"
      title={t.registries.add}
      named={name.trim() ? { name: name.trim() } : null}
      naming={
        <TextInput
          label={t.registries.name}
          description={t.registries.nameAbout}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
      }
      urlAbout={t.registries.urlAbout}
      scheme="zookeeper://"
      added={t.registries.added(name.trim())}
      touches={[keys.registries]}
      onClose={onClose}
    />
  );
}
