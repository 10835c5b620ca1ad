import type { JobFigures, JobRow } from "../../api/types";
import type { JobsListQuery } from "./jobsQuery";

/** Props shared by the table and the cards. */
export interface ListProps {
  rows: JobRow[];
  /** History figures by job; null if there is no history store. */
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
