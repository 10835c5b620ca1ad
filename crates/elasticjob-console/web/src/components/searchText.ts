import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";

/**
 * The text of a search field whose search is in the URL: typing changes the text immediately and the
 * search 200 ms later. A search that is changed elsewhere ("Show all", the back button) replaces
 * the text, and typing that is not applied yet is dropped: it would undo that change.
 */
export function useSearchText(
  search: string,
  onChange: (search: string) => void,
): [text: string, type: (text: string) => void] {
  const [text, setText] = useState(search);
  const applied = useRef(search);
  const apply = useDebouncedCallback((typed: string) => {
    applied.current = typed;
    onChange(typed);
  }, 200);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a changed search may cancel typing; `apply` is a new function at every render.
  useEffect(() => {
    if (search === applied.current) return;
    applied.current = search;
    apply.cancel();
    setText(search);
  }, [search]);
  return [
    text,
    (typed) => {
      setText(typed);
      apply(typed.trim());
    },
  ];
}
