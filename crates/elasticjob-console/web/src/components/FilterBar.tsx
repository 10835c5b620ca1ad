import { Button, Group } from "@mantine/core";
import type { ReactNode } from "react";

import { useText } from "../i18n";
import classes from "./FilterBar.module.css";
import type { ListFilters } from "./filters";
import { Icon } from "./Icon";
import { JobFilter } from "./JobFilter";
import { TimeRangeFilter } from "./TimeRangeFilter";

/** Filters of a history list and links to export it. */
export function FilterBar({
  filters,
  exports,
  children,
}: {
  filters: ListFilters;
  /** Export links by format. */
  exports?: Record<string, string>;
  children?: ReactNode;
}) {
  const t = useText();
  return (
    <search className={classes.bar} aria-label={t.history.filters}>
      <JobFilter value={filters.value("job")} onChange={(job) => filters.change({ job })} />
      {children}
      <TimeRangeFilter filters={filters} />
      {filters.isFiltered && (
        <Button variant="subtle" size="compact-sm" onClick={filters.clear}>
          {t.history.clear}
        </Button>
      )}
      {exports && (
        <Group gap={6} className={classes.files}>
          {Object.entries(exports).map(([kind, href]) => (
            <Button
              key={kind}
              component="a"
              variant="default"
              size="compact-sm"
              href={href}
              download
              aria-label={t.history.export(kind)}
              leftSection={<Icon name="download" />}
            >
              {kind}
            </Button>
          ))}
        </Group>
      )}
    </search>
  );
}
