import { TextInput } from "@mantine/core";

import { Icon } from "./Icon";
import { useSearchText } from "./searchText";

/** A search field that searches while the user types; `/` focuses it. */
export function SearchField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
}) {
  const [text, type] = useSearchText(value, onChange);
  return (
    <TextInput
      data-search
      type="search"
      p="sm"
      aria-label={label}
      placeholder={label}
      leftSection={<Icon name="search" />}
      value={text}
      onChange={(event) => type(event.currentTarget.value)}
    />
  );
}
