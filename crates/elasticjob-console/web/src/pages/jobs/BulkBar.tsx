import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { toProblem } from "../../api/problem";
import { fetchJobs } from "../../api/queries";
import type { BulkAction } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { Icon, type IconName } from "../../components/Icon";
import { useNotify } from "../../components/notify";
import { RequireRole } from "../../components/RequireRole";
import { useText } from "../../i18n";
import { BulkDialog } from "./BulkDialog";
import type { JobsListQuery } from "./jobsQuery";

const ACTIONS: { action: BulkAction; icon: IconName }[] = [
  { action: "trigger", icon: "play" },
  { action: "enable", icon: "check" },
  { action: "disable", icon: "pause" },
  { action: "shutdown", icon: "power" },
];

/** Actions for the selected jobs, or for all that match the search. */
export function BulkBar({
  query,
  total,
  selected,
  onSelect,
}: {
  query: JobsListQuery;
  total: number;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
}) {
  const t = useText();
  const notify = useNotify();
  const registry = useRegistry();
  const [action, setAction] = useState<BulkAction | null>(null);
  const [isSelectingAll, setSelectingAll] = useState(false);

  const selectAll = async () => {
    setSelectingAll(true);
    try {
      const names = new Set<string>();
      for (let page = 1; ; page += 1) {
        const found = await fetchJobs(registry, { ...query, page, pageSize: 1_000 });
        for (const row of found.items) names.add(row.jobName);
        if (page * 1_000 >= found.total) break;
      }
      onSelect(names);
    } catch (error) {
      notify.problem(toProblem(error));
    } finally {
      setSelectingAll(false);
    }
  };

  return (
    <Group
      px="sm"
      py="xs"
      gap="xs"
      bg="var(--busy-soft)"
      role="toolbar"
      aria-label={t.jobs.bulk}
      style={{ borderBlock: "1px solid var(--line)" }}
    >
      <Text size="sm" fw={600} className="numeric">
        {t.jobs.selected(selected.size)}
      </Text>
      {selected.size < total && (
        <Button
          variant="subtle"
          size="compact-sm"
          loading={isSelectingAll}
          onClick={() => void selectAll()}
        >
          {t.jobs.selectAll(total)}
        </Button>
      )}
      <Button variant="subtle" size="compact-sm" onClick={() => onSelect(new Set())}>
        {t.jobs.selectNone}
      </Button>
      {ACTIONS.map(({ action, icon }) => (
        <RequireRole minimum="operator" key={action}>
          {(isRefused) => (
            <Button
              variant="default"
              size="compact-sm"
              leftSection={<Icon name={icon} size={14} />}
              disabled={isRefused}
              onClick={() => setAction(action)}
            >
              {t.job[action]}
            </Button>
          )}
        </RequireRole>
      ))}
      {action && (
        <BulkDialog action={action} names={[...selected]} onClose={() => setAction(null)} />
      )}
    </Group>
  );
}
