import { Group, UnstyledButton } from "@mantine/core";

import type { JobStatus } from "../../api/types";
import { JOB_TONES } from "../../components/statuses";
import { useText } from "../../i18n";
import classes from "./StatusChips.module.css";

const ORDER: JobStatus[] = ["OK", "SHARDING_FLAG", "DISABLED", "CRASHED"];

/** Number of jobs by status; a chip filters the list. */
export function StatusChips({
  counts,
  chosen,
  onChange,
}: {
  counts: Record<JobStatus, number> | undefined;
  chosen: string;
  onChange: (status: string) => void;
}) {
  const t = useText();
  const selected = new Set(chosen.split(",").filter(Boolean));
  const toggle = (status: JobStatus) => {
    const next = new Set(selected);
    if (!next.delete(status)) next.add(status);
    onChange([...next].join(","));
  };
  return (
    <Group gap={6} p="sm" role="group" aria-label={t.jobs.byStatus}>
      {ORDER.map((status) => (
        <UnstyledButton
          key={status}
          className={classes.chip}
          data-tone={JOB_TONES[status]}
          aria-pressed={selected.has(status)}
          onClick={() => toggle(status)}
        >
          <span className={classes.dot} aria-hidden="true" />
          {t.jobStatus[status]}
          <span className={classes.count}>{counts?.[status] ?? "–"}</span>
        </UnstyledButton>
      ))}
    </Group>
  );
}
