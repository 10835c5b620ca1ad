import type { JobFigures, JobRow } from "../../api/types";
import type { JobsListQuery } from "./jobsQuery";

/** What both forms of the list are given. */
export interface ListProps {
  rows: JobRow[];
  /** What was, by job; nothing if there is no history. */
  figures: ReadonlyMap<string, JobFigures> | null;
  query: JobsListQuery;
  onChange: (change: Partial<JobsListQuery>) => void;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
}

export function toggle(selected: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(selected);
  if (!next.delete(name)) next.add(name);
  return next;
}
