import { Autocomplete } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { useText } from "../i18n";

/** A whole name: typed, or taken from what fits so far. It counts when it is one, on Enter, and when the field is left. */
export function SuggestField({
  label,
  value,
  onChange,
  source,
  suggest,
  isPageSearch = false,
}: {
  label: string;
  value: string;
  onChange: (name: string) => void;
  /** What kind of names they are; what the cache goes by. */
  source: readonly string[];
  suggest: (text: string) => Promise<string[]>;
  /** `/` leads here. */
  isPageSearch?: boolean;
}) {
  const t = useText();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const [typed] = useDebouncedValue(text.trim(), 150);
  const names = useQuery({
    queryKey: ["suggest", ...source, typed],
    queryFn: () => suggest(typed),
    retry: false,
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });
  const submit = (name: string) => {
    if (name.trim() !== value) onChange(name.trim());
  };
  return (
    <Autocomplete
      data-search={isPageSearch || undefined}
      aria-label={label}
      placeholder={label}
      data={[...new Set(names.data ?? [])]}
      // What the server found fits, whatever it fits by.
      filter={({ options }) => options}
      value={text}
      onChange={(next) => {
        setText(next);
        if (next === "") submit("");
      }}
      onOptionSubmit={submit}
      onBlur={() => submit(text)}
      onKeyDown={(event) => {
        if (event.key === "Enter") submit(text);
      }}
      clearable
      clearButtonProps={{ "aria-label": t.config.clear }}
    />
  );
}
