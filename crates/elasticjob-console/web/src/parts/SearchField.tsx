import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";

import { Icon } from "./Icon";

/** A search that answers while one types; `/` leads here. */
export function SearchField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
}) {
  const [text, setText] = useState(value);
  const later = useDebouncedCallback(onChange, 200);
  useEffect(() => setText(value), [value]);
  return (
    <TextInput
      data-search
      type="search"
      p="sm"
      aria-label={label}
      placeholder={label}
      leftSection={<Icon name="search" />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        later(event.currentTarget.value.trim());
      }}
    />
  );
}
