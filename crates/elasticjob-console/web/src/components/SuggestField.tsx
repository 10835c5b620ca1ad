import { Autocomplete } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { useText } from "../i18n";

/** A name field with suggestions. The value is submitted on selection, on Enter and on blur. */
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
  /** Prefix of the cache key. */
  source: readonly string[];
  suggest: (text: string) => Promise<string[]>;
  /** `/` focuses this field. */
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
      // The server has already filtered the options.
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
