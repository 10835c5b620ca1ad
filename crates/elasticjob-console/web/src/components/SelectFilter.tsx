import { Select } from "@mantine/core";

import { useText } from "../i18n";
import type { ListFilters } from "./filters";

/** Filters a list by one of a few values. */
export function SelectFilter({
  filters,
  name,
  label,
  choices,
  labels,
}: {
  filters: ListFilters;
  /** Key in the URL. */
  name: string;
  label: string;
  choices: readonly string[];
  labels: Record<string, string>;
}) {
  const t = useText();
  return (
    <Select
      aria-label={label}
      placeholder={label}
      data={choices.map((value) => ({ value, label: labels[value] ?? value }))}
      value={filters.value(name) || null}
      onChange={(value) => filters.change({ [name]: value ?? "" })}
      clearable
      clearButtonProps={{ "aria-label": t.config.clear }}
    />
  );
}
